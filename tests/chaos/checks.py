"""What the verifier has seen from outside, and whether it is what a serial reader would have left. No I/O."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Final

from tests.chaos.workload import Expected, Kind, Logged, Place, oracle

Name = tuple[str, str]
"""Owner and id of a turn."""
_UNUSABLE: Final = "model_answer_unusable"
_EXCUSED_REASONS: Final = frozenset({_UNUSABLE, Kind.REUSED.value, Kind.REFUSED.value})
"""What a record may be parked for whose turn the model answered with garbage."""


class Fault(StrEnum):
    """What can be found wrong."""

    LOST = "lost"
    DOUBLED = "doubled"
    REORDERED = "reordered"
    PARKED = "parked wrongly"
    FEED = "change feed"
    STORE = "store"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong, and what shows it."""

    fault: Fault
    evidence: str


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A line of the journal: the broker had it, and the line was on disk before anything else was done."""

    place: Place
    owner: str
    turn_id: str
    at: float


@dataclass(frozen=True, slots=True)
class Effect:
    """A row of the ledger."""

    outcome: str
    place: Place
    at: float


@dataclass(frozen=True, slots=True)
class Change:
    """An entry of an owner's history. `text` and `state` are those of the memory after it."""

    seq: int
    kind: str
    memory_id: str | None
    text: str | None
    state: str | None
    cause: str


@dataclass(frozen=True, slots=True)
class Published:
    """A record of the change feed, in the order of its partition."""

    owner: str
    change: Change
    value: bytes


@dataclass(frozen=True, slots=True)
class Parked:
    """A record of parked.v1: the topic without its prefix, the place where it stood first, when it was parked."""

    topic: str
    place: Place
    reason: str
    at: float


@dataclass
class Observation:
    """All that was seen after the last turn had settled, or was given up."""

    acknowledged: Sequence[Acknowledged] = ()
    log: Sequence[Logged] = ()
    """The topic of turns, in order per partition."""
    foreign: Sequence[Place] = ()
    """Records there that nobody of us has sent."""
    ledger: Mapping[Name, Sequence[Effect]] = field(default_factory=dict)
    turns: Mapping[Name, tuple[str, str | None]] = field(default_factory=dict)
    """State and reason."""
    live: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By SQL: owner, id, text."""
    dead: Sequence[tuple[str, str, str]] = ()
    """Memories that are not live: owner, text, state."""
    decisions: Mapping[Name, int] = field(default_factory=dict)
    """Whatever was done by them, by turn."""
    history: Mapping[str, Sequence[Change]] = field(default_factory=dict)
    seqs: Mapping[str, int] = field(default_factory=dict)
    """The last number that each owner gave out."""
    outbox: int = 0
    parked: Mapping[tuple[str, Place], str] = field(default_factory=dict)
    """Rows: topic without its prefix, place, reason."""
    parked_topic: Sequence[Parked] = ()
    garbage: Sequence[tuple[float, float]] = ()
    """When the model answered garbage: from, until."""
    candidates: Sequence[Name] = ()
    """The turns of all windows, one after the other."""
    feed: Sequence[Published] = ()
    listed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By RPC ListMemories: owner, id, text."""
    told: Mapping[Name, tuple[str, str]] = field(default_factory=dict)
    """By RPC GetTurn: state and reason."""
    lag: int = 0
    """Records whose offset no group has committed."""


def check(seen: Observation) -> list[Finding]:
    """All that is wrong."""
    wanted = oracle(seen.log)
    checks = (_log, _turns, _poison, _parked, _memories, _decisions, _order, _causes, _history, _feed, _rpc)
    return [finding for each in checks for finding in each(seen, wanted)]


def excused(seen: Observation) -> set[Name]:
    """Turns that were rightly parked although they are good: the model answered them with garbage.

    By name, not by place: one that was sent twice, or whose id came again, may end either way from then on.
    """
    read = {
        logged.place: (logged.turn.owner, logged.turn.id)
        for logged in seen.log
        if logged.turn.kind in {Kind.FACT, Kind.REFUSED, Kind.REUSED}
    }
    return {
        read[each.place]
        for each in seen.parked_topic
        if each.topic == "turns.v1"
        and each.reason == _UNUSABLE
        and each.place in read
        and any(began <= each.at <= ended for began, ended in seen.garbage)
    }


def _log(seen: Observation, wanted: Expected) -> Iterator[Finding]:
    there = {logged.place: logged.turn for logged in seen.log}
    for ack in seen.acknowledged:
        turn = there.get(ack.place)
        if turn is None or (turn.owner, turn.id) != (ack.owner, ack.turn_id):
            yield Finding(Fault.LOST, f"{ack.turn_id} was acknowledged at {_at(ack.place)} and is not there")
    for place in seen.foreign:
        yield Finding(Fault.STORE, f"the record at {_at(place)} of turns.v1 is nobody's")
    if seen.lag:
        yield Finding(Fault.STORE, f"{seen.lag} records are not committed by their groups")


def _turns(seen: Observation, wanted: Expected) -> Iterator[Finding]:
    """Each turn stored once, at a place of its own, and none that is not on the topic."""
    places: dict[Name, set[Place]] = defaultdict(set)
    for logged in seen.log:
        places[logged.turn.owner, logged.turn.id].add(logged.place)
    may_be_parked = excused(seen)
    for name, first in wanted.turns.items():
        effects = seen.ledger.get(name, ())
        state, reason = seen.turns.get(name, ("nothing", None))
        outcomes = {"STORED", "PARKED"} if name in may_be_parked else {"STORED"}
        if not effects:
            yield Finding(Fault.LOST, f"{name[1]} at {_at(first)} has no effect; the log of turns says {state}")
        elif len(effects) > 1:
            yield Finding(Fault.DOUBLED, f"{name[1]} has {len(effects)} rows in the ledger")
        elif effects[0].outcome not in outcomes:
            yield Finding(Fault.PARKED, f"{name[1]} at {_at(first)} is {effects[0].outcome} ({reason})")
        elif effects[0].place not in places[name]:
            yield Finding(Fault.STORE, f"{name[1]} is noted at {_at(effects[0].place)}, where it never stood")
        elif state != effects[0].outcome:
            yield Finding(Fault.STORE, f"{name[1]} is {effects[0].outcome}; the log of turns says {state}")
        elif state == "PARKED" and reason not in _EXCUSED_REASONS:
            yield Finding(Fault.PARKED, f"{name[1]} at {_at(first)} is PARKED ({reason})")
    for name in seen.ledger.keys() - wanted.turns.keys() - wanted.parked_turns.keys():
        yield Finding(Fault.STORE, f"{name[1]} of {name[0]} has an effect and never was a turn")


def _poison(seen: Observation, wanted: Expected) -> Iterator[Finding]:
    """Each turn that is poison and has an id parked once, for its reason."""
    may_differ = excused(seen)
    for name, reason in wanted.parked_turns.items():
        outcomes = [effect.outcome for effect in seen.ledger.get(name, ())]
        state, told = seen.turns.get(name, ("nothing", None))
        reasons = {reason, _UNUSABLE} if name in may_differ else {reason}
        if outcomes != ["PARKED"] or state != "PARKED" or told not in reasons:
            said = f"ledger {outcomes}, log of turns {state} {told}"
            yield Finding(Fault.PARKED, f"{name[1]} should be parked as {reason}: {said}")


def _parked(seen: Observation, wanted: Expected) -> Iterator[Finding]:
    """What is poison, alone, with its reason; the same on the topic, there at least once."""
    names = excused(seen)
    free = {("turns.v1", each.place) for each in seen.log if (each.turn.owner, each.turn.id) in names}
    expected = {
        ("turns.v1", place): reason for place, reason in wanted.parked.items() if ("turns.v1", place) not in free
    }
    topic = [((each.topic, each.place), each.reason) for each in seen.parked_topic]
    for what, there in (("the table", [*seen.parked.items()]), ("parked.v1", topic)):
        for key in expected.keys() - {key for key, _ in there}:
            yield Finding(Fault.LOST, f"{_at(key[1])} of {key[0]} should be parked as {expected[key]}, not in {what}")
        for key, reason in there:
            if reason != expected.get(key) and not (key in free and reason in _EXCUSED_REASONS):
                but = f", not {expected[key]}," if key in expected else ""
                yield Finding(Fault.PARKED, f"{_at(key[1])} of {key[0]} is parked as {reason}{but} in {what}")


def _memories(seen: Observation, wanted: Expected) -> Iterator[Finding]:
    """Of each turn that took effect and says something one live memory, and no other."""
    stored = _stored(seen)
    either = excused(seen)
    said = _said(seen)
    for owner in wanted.texts.keys() | seen.live.keys():
        certain = Counter(text for turn_id, text in wanted.texts.get(owner, ()) if (owner, turn_id) in stored - either)
        there = Counter(seen.live.get(owner, {}).values())
        for turn_id in (turn_id for name, turn_id in either if name == owner):
            texts = said[owner, turn_id]
            count, right = sum(there.pop(text, 0) for text in texts), int((owner, turn_id) in stored and bool(texts))
            if count != right:
                fault = Fault.LOST if count < right else Fault.DOUBLED
                yield Finding(fault, f"{owner} has {count} memories of {turn_id}, not {right}")
        for text, count in sorted((certain - there).items()):
            yield Finding(Fault.LOST, f"{owner} has no memory {text!r} ({count} too few)")
        for text, count in sorted((there - certain).items()):
            fault = Fault.DOUBLED if text in certain else Fault.STORE
            yield Finding(fault, f"{owner} has the memory {text!r} {count} times too often")
    for owner, text, state in seen.dead:
        yield Finding(Fault.STORE, f"{owner} has the memory {text!r} as {state}: nothing retires one here")


def _decisions(seen: Observation, wanted: Expected) -> Iterator[Finding]:
    """One, whatever it did, of each turn that took effect and says something: a second one mostly only confirms."""
    stored = _stored(seen)
    says = {(owner, turn_id) for owner, texts in wanted.texts.items() for turn_id, _ in texts} & stored
    for name in says | seen.decisions.keys():
        count, right = seen.decisions.get(name, 0), int(name in says)
        if count != right:
            fault = Fault.LOST if count < right else Fault.DOUBLED
            yield Finding(fault, f"{name[1]} has {count} decisions, not {right}")


def _stored(seen: Observation) -> set[Name]:
    return {name for name, effects in seen.ledger.items() if effects and effects[0].outcome == "STORED"}


def _said(seen: Observation) -> dict[Name, set[str]]:
    """What would be the memory of a turn, by its name: more than one where an id was used again."""
    said: dict[Name, set[str]] = defaultdict(set)
    for logged in seen.log:
        text = logged.turn.memory
        if text is not None:
            said[logged.turn.owner, logged.turn.id].add(text)
    return said


def _order(seen: Observation, wanted: Expected) -> Iterator[Finding]:
    """An owner's memories came to be in the order of the topic."""
    either = excused(seen)
    for owner, said in wanted.texts.items():
        added = [change.text for change in seen.history.get(owner, ()) if change.kind == "added"]
        place = {text: number for number, (turn_id, text) in enumerate(said) if (owner, turn_id) not in either}
        known = [text for text in added if text is not None and text in place]
        for before, after in pairwise(known):
            if place[before] > place[after]:
                yield Finding(Fault.REORDERED, f"{owner}: {after!r} took effect after {before!r}, and was said before")


def _causes(seen: Observation, wanted: Expected) -> Iterator[Finding]:
    """Each change adds what its turn has said: all say something new, so whatever else is done was done before."""
    said = _said(seen)
    for owner, history in seen.history.items():
        for change in history:
            if change.kind != "added":
                yield Finding(Fault.DOUBLED, f"{owner}: {change.seq} is {change.kind}, by {change.cause}")
            if change.text not in said.get((owner, change.cause), ()):
                yield Finding(Fault.STORE, f"{owner}: {change.seq} is {change.text!r}, which {change.cause} never said")


def _history(seen: Observation, wanted: Expected) -> Iterator[Finding]:
    for owner, history in seen.history.items():
        seqs = [change.seq for change in history]
        if seqs != list(range(1, len(seqs) + 1)):
            yield Finding(Fault.FEED, f"{owner}: the history has a gap: {_gap(seqs)}")
        if seen.seqs.get(owner, 0) != len(seqs):
            yield Finding(Fault.FEED, f"{owner}: gave out {seen.seqs.get(owner, 0)} numbers and has {len(seqs)}")
    if seen.outbox:
        yield Finding(Fault.FEED, f"{seen.outbox} changes wait in the outbox")


def _feed(seen: Observation, wanted: Expected) -> Iterator[Finding]:
    """In order and without gaps, the same number the same bytes, equal to the history; folded it is what is live."""
    known: dict[str, list[Published]] = defaultdict(list)
    for record in seen.feed:
        before = known[record.owner]
        seq = record.change.seq
        if seq == len(before) + 1:
            before.append(record)
        elif seq > len(before):
            yield Finding(Fault.FEED, f"{record.owner}: {seq} came to changes.v1 after {len(before)}")
        elif before[seq - 1].value != record.value:
            yield Finding(Fault.FEED, f"{record.owner}: {seq} came to changes.v1 twice and differs")
    for owner in known.keys() | seen.history.keys():
        published = [record.change for record in known.get(owner, [])]
        history = list(seen.history.get(owner, ()))
        if published != history:
            odd = next((n for n, pair in enumerate(zip(published, history, strict=False), 1) if pair[0] != pair[1]), 0)
            where = f"they differ at {odd}" if odd else "of different length"
            said = f"{len(published)} changes published, {len(history)} in the history, {where}"
            yield Finding(Fault.FEED, f"{owner}: {said}")
        if _folded(published) != dict(seen.live.get(owner, {})):
            yield Finding(Fault.FEED, f"{owner}: changes.v1, folded, is not what is live")


def _rpc(seen: Observation, wanted: Expected) -> Iterator[Finding]:
    for owner, listed in seen.listed.items():
        if dict(listed) != dict(seen.live.get(owner, {})):
            yield Finding(Fault.STORE, f"{owner}: ListMemories gives {len(listed)} memories, others than are live")
    either = excused(seen)
    for name, (state, reason) in seen.told.items():
        parked = wanted.parked_turns.get(name)
        expected = ("PARKED", parked) if parked is not None else ("STORED", "")
        may_be_parked = name in either and state == "PARKED" and reason in _EXCUSED_REASONS
        if (state, reason) != expected and not may_be_parked:
            fault = Fault.LOST if state in {"UNKNOWN", "PENDING"} else Fault.PARKED
            yield Finding(fault, f"GetTurn says of {name[1]}: {state} {reason}, not {' '.join(expected)}")


def _folded(changes: Iterable[Change]) -> dict[str, str]:
    live: dict[str, str] = {}
    for change in changes:
        if change.memory_id is not None and change.state == "LIVE":
            live[change.memory_id] = change.text or ""
        elif change.memory_id is not None:
            live.pop(change.memory_id, None)
    return live


def longest_stall(acknowledged: Iterable[float], ended: Iterable[float]) -> float:
    """The longest time in seconds without any end of a turn while turns waited for theirs.

    acknowledged, ended: moments, in any order; of each turn one in both, or in the first alone.
    """
    events = sorted([(at, 1) for at in acknowledged] + [(at, -1) for at in ended])
    waiting, since, longest = 0, 0.0, 0.0
    for at, step in events:
        if step > 0 and waiting <= 0:
            since = at
        if step < 0:
            longest = max(longest, at - since if waiting > 0 else 0.0)
            since = at
        waiting += step
    return longest


def _at(place: Place) -> str:
    return f"{place.partition}/{place.offset}"


def _gap(seqs: Sequence[int]) -> str:
    odd = next(n for n, seq in enumerate([*seqs, 0], 1) if seq != n)
    return f"{odd} is missing"
