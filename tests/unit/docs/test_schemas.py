from pathlib import Path

import pytest

from cli.dev.schemas import rendered, schemas

FOLDER = Path(__file__).parents[3] / "docs" / "schemas"


@pytest.mark.parametrize("topic", schemas())
def test_the_schema_in_the_docs_is_that_of_the_code(topic: str) -> None:
    """If not: `mnemo dev schemas docs/schemas`."""
    assert (FOLDER / f"{topic}.json").read_text(encoding="utf-8") == rendered(schemas()[topic])


def test_the_docs_hold_no_schema_of_a_topic_that_is_gone() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(schemas())
