"""What each stage does with a window of records. Neither Faust nor Postgres is known here."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

import msgspec
from mnemostream.decoding import fingerprint
from mnemostream.errors import InvalidTurn
from mnemostream.redaction import redact_turn
from mnemostream.turns import Reason, Turn

from processors.answers import Dropped
from processors.errors import Rejected
from processors.extraction import ReadAnswer, ReadingFailed, ReadRequest
from processors.facts import Fact, Reading, Window, WindowTurn
from processors.folding import folded, folded_by_vectors
from processors.memories import CLOCK_SKEW
from processors.records import AcceptedTurn, AppProfile, Begun, ContextMessage, Owner, TurnStatus
from processors.small_talk import needs_no_reading
from processors.vectors import pack
from runtime.failpoints import Failpoint, reach
from streams.delivery import Record
from streams.parking import replay_of
from streams.ports import Embedder, Publisher, Reader, Reconciling, TurnLog
from streams.records import RUN_HEADER, candidate_headers, candidate_key, place_of, read_turn, read_window, run_of


class ExtractObserver(Protocol):
    """Hears what became of turns, for metrics."""

    def redacted(self, counts: Mapping[str, int]) -> None:
        """So many lines were redacted, by rule."""
        ...

    def asked(self, reading: Reading, requests: int) -> None:
        """A model was asked in so many requests, and gave facts or nothing usable."""
        ...

    def read(self, facts: int, unread_characters: int) -> None:
        """A window gave so many facts; so many characters of it were left out."""
        ...

    def dropped(self, reason: Dropped, count: int) -> None:
        """Facts of an answer were not taken."""
        ...

    def turn(self, status: TurnStatus) -> None:
        """A turn had this status in the log of turns."""
        ...


_DONE: Final = frozenset({TurnStatus.SETTLED, TurnStatus.PARKED})
_LONG: Final = 50_000
"""Bytes of a record beyond which its secrets are looked for in a thread: a megabyte can take seconds."""


class Extract:
    """turns → candidates: redact, write as pending, ask the model, embed, publish one window."""

    def __init__(
        self,
        turns: TurnLog,
        reader: Reader,
        embedder: Embedder,
        publisher: Publisher,
        *,
        topic: str,
        max_facts_per_turn: int = 5,
        observer: ExtractObserver,
    ) -> None:
        self._turns = turns
        self._reader = reader
        self._embedder = embedder
        self._publisher = publisher
        self._topic = topic
        self._max_facts_per_turn = max_facts_per_turn
        self._observer = observer

    async def __call__(self, records: Sequence[Record]) -> None:
        """Read consecutive turns of one session of one owner, all in one run. Done once their window is on the topic.

        Again: turns that took effect meanwhile are passed over, so are parked ones; the others are read again. Raises
        Rejected where the record is no turn, uses a known id for other messages, asks for another reading of a turn
        that nobody knows, or the model cannot make anything of it; Unavailable.
        """
        reach(Failpoint.EXTRACT_TAKEN)
        run = run_of(records[0])
        accepted = [await self._accepted(record) for record in records]
        owner = Owner(accepted[0].turn.app, accepted[0].turn.owner)
        begun = await self._turns.begin(owner, accepted, run=run)
        reach(Failpoint.EXTRACT_BEGUN)
        open_turns = self._open(accepted, begun)
        if open_turns:
            window = await self._window(owner, open_turns, begun.context, begun.profile)
            reach(Failpoint.EXTRACT_READ)
            await self._publisher.publish(
                self._topic,
                key=candidate_key(owner),
                value=msgspec.json.encode(msgspec.structs.replace(window, run=run)),
                headers=candidate_headers(records[-1]),
            )
            reach(Failpoint.EXTRACT_PUBLISHED)

    async def _accepted(self, record: Record) -> AcceptedTurn:
        try:
            turn = read_turn(record)
        except InvalidTurn as invalid:
            raise Rejected(invalid.reason, invalid.detail) from None
        long = record.size_bytes > _LONG
        redacted, counts = await asyncio.to_thread(redact_turn, turn) if long else redact_turn(turn)
        if counts:
            self._observer.redacted(counts)
        return AcceptedTurn(redacted, place_of(record), fingerprint(turn), replay_of(record))

    def _open(self, accepted: Sequence[AcceptedTurn], begun: Begun) -> list[AcceptedTurn]:
        """Those that have something left to do, each once: a window may hold a turn and its repetition."""
        open_turns: dict[str, AcceptedTurn] = {}
        for turn, status in zip(accepted, begun.statuses, strict=True):
            self._observer.turn(status)
            if status is TurnStatus.REUSED:
                raise Rejected(Reason.ID_REUSED, "id: a turn of this owner has it, with other messages")
            if status is TurnStatus.UNKNOWN:
                raise Rejected(Reason.INVALID_FIELD, f"header {RUN_HEADER}: there is no turn by this id to read again")
            if status not in _DONE:
                open_turns.setdefault(turn.turn.id, turn)
        return list(open_turns.values())

    async def _window(
        self,
        owner: Owner,
        accepted: Sequence[AcceptedTurn],
        context: tuple[ContextMessage, ...],
        profile: AppProfile,
    ) -> Window:
        facts: list[Fact] = []
        reading = None
        if _is_worth_reading([each.turn for each in accepted], context):
            # Small talk among them is shown too: a question in it may be what the next turn answers.
            shown = [i for i, each in enumerate(accepted) if not each.turn.off_record]
            turns = tuple(_believed(accepted[i]) for i in shown)
            answer = await self._read(ReadRequest(turns, context, profile, self._max_facts_per_turn))
            reading = answer.reading
            facts = await self._embedded(_placed(answer.facts, shown))
            self._observer.read(len(facts), answer.unread_characters)
        return Window(
            app=owner.app,
            owner=owner.owner,
            session=None if accepted[0].turn.off_record else accepted[0].turn.session,
            turns=tuple(_window_turn(each) for each in accepted),
            facts=tuple(facts),
            reading=reading,
            embedding_model=self._embedder.model.name if facts else None,
        )

    async def _read(self, request: ReadRequest) -> ReadAnswer:
        try:
            answer = await self._reader.read(request)
        except ReadingFailed as failed:
            self._observer.asked(failed.reading, failed.requests)
            raise
        self._observer.asked(answer.reading, answer.requests)
        return answer

    async def _embedded(self, facts: Sequence[Fact]) -> list[Fact]:
        """The facts with their vectors; of those of a turn that say the same, in other words too, one."""
        if not facts:
            return []
        unique, repeated = folded(facts)
        vectors = await self._embedder.embed([fact.text for fact in unique])
        kept, stays, near = folded_by_vectors(unique, vectors, self._embedder.model.auto_merge_threshold)
        if repeated + near:
            self._observer.dropped(Dropped.REPEATED, repeated + near)
        return [msgspec.structs.replace(fact, embedding=pack(vector)) for fact, vector in zip(kept, stays, strict=True)]


class Reconcile:
    """candidates → store: the owner-serial step."""

    def __init__(self, reconciler: Reconciling) -> None:
        self._reconciler = reconciler

    async def __call__(self, records: Sequence[Record]) -> None:
        """Take each record's window into the store. Again changes nothing. Raises Rejected, Unavailable."""
        for record in records:
            reach(Failpoint.RECONCILE_TAKEN)
            await self._reconciler.reconcile(read_window(record))
            reach(Failpoint.RECONCILE_STORED)


def _believed(accepted: AcceptedTurn) -> Turn:
    """The turn as it is read: what it says of dates and ends counts from when it can have been said."""
    latest = accepted.place.received_at + CLOCK_SKEW
    return accepted.turn if accepted.turn.said_at <= latest else replace(accepted.turn, said_at=latest)


def _is_worth_reading(turns: Sequence[Turn], context: Sequence[ContextMessage]) -> bool:
    """Whether any of the turns may say something, each after what was said before it."""
    before = list(context)
    for turn in turns:
        if not needs_no_reading(turn, before):
            return True
        if not turn.off_record:
            before += [ContextMessage(message.role, message.content, message.name) for message in turn.messages]
    return False


def _placed(facts: Sequence[Fact], shown: Sequence[int]) -> list[Fact]:
    """The facts with their turn counted in the whole window."""
    if any(not 0 <= fact.turn < len(shown) for fact in facts):
        raise Rejected(Reason.MODEL_ANSWER_UNUSABLE, "turn: must be an index into the window")
    return [msgspec.structs.replace(fact, turn=shown[fact.turn]) for fact in facts]


def _window_turn(accepted: AcceptedTurn) -> WindowTurn:
    turn, place = accepted.turn, accepted.place
    return WindowTurn(
        id=turn.id,
        topic=place.topic,
        partition=place.partition,
        offset=place.offset,
        received_at=place.received_at,
        said_at=place.received_at if turn.off_record else turn.said_at,
    )
