"""Ways to break a store on purpose, and what is to be found of each: statements for the owner of the schema.

The store is that of `test_verification`: what can happen to memories and turns, once each.
"""

from uuid import UUID

from tests.fakes.values import id_of

PORTO, LISBON, TEA, PLAN = (id_of(name) for name in ("Porto", "Lisbon", "Tea", "Plan"))
HERON = id_of("Heron")

_BOTH = """
    UPDATE memory SET {set} WHERE id = '{id}' AND app = 'acme';
    UPDATE change SET {set} WHERE memory_id = '{id}' AND app = 'acme'
"""
"""A memory and its history, so that these agree."""


def both(memory_id: UUID, values: str) -> str:
    return _BOTH.format(set=values, id=memory_id)


STORED_NOT_IN_LEDGER = "stored in the log of turns, not in the ledger"
WRITTEN_TWICE = "the effect of one reading was written more than once"
NOT_AS_CHANGED = "a memory is not as its last change says"
OFF_ITS_CURVE = "fades at another time than its curve"

BREAKS: dict[str, tuple[str, dict[str, set[str]]]] = {
    "a turn's ledger row is gone": (
        "DELETE FROM ledger WHERE turn_id = 't-quiet'",
        {"accepted": {STORED_NOT_IN_LEDGER}},
    ),
    "a stored turn is pending again": (
        "UPDATE turn SET state = 'PENDING' WHERE id = 't-quiet'",
        {"accepted": {"pending in the log of turns, though it took effect"}},
    ),
    "a stored turn is parked": (
        "UPDATE turn SET state = 'PARKED' WHERE id = 't-quiet'",
        {"accepted": {"parked in the log of turns, though it took effect"}},
    ),
    "a parked turn's ledger row is gone": (
        "DELETE FROM ledger WHERE turn_id = 't-poison'",
        {"accepted": {"parked in the log of turns, not in the ledger"}},
    ),
    "what was set aside is gone": (
        "DELETE FROM parked WHERE turn_id = 't-poison'",
        {"accepted": {"in the ledger as parked, not among what was set aside"}},
    ),
    "a turn took effect without a ledger row": (
        "DELETE FROM ledger WHERE turn_id = 't-lisbon'",
        {
            "accepted": {STORED_NOT_IN_LEDGER},
            "once": {
                "a decision about a turn that the ledger has no effect of",
                "a change by a turn that the ledger has no effect of",
            },
            "traceable": {"it comes from a turn that never took effect", "a turn that never took effect supports it"},
        },
    ),
    "a decision is of another transaction": (
        "UPDATE decision SET tx = '7' WHERE cause_id = 't-nothing'",
        {"once": {WRITTEN_TWICE}},
    ),
    "a change is of another transaction": (
        "UPDATE change SET tx = '7' WHERE cause_id = 't-again'",
        {"once": {WRITTEN_TWICE}},
    ),
    "an effect was written to a ledger row of before": (
        "UPDATE ledger SET tx = NULL WHERE turn_id = 't-again'",
        {"once": {WRITTEN_TWICE}},
    ),
    "a turn was decided twice": (
        """
        INSERT INTO decision (owner_key, id, app, cause_kind, cause_id, candidate, route, action, reason)
        SELECT owner_key, gen_random_uuid(), app, cause_kind, cause_id, candidate, route, action, reason
        FROM decision WHERE cause_id = 't-nothing'
        """,
        {"once": {WRITTEN_TWICE}},
    ),
    "a turn reinforced twice": (
        """
        UPDATE change AS c SET cause_id = o.cause_id, decision_id = o.decision_id, tx = o.tx
        FROM change AS o WHERE c.cause_id = 't-often' AND o.cause_id = 't-again'
        """,
        {"once": {"a turn reinforced one memory twice"}},
    ),
    "a memory was added twice": (
        "UPDATE change SET kind = 'added' WHERE cause_id = 't-again'",
        {
            "once": {"a memory was added twice"},
            "strength": {
                "fresher by a change that reinforces nothing",
                "counted as said again by a change of another kind",
            },
        },
    ),
    "a turn was decided before an earlier one": (
        "UPDATE ledger SET decided_at = decided_at - interval '1 day' WHERE turn_id = 't-quiet'",
        {"order": {"decided before a turn that stands before it in the partition"}},
    ),
    "turns took effect in the wrong order": (
        """UPDATE ledger SET "offset" = CASE turn_id WHEN 't-again' THEN 5 ELSE 4 END
           WHERE turn_id IN ('t-again', 't-often')""",
        {
            "order": {
                "decided before a turn that stands before it in the partition",
                "numbered in the history before a turn that stands before it in the partition",
            }
        },
    ),
    "a live memory is superseded": (
        "ALTER TABLE memory DROP CONSTRAINT memory_check2;" + both(LISBON, f"superseded_by = '{TEA}'"),
        {"live": {"superseded by another, and not in the state SUPERSEDED"}},
    ),
    "a superseded memory is live again": (
        f"UPDATE memory SET state = 'LIVE', retired_at = NULL, superseded_by = NULL WHERE id = '{PORTO}'",
        {"live": {"live, and superseded in its history"}, "feed": {NOT_AS_CHANGED}},
    ),
    "a memory is live beside what it replaced": (
        both(TEA, "valid_to = NULL"),
        {"live": {"live, together with what it replaced"}},
    ),
    "a change says another thing than the state after it": (
        "UPDATE change SET kind = 'retracted' WHERE kind = 'superseded'",
        {"live": {"a change says one thing, the state after it another"}},
    ),
    "two memories supersede each other": (
        both(PORTO, f"supersedes = '{LISBON}'"),
        {"chains": {"a line leads back to itself"}},
    ),
    "a memory names one of another owner": (
        both(TEA, "restates = gen_random_uuid()").replace(
            "gen_random_uuid()", "'0199c6b2-0000-7000-8000-000000000001'"
        ),
        {"chains": {"a memory names one that its owner does not have"}},
    ),
    "a memory's decision is gone": (
        "DELETE FROM decision WHERE cause_id = 't-lisbon'",
        {"traceable": {"there is no decision to add it"}},
    ),
    "a memory's decision is about another": (
        f"UPDATE decision SET memory_id = '{TEA}' WHERE cause_id = 't-lisbon'",
        {"traceable": {"its decision is about something else"}},
    ),
    "a memory has no source": (
        f"DELETE FROM memory_source WHERE memory_id = '{LISBON}' AND turn_id = 't-lisbon'",
        {"traceable": {"it comes from a turn, and no message supports it"}, "feed": {NOT_AS_CHANGED}},
    ),
    "a memory has a source that never was": (
        f"UPDATE memory_source SET turn_id = 'ghost' WHERE memory_id = '{LISBON}' AND turn_id = 't-again'",
        {"traceable": {"a turn that never took effect supports it"}, "feed": {NOT_AS_CHANGED}},
    ),
    "a row is in another app": (
        f"UPDATE memory SET app = 'zeta' WHERE id = '{TEA}'",
        {"walls": {"the app of a row is not that of its owner"}},
    ),
    "a pointer of the outbox is in another app": (
        "UPDATE outbox SET app = 'zeta' WHERE seq = 2",
        {"walls": {"the app of a row is not that of its owner"}},
    ),
    "a change is gone": (
        "DELETE FROM change WHERE cause_id = 't-often'",
        {
            "feed": {"a number is missing in the history", NOT_AS_CHANGED},
            "strength": {"fresher than its last change says", "fades later than its last change says"},
        },
    ),
    "the first change is gone": (
        "DELETE FROM change WHERE cause_id = 't-porto' AND app = 'zeta'",
        {
            "feed": {"the history ends elsewhere than the owner's seq", "a memory has no history"},
            "traceable": {"nothing says what added it"},
        },
    ),
    "an owner's number is ahead of the history": (
        "UPDATE owner SET seq = seq + 1 WHERE app = 'zeta'",
        {"feed": {"the history ends elsewhere than the owner's seq"}},
    ),
    "a text was overwritten": (
        f"UPDATE memory SET content = 'Berlin' WHERE id = '{LISBON}'",
        {"feed": {NOT_AS_CHANGED}},
    ),
    "a change is of an earlier version": (
        "UPDATE change SET version = 1 WHERE cause_id = 't-again'",
        {"feed": {"a memory's version does not rise with its changes"}},
    ),
    "a memory is fresher than what was said": (
        f"UPDATE memory SET reinforced_at = reinforced_at + interval '1 day' WHERE id = '{TEA}'",
        {"strength": {"fresher than its last change says", OFF_ITS_CURVE}},
    ),
    "a memory fades slower": (
        f"UPDATE memory SET half_life_seconds = NULL, fades_at = NULL WHERE id = '{TEA}'",
        {"strength": {"fades slower than its last change says", "fades later than its last change says"}},
    ),
    "a memory fades later than its curve": (
        both(TEA, "fades_at = fades_at + interval '1 hour'"),
        {"strength": {OFF_ITS_CURVE}},
    ),
    "a memory became fresher by being superseded": (
        "UPDATE change SET reinforced_at = reinforced_at + interval '1 hour' WHERE kind = 'superseded'",
        {"strength": {"fresher by a change that reinforces nothing", "fresher than anything that was said or asked"}},
    ),
    "a memory was reinforced beyond what was said": (
        "UPDATE change SET reinforced_at = reinforced_at + interval '1 hour' WHERE cause_id = 't-again'",
        {"strength": {"fresher than anything that was said or asked"}},
    ),
    "a memory was pinned by nobody": (
        f"""
        UPDATE change SET pinned = true WHERE kind = 'superseded';
        UPDATE memory SET pinned = true WHERE id = '{PORTO}' AND app = 'acme'
        """,
        {"strength": {"pinned by a change of another kind"}},
    ),
    "a forgotten text is there again": (
        f"UPDATE memory SET content = 'Heron' WHERE id = '{HERON}'",
        {"forgotten": {"its text is still there"}, "feed": {NOT_AS_CHANGED}},
    ),
    "a forgotten text can be searched": (
        f"UPDATE memory SET text_search = 'heron' WHERE id = '{HERON}'",
        {"forgotten": {"its text is still there"}},
    ),
    "a forgotten memory has a vector": (
        f"""
        INSERT INTO memory_vector (owner_key, model_key, id, app, embedding, half)
        SELECT owner_key, model_key, '{HERON}', app, embedding, half FROM memory_vector WHERE id = '{TEA}'
        """,
        {"forgotten": {"its vector is still there"}},
    ),
    "a forgotten memory's history has its text": (
        f"UPDATE change SET content = 'Heron' WHERE memory_id = '{HERON}' AND kind = 'added'",
        {"forgotten": {"a change still quotes it"}},
    ),
    "a decision quotes what was forgotten": (
        "UPDATE decision SET candidate = '{\"text\": \"Heron\"}' WHERE cause_id = 't-heron-2'",
        {"forgotten": {"a decision still quotes it"}},
    ),
    "an arbitrator's reason quotes what was forgotten": (
        f"""UPDATE decision SET reason = 'Heron', arbitration_model = 'm', decided_at = '2020-01-01',
                neighbours = '[{{"id": "{HERON}"}}]' WHERE cause_id = 't-nothing'""",
        {"forgotten": {"a decision that an arbitrator made who saw it still tells why"}},
    ),
    "the tombstone is gone": (
        "DELETE FROM tombstone",
        {"forgotten": {"nothing keeps it from coming back"}},
    ),
    "a memory says what was forgotten": (
        f"""
        UPDATE memory SET content_hash = 'heron' WHERE id = '{TEA}';
        UPDATE tombstone AS t SET text_hashes = ARRAY[sha256(a.forget_key || 'heron')] FROM app AS a WHERE a.app = t.app
        """,
        {"forgotten": {"a memory says what was forgotten"}},
    ),
    "a memory of the slot that was forgotten came back": (
        both(TEA, "subject = 'user', attribute = 'tattoo', recorded_at = '2999-01-01'"),
        {"forgotten": {"a memory of what was forgotten came back by its subject"}},
    ),
    "the log of turns has what was said": (
        """
        SET LOCAL mnemo.forgetting = 'on';
        UPDATE turn SET messages = '[{"role": "user", "content": "Heron"}]' WHERE id = 't-heron'
        """,
        {
            "forgotten": {
                "the log of turns still has what was said",
                "a message of the log of turns still is what was forgotten",
            }
        },
    ),
    "the log of turns has it beside what was scrubbed": (
        """
        SET LOCAL mnemo.forgetting = 'on';
        UPDATE turn SET messages = messages || '[{"role": "user", "content": " heron"}]' WHERE id = 't-heron'
        """,
        {"forgotten": {"a message of the log of turns still is what was forgotten"}},
    ),
    "it is still among what was recalled for another turn": (
        """
        SET LOCAL mnemo.forgetting = 'on';
        UPDATE turn SET recalled = '["Tea", "Heron"]' WHERE id = 't-tea'
        """,
        {"forgotten": {"what was recalled for a turn still says it"}},
    ),
    "a memory of the turn that was forgotten came back": (
        "UPDATE tombstone SET turn_ids = turn_ids || '{t-tea}'; " + both(TEA, "recorded_at = '2999-01-01'"),
        {
            "forgotten": {
                "a memory of what was forgotten came back by its turn",
                "the log of turns still has what was said",
            }
        },
    ),
    "a decision that came to nothing quotes what was forgotten": (
        "UPDATE tombstone SET turn_ids = turn_ids || '{t-nothing}'",
        {
            "forgotten": {
                "a decision about a turn that said it still quotes it",
                "the log of turns still has what was said",
            }
        },
    ),
}


HARMLESS: dict[str, str] = {
    "a memory was asked for": f"""
        UPDATE memory SET access_count = 3, accessed_at = now(), reinforced_at = now(),
            fades_at = now() + make_interval(secs => half_life_seconds * 5) WHERE id = '{TEA}'
    """,
    "the log of turns let go of a turn": "DELETE FROM turn WHERE id = 't-lisbon'",
    "the outbox was trimmed": "DELETE FROM outbox",
    "what was forgotten is said and recalled again": """
        SET LOCAL mnemo.forgetting = 'on';
        UPDATE turn SET recalled = '["Heron"]', recorded_at = '2999-01-01' WHERE id = 't-tea'
    """,
    "what was forgotten is a word of a message": """
        SET LOCAL mnemo.forgetting = 'on';
        UPDATE turn SET messages = '[{"role": "user", "content": "Heron"}]' WHERE id = 't-tea'
    """,
    "the topic was made anew, and its offsets began again": """
        UPDATE ledger SET "offset" = 0, received_at = received_at + interval '1 day' WHERE turn_id = 't-restated'
    """,
    "rows are from before transactions were kept": """
        UPDATE ledger SET tx = NULL; UPDATE decision SET tx = NULL; UPDATE change SET tx = NULL
    """,
}


WALL_BREAKS: dict[str, tuple[str, str]] = {
    "a table without the wall": (
        "CREATE TABLE note (owner_key bigint, app text, text text)",
        "row-level security is off",
    ),
    "a table that names no app": (
        """
        CREATE TABLE note (owner_key bigint);
        ALTER TABLE note ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
        CREATE POLICY app_wall ON note TO mnemo_operator USING (true)
        """,
        "it is an owner's, and names no app",
    ),
    "a readable table of nobody's": (
        "CREATE TABLE note (text text); GRANT SELECT ON note TO mnemo_query",
        "row-level security is off",
    ),
    "the wall is off": ("ALTER TABLE memory DISABLE ROW LEVEL SECURITY", "row-level security is off"),
    "the wall does not hold the owner": (
        "ALTER TABLE memory NO FORCE ROW LEVEL SECURITY",
        "row-level security does not hold the owner of the table",
    ),
    "a policy that lets everybody in": (
        "CREATE POLICY leak ON memory USING (true)",
        "a policy does not ask for the app",
    ),
    "a policy with a hole": (
        "CREATE POLICY leak ON turn TO mnemo_query USING (app = current_setting('mnemo.app', true) OR session IS NULL)",
        "a policy does not ask for the app",
    ),
    "a policy that lets other apps be written": (
        "CREATE POLICY leak ON turn TO mnemo_worker USING (app = current_setting('mnemo.app', true)) WITH CHECK (true)",
        "a policy does not ask for the app",
    ),
    "no policy": ("DROP POLICY operator_sees_all ON run", "there is no policy"),
    "a view": (
        "CREATE VIEW everything AS SELECT id FROM memory; GRANT SELECT ON everything TO mnemo_query",
        "a view shows what its maker may see",
    ),
    "a function": (
        "CREATE FUNCTION all_texts() RETURNS SETOF text LANGUAGE sql SECURITY DEFINER AS 'SELECT content FROM memory'",
        "a function runs past the wall",
    ),
    "a role past the wall": ("ALTER ROLE mnemo_query BYPASSRLS", "a role passes row-level security"),
    "a superuser": ("ALTER ROLE mnemo_worker SUPERUSER", "a role is a superuser"),
    "a role that becomes another": (
        "GRANT mnemo_timer TO mnemo_query",
        "a role of one app is a member of one that sees all",
    ),
}
