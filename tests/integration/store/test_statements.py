"""Every statement of the store is understood by the schema as it is migrated."""

import importlib
import pkgutil

import asyncpg
import pytest

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


def test_the_statements_are_found() -> None:
    names = {name for name, _ in _statements()}
    assert len(names) >= 25
    assert {"search.SEARCH", "memories._GET", "notices"} - names == {"notices"}


@pytest.mark.parametrize(("name", "statement"), [pytest.param(*each, id=each[0]) for each in _statements()])
async def test_a_statement_is_prepared_against_the_migrated_schema(
    database_dsn: str, name: str, statement: str
) -> None:
    connection = await asyncpg.connect(database_dsn)
    try:
        await connection.prepare(statement)
    finally:
        await connection.close()
