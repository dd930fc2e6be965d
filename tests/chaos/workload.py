"""What the verifier publishes, and what has to become of it. Nothing of the project is known here.

Turn n of owner o says one thing, "Number n of o", so it becomes one memory. Some are sent twice, some say nothing worth
keeping, some cannot be stored: of each it is known beforehand what it ends as.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from random import Random
from typing import Any

APP = "chaos"
SKEWS = (timedelta(hours=-5), timedelta(0), timedelta(hours=3))
"""Of the clocks of the producers."""
_HOT_SHARE = 20
"""One owner in so many gets four times as many turns."""
_SESSIONS = 3
_LONGEST_LAG = 60
"""Sends between a turn and its repetition."""
_REPEATED = 0.05


class Kind(StrEnum):
    """What a turn is meant to become."""

    FACT = "fact"
    QUIET = "quiet"
    """Only the assistant speaks: stored, without a memory."""
    OFF_RECORD = "off_record"
    REFUSED = "model_refused"
    BROKEN = "invalid_json"
    UNRULY = "invalid_field"
    REUSED = "id_reused"
    """Another text under an id that the owner has used."""

    @property
    def is_turn(self) -> bool:
        """Whether the owner's turn by that id is this one: not a broken one, nor one under another's id."""
        return self not in {Kind.BROKEN, Kind.REUSED}


_WEIGHTS = {
    Kind.FACT: 92,
    Kind.QUIET: 2,
    Kind.OFF_RECORD: 1,
    Kind.REFUSED: 2,
    Kind.BROKEN: 1,
    Kind.UNRULY: 1,
    Kind.REUSED: 1,
}


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn as it was thought up. `text` is the memory that comes of it, None where none does."""

    id: str
    owner: str
    kind: Kind
    said: str
    session: str | None
    text: str | None = None

    @property
    def memory(self) -> str | None:
        """What would come of it if it were the first of its id."""
        return self.said.removeprefix("FACT: ") if self.kind is Kind.REUSED else self.text

    def value(self, said_at: datetime) -> bytes:
        """The record, by a producer whose clock shows `said_at`."""
        role = {Kind.UNRULY: "robot", Kind.QUIET: "assistant"}.get(self.kind, "user")
        turn: dict[str, Any] = {
            "id": self.id,
            "app": APP,
            "owner": self.owner,
            "session": self.session,
            "said_at": said_at.isoformat(),
            "messages": [{"role": role, "content": self.said}],
            "off_record": self.kind is Kind.OFF_RECORD,
        }
        encoded = json.dumps(turn).encode()
        return encoded[:-2] if self.kind is Kind.BROKEN else encoded

    @property
    def key(self) -> bytes:
        """Of the record."""
        return f"{APP}/{self.owner}".encode()


@dataclass(frozen=True, slots=True)
class Sending:
    """A turn that one of the producers sends."""

    turn: Turn
    producer: int
    value: bytes


@dataclass
class Workload:
    """All that is sent, and whose record is whose."""

    began_at: datetime
    by_value: dict[bytes, Turn] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Turns so far, by owner."""

    def sending(self, turn: Turn, producer: int, after: timedelta) -> Sending:
        """`turn` as that producer sends it, `after` so long."""
        value = turn.value(self.began_at + after + SKEWS[producer])
        self.by_value[value] = turn
        return Sending(turn, producer, value)

    def fact(self, owner: str, session: str | None = None) -> Turn:
        """The next turn of `owner` that has something to say."""
        number = self.next_number(owner)
        text = f"Number {number} of {owner}"
        return Turn(f"{owner}-{number}", owner, Kind.FACT, f"FACT: {text}", session, text)

    def next_number(self, owner: str) -> int:
        """Counted from 1."""
        self.numbers[owner] += 1
        return self.numbers[owner]


def planned(workload: Workload, random: Random, *, turns: int, owners: int) -> list[Sending]:
    """`turns` turns of `owners` owners and the repetitions among them, in the order in which they are sent."""
    weights = [4 if n % _HOT_SHARE == 0 else 1 for n in range(owners)]
    names = [f"owner-{n}" for n in range(owners)]
    sent: dict[str, list[str]] = defaultdict(list)
    due: dict[int, list[Sending]] = defaultdict(list)
    order: list[Sending] = []
    for place in range(turns):
        owner = random.choices(names, weights)[0]
        turn = _turn(workload, random, owner, sent[owner], place)
        after = timedelta(seconds=place)
        order.append(workload.sending(turn, random.randrange(len(SKEWS)), after))
        if turn.kind is Kind.FACT:
            sent[owner].append(turn.id)
            if random.random() < _REPEATED:
                lag = random.choice((1, random.randint(2, _LONGEST_LAG)))
                again = workload.sending(turn, random.randrange(len(SKEWS)), after + timedelta(seconds=lag))
                due[place + lag].append(again)
        order += due.pop(place, [])
    return order + [sending for place in sorted(due) for sending in due[place]]


def _turn(workload: Workload, random: Random, owner: str, earlier: Sequence[str], place: int) -> Turn:
    number = workload.numbers[owner]
    has_sessions = int(owner.rpartition("-")[2]) % 4 != 0
    session = f"s-{number // 4 % _SESSIONS}" if has_sessions else None
    [kind] = random.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
    if kind is Kind.FACT or (kind is Kind.REUSED and not earlier):
        return workload.fact(owner, session)
    if kind is Kind.REUSED:
        return Turn(random.choice(earlier[-20:]), owner, kind, f"FACT: Other words, {place} of {owner}", session)
    turn_id = f"{owner}-{workload.next_number(owner)}"
    said = {
        Kind.QUIET: "You are welcome.",
        Kind.OFF_RECORD: f"FACT: A secret of {owner}, {place}",
        Kind.REFUSED: f"FACT: Number {place} of nobody | importance=none",
    }
    return Turn(turn_id, owner, kind, said.get(kind, f"FACT: Number {place} of nobody"), session)


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a record stands on its topic."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Logged:
    """A record of the topic of turns."""

    place: Place
    turn: Turn


@dataclass(frozen=True, slots=True)
class Expected:
    """What a serial reader of the topic would have made of it."""

    turns: Mapping[tuple[str, str], Place]
    """Those that end as stored, by owner and id: where each stands first, in that order."""
    texts: Mapping[str, Sequence[tuple[str, str]]]
    """By owner: turn and memory, in the order of the topic."""
    parked: Mapping[Place, str]
    """With the reason."""
    parked_turns: Mapping[tuple[str, str], str]
    """Turns that are known by their id and end as parked, with the reason."""
    repeated: int


def oracle(log: Iterable[Logged]) -> Expected:
    """One reader, one record after the other. Of an owner's id the first record counts.

    log: in order per partition.
    """
    first: dict[tuple[str, str], Logged] = {}
    texts: dict[str, list[tuple[str, str]]] = defaultdict(list)
    parked: dict[Place, str] = {}
    parked_turns: dict[tuple[str, str], str] = {}
    repeated = 0
    for logged in log:
        turn = logged.turn
        name = (turn.owner, turn.id)
        if turn.kind in {Kind.BROKEN, Kind.UNRULY, Kind.REFUSED}:
            parked[logged.place] = turn.kind.value
            if turn.kind is not Kind.BROKEN:
                parked_turns[name] = turn.kind.value
        elif name not in first:
            first[name] = logged
            if turn.memory is not None:
                texts[turn.owner].append((turn.id, turn.memory))
        elif first[name].turn.said != turn.said:
            parked[logged.place] = Kind.REUSED.value
        else:
            repeated += 1
    return Expected({name: each.place for name, each in first.items()}, texts, parked, parked_turns, repeated)


def probes(workload: Workload, owners: Iterable[str]) -> Iterator[Sending]:
    """A turn of each of `owners`, said now."""
    for owner in owners:
        yield workload.sending(workload.fact(owner), 1, datetime.now(UTC) - workload.began_at)
