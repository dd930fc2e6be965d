"""Whether the topic of changes says what the history says: each change there, in order, without a gap, and the same.

First the store is asked how far each owner's history goes and what of it waits in the outbox; only then where the topic
ends. So what does not wait was out before, and lies below that end. What the topic has lost by its retention is not
looked for: changes older than the oldest record that a partition still has. What comes first there may be the late
duplicate of a change that is long gone, so neither is a number missed that was given before.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from mnemostream.decoding import partition_key

from processors.feed import change_value
from processors.records import Owner
from runtime.settings import Settings
from store.verification.findings import FEED, Evidence, Finding, Findings
from store.verification.lookups import Told, TopicLookups
from store.verification.sweep import Progress
from streams.delivery import Record
from streams.topics import CANDIDATES, CHANGES, TURNS, topic_name
from streams.verification.notebook import FeedState, Notebook
from streams.verification.topic_log import Span, TopicLog, partition_of

_PAGE: Final = 500
_CLOCKS: Final = timedelta(minutes=5)
"""By how much the clocks of Postgres and of the workers may differ."""
_SCRUBBED: Final = ("session", "content", "data", "tags", "type", "subject", "attribute", "retiredReason", "sources")
"""What a change loses when its memory is forgotten after it was published."""
_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    name: frozenset(fields.split())
    for name, fields in {
        "": "seq app owner kind at memory cause decision",
        "memory": "id owner session content data tags type category importance confidence pinned state strength subject"
        " attribute validFrom validTo recordedAt retiredAt retiredReason supersedes supersededBy accessCount accessedAt"
        " confirmedAt confirmations expiresAt fadesAt etag sources restates",
        "sources": "turnId messageIndex role saidAt",
        "cause": "kind id",
    }.items()
}
"""What every record of v1 tells of. A field that is added one day does not belong here: older records lack it."""


class FeedCheck:
    """Reads the topic once."""

    def __init__(
        self,
        settings: Settings,
        log: TopicLog,
        store: TopicLookups,
        notebook: Notebook,
        findings: Findings,
        *,
        app: str | None,
        progress: Progress,
    ) -> None:
        self._log = log
        self._store = store
        self._notebook = notebook
        self._finding: Finding = findings[FEED]
        self._app = app
        self._progress = progress
        self._topic = topic_name(settings, CHANGES)
        self._prefix_topics = [topic_name(settings, TURNS), topic_name(settings, CANDIDATES)]
        self._spans: dict[int, Span] = {}
        self._oldest: dict[int, datetime] = {}
        """By partition, when its oldest record was sent."""
        self._switched: bool | None = None
        """Whether the prefix of the topics was switched once; None: not asked yet."""

    async def run(self) -> None:
        """Raises BrokerUnavailable, StoreUnavailable."""
        self._finding.checked["records"] += 0
        async for heads in self._store.heads(self._app):
            self._notebook.expect(heads)
            self._finding.waiting += sum(head.waiting for head in heads)
            for head in heads:
                if head.has_holes:
                    async for seqs in self._store.holes(head):
                        self._notebook.expect_each(head.owner, seqs)
        self._spans = await self._log.spans(self._topic)
        total, read = sum(span.end - span.begin for span in self._spans.values()), 0
        async for records in self._log.read(self._topic, self._spans):
            for record in records:
                self._oldest.setdefault(record.partition, record.received_at)
            await self._take(records)
            read += len(records)
            self._progress(f"Reading {self._topic}: {read:,} of {total:,} records")
        await self._tell_unpublished()

    async def _take(self, records: Sequence[Record]) -> None:
        shown: list[tuple[Record, Owner, dict[str, Any]]] = []
        for record in records:
            value = _decoded(record.value)
            if value is None:
                self._broken("a record is no change", record)
                continue
            owner = Owner(value["app"], value["owner"])
            if self._app is None or owner.app == self._app:
                shown.append((record, owner, value))
        self._finding.checked["records"] += len(shown)
        await self._in_order(shown)
        told = await self._store.changes([(owner, value["seq"]) for _, owner, value in shown])
        for n, (record, owner, value) in enumerate(shown):
            if record.key != partition_key(*owner):
                self._broken("a record has the key of another owner", record, owner, value["seq"])
            if n not in told:
                self._broken("a record tells of a change that the history does not have", record, owner, value["seq"])
            elif not _agree(record.value or b"", value, told[n]):
                self._broken("a record says another thing than the history", record, owner, value["seq"])

    async def _in_order(self, shown: Sequence[tuple[Record, Owner, dict[str, Any]]]) -> None:
        """Each owner's changes appear for the first time one after the other, on one partition."""
        states: dict[Owner, FeedState] = {}
        for record, owner, value in shown:
            state = states[owner] if owner in states else self._notebook.seen(owner)
            seq: int = value["seq"]
            if state.partition is not None and state.partition != record.partition:
                self._broken("an owner's changes lie on two partitions", record, owner, seq)
            first, last = seq if state.first is None else state.first, seq if state.last is None else state.last
            if seq > last + 1 and not await self._long_gone(state, record.partition, last + 1, seq - 1):
                self._broken("a change comes before an earlier one", record, owner, seq, after=last)
            elif seq < first and self._spans[record.partition].begin == 0:
                self._broken("a change comes after a later one", record, owner, seq, after=first)
            states[owner] = state._replace(first=min(first, seq), last=max(last, seq), partition=record.partition)
        self._notebook.note_seen(states.values())

    async def _long_gone(self, state: FeedState, partition: int, first: int, last: int) -> bool:
        """Whether all of these may have gone with the topic's retention. An owner who came meanwhile is not judged."""
        if self._spans[partition].begin == 0:
            return False
        if state.owner_key is None:
            return True
        since = self._oldest[partition] + _CLOCKS
        changes, _, _ = await self._store.made_since(state.owner_key, first, last, since)
        return changes == 0

    async def _tell_unpublished(self) -> None:
        """What is out of the outbox, and was never on the topic."""
        for page in self._notebook.unpublished(_PAGE):
            for state in page:
                if state.first is not None and state.first > 1:
                    await self._missing(state, 1, state.first - 1)
                if (state.last or 0) < state.published_to:
                    await self._missing(state, (state.last or 0) + 1, state.published_to)
        for holes in self._notebook.holes(_PAGE):
            for state, seq in holes:
                await self._missing(state, seq, seq)

    async def _missing(self, state: FeedState, first: int, last: int) -> None:
        assert state.owner_key is not None
        partition = state.partition
        if partition is None:
            partition = partition_of(partition_key(*state.owner), list(self._spans))
        if self._switched is None:
            self._switched = await self._store.has_other_topics(self._prefix_topics)
        since = None
        if self._switched or self._spans[partition].begin > 0:
            oldest = self._oldest.get(partition)
            if oldest is None:
                return
            since = oldest + _CLOCKS
        changes, first, last = await self._store.made_since(state.owner_key, first, last, since)
        if changes:
            where = {"seq": first, "to": last, "topic": self._topic, "partition": partition}
            what = "changes are neither in the outbox nor on the topic"
            self._finding.found([Evidence(what, where, *state.owner)], count=changes)

    def _broken(
        self, what: str, record: Record, owner: Owner | None = None, seq: int | None = None, **more: int
    ) -> None:
        where: dict[str, Any] = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
        if seq is not None:
            where = {"seq": seq, **where}
        app, name = (None, None) if owner is None else owner
        self._finding.found([Evidence(what, where | more, app, name)])


def _decoded(value: bytes | None) -> dict[str, Any] | None:
    """The change in a record, as far as it says whose it is and which."""
    try:
        change = msgspec.json.decode(value or b"")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(change, dict):
        return None
    kinds: Mapping[str, type] = {"seq": int, "app": str, "owner": str}
    fits = all(isinstance(change.get(name), kind) for name, kind in kinds.items()) and 0 < change["seq"] < 2**63
    return change if fits and "\0" not in change["app"] + change["owner"] else None


def _agree(value: bytes, change: dict[str, Any], told: Told) -> bool:
    """Whether a record says what the history says; without its text where it was forgotten since it was published."""
    ours = change_value(told.change)
    if value == ours:
        return True
    return same_story(change, msgspec.json.decode(ours), forgotten=told.forgotten)


def same_story(said: dict[str, Any], ours: dict[str, Any], *, forgotten: bool) -> bool:
    """Whether `said` tells what `ours` does, in the fields that there were when it was written."""
    compared = [_comparable(said), _comparable(_known_to(said, ours))]
    if forgotten:
        compared = [_scrubbed(each) for each in compared]
    return bool(compared[0] == compared[1])


def _known_to(said: Any, ours: Any, name: str = "") -> Any:
    """`ours` without the fields that `said` lacks and that came to the schema later."""
    if name not in _FIELDS:
        return ours
    if isinstance(said, list) and isinstance(ours, list):
        return [_known_to(*pair, name) for pair in zip(said, ours, strict=False)] + ours[len(said) :]
    if not isinstance(said, dict) or not isinstance(ours, dict):
        return ours
    return {
        field: _known_to(said.get(field), value, field)
        for field, value in ours.items()
        if field in said or field in _FIELDS[name]
    }


def _comparable(change: dict[str, Any]) -> dict[str, Any]:
    """With its strength to nine digits: it is computed again, perhaps by another Postgres."""
    memory = change.get("memory")
    if not isinstance(memory, dict) or not isinstance(memory.get("strength"), int | float):
        return change
    return change | {"memory": memory | {"strength": round(memory["strength"], 9)}}


def _scrubbed(change: dict[str, Any]) -> dict[str, Any]:
    memory = change.get("memory")
    if not isinstance(memory, dict):
        return change
    return change | {"memory": {name: value for name, value in memory.items() if name not in _SCRUBBED}}
