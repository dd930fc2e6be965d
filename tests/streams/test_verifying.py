"""What `mnemo verify` makes of topics that lost their beginning, with a Kafka and a store in memory."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import pytest

from processors.feed import CauseJson, ChangeJson, MemoryJson, SourceJson
from processors.records import Owner
from runtime.settings import load_settings
from store.verification import Findings
from store.verification.findings import ACCEPTED, FEED
from store.verification.lookups import Head, TopicLookups
from streams.delivery import Record
from streams.verification.feed import _FIELDS, FeedCheck, same_story
from streams.verification.notebook import Notebook
from streams.verification.topic_log import Span, TopicLog
from streams.verification.turns import TurnsCheck

NOW = datetime(2026, 3, 21, 12, tzinfo=UTC)
OWNER = Owner("acme", "u")
NOT_IN_HISTORY = "a record tells of a change that the history does not have"
SETTINGS = load_settings({})


@dataclass
class _Log:
    """One partition, 0, of each topic."""

    span: Span
    seqs: Sequence[int] = ()
    committed_offsets: Mapping[int, int] = field(default_factory=dict)

    async def spans(self, topic: str) -> dict[int, Span]:
        return {0: self.span}

    async def committed(self, group: str, topic: str) -> Mapping[int, int]:
        return self.committed_offsets

    async def read(self, topic: str, spans: Mapping[int, Span]) -> AsyncIterator[list[Record]]:
        if self.seqs:
            yield [
                Record(
                    topic=topic,
                    partition=0,
                    offset=self.span.begin + n,
                    received_at=NOW,
                    key=b"acme/u",
                    value=msgspec.json.encode({"seq": seq, "app": OWNER.app, "owner": OWNER.owner}),
                    headers=(),
                )
                for n, seq in enumerate(self.seqs)
            ]


@dataclass
class _Store:
    """`recent`: the changes that were made after the oldest record."""

    recent: Sequence[int] = ()
    known: Sequence[int] = ()

    async def heads(self, app: str | None) -> AsyncIterator[list[Head]]:
        yield [Head(1, OWNER, 9, None, 0)]

    async def changes(self, keys: Sequence[object]) -> dict[int, object]:
        return {}

    async def has_other_topics(self, topics: Sequence[str]) -> bool:
        return False

    async def made_since(self, owner_key: int, first: int, last: int, since: datetime | None) -> tuple[int, int, int]:
        made = [seq for seq in range(first, last + 1) if since is None or seq in self.recent]
        return (len(made), made[0], made[-1]) if made else (0, 0, 0)

    async def pending(self, app: str | None) -> AsyncIterator[list[object]]:
        yield []

    async def still_pending(self, turns: Sequence[object]) -> set[int]:
        return set()

    async def known_from(self, topic: str, offsets: Mapping[int, int]) -> set[int]:
        return {n for n, offset in offsets.items() if any(each >= offset for each in self.known)}


def _found(kind: type[FeedCheck] | type[TurnsCheck], log: _Log, store: _Store) -> list[tuple[str, Any]]:
    findings = Findings([ACCEPTED, FEED], limit=20)
    with Notebook() as notebook:
        check = kind(
            SETTINGS,
            cast("TopicLog", log),
            cast("TopicLookups", store),
            notebook,
            findings,
            app=None,
            progress=lambda _: None,
        )
        asyncio.run(check.run())
    return [
        (each.what, each.where.get("seq"))
        for finding in findings.all
        for each in finding.evidence
        if each.what != NOT_IN_HISTORY
    ]


def test_late_duplicates_of_changes_past_the_retention_miss_nothing() -> None:
    log = _Log(Span(7, 11), [5, 6, 8, 9])
    assert _found(FeedCheck, log, _Store()) == []


def test_a_change_that_must_still_be_there_is_missed_after_a_retention_too() -> None:
    log = _Log(Span(7, 11), [5, 6, 8, 9])
    assert _found(FeedCheck, log, _Store(recent=[7])) == [("a change comes before an earlier one", 8)]
    whole = _Log(Span(0, 8), [1, 2, 3, 4, 5, 6, 8, 9])
    assert _found(FeedCheck, whole, _Store()) == [("a change comes before an earlier one", 8)]


GONE = "records were deleted, and the last of them is neither stored nor parked"


def test_records_that_went_before_anybody_came_are_found_also_without_an_offset() -> None:
    """Kafka drops the offsets of a group that nobody was in for a week."""
    assert _found(TurnsCheck, _Log(Span(5_000, 5_000)), _Store(known=[4_998])) == [(GONE, None)]
    assert _found(TurnsCheck, _Log(Span(5_000, 5_000)), _Store(known=[4_999])) == []
    assert _found(TurnsCheck, _Log(Span(0, 0)), _Store()) == []
    committed = _Log(Span(5_000, 5_000), committed_offsets={0: 5_000})
    assert _found(TurnsCheck, committed, _Store()) == []


def _told() -> dict[str, Any]:
    return {
        "seq": 1,
        "app": "acme",
        "memory": {
            "content": "Tea",
            "strength": 0.5,
            "data": {"a": 1},
            "validTo": "2026-01-01T00:00:00Z",
            "sources": [{"turnId": "t-1", "role": "user"}],
        },
        "cause": {"kind": "turn", "id": "t-1"},
    }


def test_a_record_from_before_a_field_was_added_says_the_same() -> None:
    ours = _told()
    ours["shard"] = 3
    ours["memory"]["language"] = "en"
    ours["memory"]["sources"][0]["channel"] = "voice"
    ours["cause"]["run"] = 0
    assert same_story(_told(), ours, forgotten=False)
    assert same_story(ours, ours, forgotten=False)


@pytest.mark.parametrize("path", ["seq", "memory.content", "memory.validTo", "cause.id", "memory.data.a"])
def test_a_record_that_lacks_what_every_record_has_says_another_thing(path: str) -> None:
    said = _told()
    *outer, last = path.split(".")
    place = said
    for name in outer:
        place = place[name]
    del place[last]
    assert not same_story(said, _told(), forgotten=False)


def test_sources_that_are_missing_are_another_thing_unless_it_was_forgotten() -> None:
    said = _told()
    said["memory"]["sources"] = []
    assert not same_story(said, _told(), forgotten=False)
    assert same_story(said, _told(), forgotten=True)


def test_the_fields_that_every_record_tells_of_are_those_of_the_schema() -> None:
    """A field that is added to the schema is not added there."""
    shown: dict[str, type[msgspec.Struct]] = {
        "": ChangeJson,
        "memory": MemoryJson,
        "sources": SourceJson,
        "cause": CauseJson,
    }
    for name, struct in shown.items():
        assert _FIELDS[name] <= {each.encode_name for each in msgspec.structs.fields(struct)}
    assert _FIELDS.keys() == shown.keys()
