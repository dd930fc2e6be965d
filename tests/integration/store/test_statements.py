"""Every statement of the store is understood by the schema as it is migrated."""

import importlib
import pkgutil

import asyncpg

import store

_VERBS = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")


def _without_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--")).strip()


def _statements() -> list[tuple[str, str]]:
    """The statements that the modules of the store hold as constants, by their names."""
    found = {}
    for module_info in pkgutil.iter_modules(store.__path__):
        module = importlib.import_module(f"store.{module_info.name}")
        for name, value in vars(module).items():
            if isinstance(value, str) and name.isupper() and _without_comments(value).startswith(_VERBS):
                found[value] = f"{module_info.name}.{name}"
    return sorted((name, text) for text, name in found.items())


async def test_every_statement_is_understood_by_the_migrated_schema(database_dsn: str) -> None:
    statements = _statements()
    assert len(statements) >= 25
    refused = {}
    connection = await asyncpg.connect(database_dsn)
    for name, statement in statements:
        try:
            await connection.prepare(statement)
        except asyncpg.PostgresError as error:
            refused[name] = str(error)
    await connection.close()
    assert refused == {}
