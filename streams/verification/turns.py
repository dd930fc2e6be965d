"""Whether every acknowledged turn is stored or parked: the topics of turns and windows against the store.

What counts is the order in which things are looked at. First how far the groups have committed, then the store, then
where the topics end. A turn that extract has committed has its effect in the store, or is set aside, or its window
lies where reconcile has not committed yet. So whatever is looked at later can only be further, and nothing that moves
meanwhile is taken for lost.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from mnemostream.decoding import fingerprint
from mnemostream.errors import InvalidTurn

from processors.errors import Rejected
from processors.records import Owner, Place
from runtime.settings import Settings
from store.verification.findings import ACCEPTED, Evidence, Finding, Findings
from store.verification.lookups import Reading, TopicLookups
from store.verification.sweep import Progress
from streams.delivery import Record
from streams.records import place_of, read_turn, read_window, run_of
from streams.topics import CANDIDATES, TURNS, topic_name
from streams.verification.notebook import Notebook, Unsettled
from streams.verification.topic_log import Span, TopicLog

_PAGE: Final = 500


class TurnsCheck:
    """Reads both topics once."""

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
        self._finding: Finding = findings[ACCEPTED]
        self._app = app
        self._progress = progress
        self._group = settings.consumer_group
        self._turns = topic_name(settings, TURNS)
        self._candidates = topic_name(settings, CANDIDATES)

    async def run(self) -> None:
        """Raises BrokerUnavailable, StoreUnavailable."""
        self._finding.checked["records"] += 0
        reconciled = await self._log.committed(f"{self._group}-reconcile", self._candidates)
        extracted = await self._log.committed(f"{self._group}-extract", self._turns)
        async for page in self._store.pending(self._app):
            self._notebook.note_unsettled(
                Unsettled(owner, turn_id, 0, True, place.topic, place.partition, place.offset)
                for owner, turn_id, place in page
            )
        turns, windows = await self._log.spans(self._turns), await self._log.spans(self._candidates)
        self._deleted(self._turns, extracted, turns)
        self._deleted(self._candidates, reconciled, windows)
        await self._deleted_unseen({n: span for n, span in turns.items() if n not in extracted and span.begin > 0})
        await self._read_turns(turns, extracted)
        if self._notebook.unsettled():
            await self._read_windows(windows, reconciled)
        await self._tell_lost()

    def _deleted(self, topic: str, committed: Mapping[int, int], spans: Mapping[int, Span]) -> None:
        """Records that went with the topic's retention before their group had committed them."""
        self._finding.found(
            Evidence(
                "records were deleted before they were worked on",
                {"topic": topic, "partition": number, "offset": committed[number], "to": span.begin - 1},
            )
            for number, span in sorted(spans.items())
            if number in committed and committed[number] < span.begin
        )

    async def _deleted_unseen(self, spans: Mapping[int, Span]) -> None:
        """The same where the group has no offset: Kafka lets go of it when nobody was in the group for some days. The
        last record that is gone, or one after it, must be known by its place then. What the windows brought is pending
        in the log of turns, and missed there."""
        if spans:
            known = await self._store.known_from(self._turns, {n: span.begin - 1 for n, span in spans.items()})
            self._finding.found(
                Evidence(
                    "records were deleted, and the last of them is neither stored nor parked",
                    {"topic": self._turns, "partition": number, "to": spans[number].begin - 1},
                )
                for number in sorted(spans.keys() - known)
            )

    async def _read_turns(self, spans: Mapping[int, Span], extracted: Mapping[int, int]) -> None:
        total = sum(span.end - span.begin for span in spans.values())
        done = {number: _done(span, extracted.get(number)) for number, span in spans.items()}
        read = 0
        async for records in self._log.read(self._turns, spans):
            mine = [each for each in records if self._is_meant(each)]
            ahead = [each for each in mine if each.offset >= done[each.partition]]
            self._notebook.note_on_the_way(_on_the_way(ahead))
            self._finding.waiting += len(ahead)
            self._finding.checked["records"] += len(mine) - len(ahead)
            await self._settled([each for each in mine if each.offset < done[each.partition]])
            read += len(records)
            self._progress(f"Reading {self._turns}: {read:,} of {total:,} records")

    async def _settled(self, records: Sequence[Record]) -> None:
        """Whether what extract is done with is settled or set aside; what is not yet is noted."""
        readings: list[Reading] = []
        unreadable: list[Place] = []
        for record in records:
            reading = _reading(record)
            if reading is None:
                unreadable.append(place_of(record))
            else:
                readings.append(reading)
        if unreadable:
            self._finding.found(
                Evidence("a record that is no turn was not set aside", _where(place))
                for place in await self._store.not_parked(unreadable)
            )
        if not readings:
            return
        open_readings = await self._store.open_readings(readings)
        self._finding.found(
            Evidence(
                "a turn that uses the id of another was not set aside",
                {"turn": readings[n].turn_id, **_where(readings[n].place)},
                *readings[n].owner,
            )
            for n, reused in open_readings.items()
            if reused
        )
        self._notebook.note_unsettled(_unsettled(readings[n]) for n, reused in open_readings.items() if not reused)

    async def _read_windows(self, spans: Mapping[int, Span], reconciled: Mapping[int, int]) -> None:
        """What reconcile has still before it."""
        ahead = {number: Span(_done(span, reconciled.get(number)), span.end) for number, span in spans.items()}
        total, read = sum(span.end - span.begin for span in ahead.values()), 0
        async for records in self._log.read(self._candidates, ahead):
            self._notebook.note_on_the_way(turn for record in records for turn in _turns_of(record))
            read += len(records)
            self._progress(f"Reading {self._candidates}: {read:,} of {total:,} records")

    async def _tell_lost(self) -> None:
        for page in self._notebook.lost(_PAGE):
            pending = [turn for turn in page if turn.pending]
            still = await self._store.still_pending([(turn.owner, turn.turn_id) for turn in pending])
            self._finding.found(
                _lost(turn, "a turn is pending, and nothing on the topics brings it on")
                for n, turn in enumerate(pending)
                if n in still
            )
            self._finding.found(
                _lost(turn, "a turn was read, and is neither stored, nor parked, nor on its way")
                for turn in page
                if not turn.pending
            )

    def _is_meant(self, record: Record) -> bool:
        """Without an app every record; else those whose key names it."""
        return self._app is None or (record.key or b"").partition(b"/")[0] == self._app.encode()


def _done(span: Span, committed: int | None) -> int:
    """Up to where the group is done; the beginning where it never was there, or the topic was made anew since."""
    return span.begin if committed is None or committed > span.end else max(committed, span.begin)


def _reading(record: Record) -> Reading | None:
    """The turn in `record`; None where there is none that could be read."""
    try:
        turn, run = read_turn(record), run_of(record)
    except (InvalidTurn, Rejected):
        return None
    return Reading(Owner(turn.app, turn.owner), turn.id, run, place_of(record), fingerprint(turn))


def _on_the_way(records: Sequence[Record]) -> list[tuple[Owner, str, int]]:
    readings = (_reading(record) for record in records)
    return [(reading.owner, reading.turn_id, reading.run) for reading in readings if reading is not None]


def _turns_of(record: Record) -> list[tuple[Owner, str, int]]:
    """The turns of a window; none where it cannot be read: then it brings nobody on."""
    try:
        window = read_window(record)
    except Rejected:
        return []
    return [(Owner(window.app, window.owner), turn.id, window.run) for turn in window.turns]


def _unsettled(reading: Reading) -> Unsettled:
    place = reading.place
    return Unsettled(reading.owner, reading.turn_id, reading.run, False, place.topic, place.partition, place.offset)


def _lost(turn: Unsettled, what: str) -> Evidence:
    where = {"turn": turn.turn_id, "topic": turn.topic, "partition": turn.partition, "offset": turn.offset}
    return Evidence(what, where | ({"run": turn.run} if turn.run else {}), turn.owner.app, turn.owner.owner)


def _where(place: Place) -> dict[str, object]:
    return {"topic": place.topic, "partition": place.partition, "offset": place.offset}
