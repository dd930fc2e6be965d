"""The walls between apps: that each row belongs to the app of its owner, that row-level security stands before every
table, and that a process which entered one app sees nothing of another.

Which tables there are is read from Postgres's catalogue, so that a new one without the wall is found.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, LiteralString

from store.database import Database
from store.verification.findings import Evidence

if TYPE_CHECKING:
    from store.database import Connection, DirectConnection

# Tables of everybody: they hold nothing of an app.
_COMMON: Final = ("schema_migration", "embedding_model")

# A key is presented before its app is known: `authenticate` looks it up as the owner of the table, past the wall.
_NOT_FORCED: Final = ("api_key",)
_PAST_THE_WALL: Final = ("authenticate",)

_APP_WALL: Final = r"^\(+app = current_setting\('mnemo\.app'::text, true\)\)( OR \(app IS NULL\)\))?$"
"""What a policy says that asks for the app, as Postgres writes it. What could not be read as a turn belongs to none."""

# Tables and views of the schema, and what is missing before each.
# $1 tables of everybody, $2 tables whose wall need not be forced
_TABLES: Final[LiteralString] = """
    SELECT c.relname AS name, r.what
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        CROSS JOIN LATERAL (
            SELECT coalesce(bool_or(a.attname = 'app'), false) AS app,
                coalesce(bool_or(a.attname = 'owner_key'), false) AS owner_key
            FROM pg_attribute AS a
            WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        ) AS has
        CROSS JOIN LATERAL (
            SELECT has_table_privilege('mnemo_worker', c.oid, 'SELECT')
                OR has_table_privilege('mnemo_query', c.oid, 'SELECT') AS readable
        ) AS may
        CROSS JOIN LATERAL (VALUES
            ('row-level security is off', c.relkind IN ('r', 'p') AND c.relname <> ALL ($1::text[])
                AND (has.app OR has.owner_key OR may.readable) AND NOT c.relrowsecurity),
            ('row-level security does not hold the owner of the table', c.relkind IN ('r', 'p')
                AND c.relrowsecurity AND NOT c.relforcerowsecurity AND c.relname <> ALL ($2::text[])),
            ('there is no policy', c.relkind IN ('r', 'p') AND c.relrowsecurity
                AND NOT EXISTS (SELECT 1 FROM pg_policy AS p WHERE p.polrelid = c.oid)),
            ('it is an owner''s, and names no app', c.relkind IN ('r', 'p') AND has.owner_key AND NOT has.app),
            ('a view shows what its maker may see', may.readable AND (c.relkind = 'm'
                OR c.relkind = 'v' AND NOT coalesce(c.reloptions::text ~* 'security_invoker=(true|on|1|yes)', false))),
            ('a role of the stream or the service owns it', c.relkind IN ('r', 'p', 'v', 'm')
                AND pg_get_userbyid(c.relowner) IN ('mnemo_worker', 'mnemo_query'))
        ) AS r (what, broken)
    WHERE n.nspname = current_schema() AND r.broken
        -- What an extension brought is its own.
        AND NOT EXISTS (SELECT 1 FROM pg_depend AS d WHERE d.objid = c.oid AND d.deptype = 'e')
    ORDER BY c.relname, r.what
"""

# A policy that lets the stream or the service past the app's name. $1 what it has to say
_POLICIES: Final[LiteralString] = """
    SELECT c.relname AS name, p.polname AS policy, 'a policy does not ask for the app' AS what
    FROM pg_policy AS p JOIN pg_class AS c ON c.oid = p.polrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = current_schema() AND p.polpermissive
        AND EXISTS (
            SELECT 1
            FROM unnest(p.polroles) AS role (oid)
            WHERE role.oid = 0 OR pg_has_role('mnemo_worker', role.oid, 'MEMBER')
                OR pg_has_role('mnemo_query', role.oid, 'MEMBER')
        )
        AND NOT (coalesce(pg_get_expr(p.polqual, p.polrelid), '') ~ $1
            AND (p.polwithcheck IS NULL OR pg_get_expr(p.polwithcheck, p.polrelid) ~ $1))
    ORDER BY c.relname, p.polname
"""

# $1 functions that may
_FUNCTIONS: Final[LiteralString] = """
    SELECT p.proname AS name, 'a function runs past the wall' AS what
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE n.nspname = current_schema() AND p.prosecdef AND p.proname <> ALL ($1::text[])
        AND (has_function_privilege('mnemo_worker', p.oid, 'EXECUTE')
            OR has_function_privilege('mnemo_query', p.oid, 'EXECUTE'))
        AND NOT EXISTS (SELECT 1 FROM pg_depend AS d WHERE d.objid = p.oid AND d.deptype = 'e')
    ORDER BY p.proname
"""

_ROLES: Final[LiteralString] = """
    SELECT m.rolname AS name, r.what
    FROM pg_roles AS m
        CROSS JOIN LATERAL (VALUES
            ('a role is a superuser', m.rolsuper),
            ('a role passes row-level security', m.rolbypassrls),
            ('a role may make roles', m.rolcreaterole),
            ('a role of one app is a member of one that sees all', m.rolname IN ('mnemo_worker', 'mnemo_query')
                AND EXISTS (
                    SELECT 1
                    FROM pg_roles AS s
                    WHERE s.oid <> m.oid AND pg_has_role(m.oid, s.oid, 'MEMBER')
                        AND (s.rolsuper OR s.rolbypassrls OR s.rolname IN ('mnemo_operator', 'mnemo_timer'))))
        ) AS r (what, broken)
    WHERE m.rolname IN ('mnemo_worker', 'mnemo_query', 'mnemo_timer', 'mnemo_operator') AND r.broken
    ORDER BY m.rolname, r.what
"""

# The statements that compare the app of each row with that of its owner, one for each table that has both. They are
# made by Postgres from its catalogue, names quoted; as everywhere $1 and $2 are owner keys, $3 an app, $4 how many.
_ROWS: Final[LiteralString] = """
    SELECT c.relname AS name, format(
        'SELECT count(*) OVER () AS found, t.app, o.owner, '
        '''the app of a row is not that of its owner'' AS what, '
        'jsonb_strip_nulls(jsonb_build_object(''table'', %1$L::text, ''owner_key'', t.owner_key, ''app'', t.app, '
        '''owner_app'', o.app)) AS evidence '
        'FROM %1$I AS t LEFT JOIN owner AS o ON o.owner_key = t.owner_key '
        'WHERE t.owner_key > $1 AND t.owner_key <= $2 AND ($3::text IS NULL OR t.app = $3 OR o.app = $3) '
        'AND t.app IS DISTINCT FROM o.app ORDER BY t.owner_key LIMIT $4', c.relname) AS compares, format(
        'SELECT count(*) FROM %1$I AS t WHERE t.owner_key > $1 AND t.owner_key <= $2 '
        'AND ($3::text IS NULL OR t.app = $3)', c.relname) AS counts
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p') AND c.relname <> 'owner' AND (
        SELECT count(*)
        FROM pg_attribute AS a
        WHERE a.attrelid = c.oid AND a.attname IN ('app', 'owner_key') AND NOT a.attisdropped
    ) = 2
    ORDER BY c.relname
"""

# What a process may see, made in the same way: nothing of these owners, who are of other apps.
# $1 app, or NULL where none is set; takes $1 owner keys
_VISIBLE: Final[LiteralString] = """
    SELECT c.relname AS name, format(
        'SELECT t.owner_key, t.app FROM %1$I AS t WHERE t.owner_key = ANY ($1::bigint[]) LIMIT 1', c.relname) AS looks
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p', 'v', 'm') AND has_table_privilege(c.oid, 'SELECT')
        AND (
            SELECT count(*)
            FROM pg_attribute AS a
            WHERE a.attrelid = c.oid AND a.attname IN ('app', 'owner_key') AND NOT a.attisdropped
        ) = 2
    ORDER BY c.relname
"""

# Some owners of some apps that have any: those with the longest history of the first ones.
# $1 apps, $2 owners of each, $3 an app that must be among them, or NULL, $4 owners to choose from
_SAMPLE: Final[LiteralString] = """
    SELECT a.app, o.owner_key
    FROM (
            SELECT a.app
            FROM app AS a
            WHERE EXISTS (SELECT 1 FROM owner AS o WHERE o.app = a.app)
            ORDER BY a.app = $3 DESC NULLS LAST, a.app
            LIMIT $1
        ) AS a
        CROSS JOIN LATERAL (
            SELECT o.owner_key
            FROM (SELECT owner_key, seq FROM owner WHERE app = a.app ORDER BY owner LIMIT $4) AS o
            ORDER BY o.seq DESC, o.owner_key
            LIMIT $2
        ) AS o
    ORDER BY a.app, o.owner_key
"""

_APPS: Final = 5
_OWNERS: Final = 20
_CHOICE: Final = 1_000
_NOBODY: Final = "nobody.of-this-name"
"""An app that nobody has: who enters it sees nothing at all."""

Inner = Literal["mnemo_worker", "mnemo_query"]
INNER_ROLES: Final[tuple[Inner, ...]] = ("mnemo_worker", "mnemo_query")
"""The roles that see one app at a time."""


async def standing(connection: "Connection | DirectConnection") -> tuple[int, list[Evidence]]:
    """How many parts of the wall there are by the catalogue, and what is wrong with them."""
    found = [
        *await connection.fetch(_TABLES, _COMMON, _NOT_FORCED),
        *await connection.fetch(_POLICIES, _APP_WALL),
        *await connection.fetch(_FUNCTIONS, _PAST_THE_WALL),
        *await connection.fetch(_ROLES),
    ]
    return len(await tables(connection)), [
        Evidence(row["what"], {key: row[key] for key in ("name", "policy") if key in row}) for row in found
    ]


async def tables(connection: "Connection | DirectConnection") -> list[tuple[str, str, str]]:
    """The tables that hold rows of owners: name, the statement that compares them, and the one that counts them."""
    return [(row["name"], row["compares"], row["counts"]) for row in await connection.fetch(_ROWS)]


async def sample(connection: "Connection | DirectConnection", app: str | None) -> list[tuple[str, int]]:
    """Some owners by their keys, with their apps; those of `app` among them."""
    return [(row["app"], row["owner_key"]) for row in await connection.fetch(_SAMPLE, _APPS, _OWNERS, app, _CHOICE)]


async def probed(database: Database, role: Inner, owners: Sequence[tuple[str, int]]) -> tuple[int, list[Evidence]]:
    """How often a role looked for rows that it must not see, and those that it saw: with no app set, in an app that
    nobody has, and in each app for the rows of the others."""
    looks, seen = 0, []
    everybody = [owner_key for _, owner_key in owners]
    if not everybody:
        return 0, []
    async with database.across() as connection:
        statements = await connection.fetch(_VISIBLE)
        for statement in statements:
            looks += 1
            row = await connection.fetchrow(statement["looks"], everybody)
            if row is not None:
                seen.append(_leak(role, statement["name"], None, row["app"], row["owner_key"]))
    for app in dict.fromkeys([_NOBODY, *(app for app, _ in owners)]):
        others = [owner_key for other, owner_key in owners if other != app]
        if not others:
            continue
        async with database.app(app) as connection:
            for statement in statements:
                looks += 1
                row = await connection.fetchrow(statement["looks"], others)
                if row is not None:
                    seen.append(_leak(role, statement["name"], app, row["app"], row["owner_key"]))
    return looks, seen


def _leak(role: str, table: str, inside: str | None, app: str, owner_key: int) -> Evidence:
    where = {"role": role, "table": table, "inside": inside or "no app", "sees": app, "owner_key": owner_key}
    return Evidence("a role sees rows of another app", where)
