"""Pairs of statements with what a careful reader makes of them."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

FILE: Final = Path(__file__).with_name("pairs.jsonl")

Label = Literal["same", "update", "contradiction", "unrelated"]


@dataclass(frozen=True, slots=True)
class Pair:
    """A memory, a later statement of the same owner, and how they stand to each other."""

    old: str
    new: str
    label: Label
    """`same` also where one says the same and harmlessly more."""
    changes: tuple[str, ...]
    """What the later one changes, in the words of `processors.guards.Difference`."""
    same_slot: bool
    """Whether a reader gives both the same subject and attribute."""
    language: str
    cosine: float
    """Of the local model, to three digits: `python -m tests.corpus.record` writes it."""


def load() -> list[Pair]:
    """The corpus, in the order of its file."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    return [Pair(**{**entry, "changes": tuple(entry["changes"])}) for entry in map(json.loads, lines)]


def save(pairs: list[Pair]) -> None:
    """Write the corpus, one pair a line."""
    lines = [json.dumps(asdict(pair), ensure_ascii=False) for pair in pairs]
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")
