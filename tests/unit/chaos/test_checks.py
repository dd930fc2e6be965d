"""The verifier's checks, on what it might have seen: each can fail, and none fails without a reason."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.chaos.checks import (
    Acknowledged,
    Change,
    Effect,
    Fault,
    Observation,
    Parked,
    Published,
    check,
    longest_stall,
)
from tests.chaos.report import Recovery, Report, report
from tests.chaos.workload import Kind, Logged, Place, Turn, oracle

_OWNER = "owner-1"
_PARTITION = 3


def _fact(number: int) -> Turn:
    text = f"Number {number} of {_OWNER}"
    return Turn(f"{_OWNER}-{number}", _OWNER, Kind.FACT, f"FACT: {text}", None, text)


_POISON = Turn(f"{_OWNER}-9", _OWNER, Kind.REFUSED, "FACT: 9 of nobody", None)
_REUSED = Turn(f"{_OWNER}-1", _OWNER, Kind.REUSED, "FACT: Other words", None)
_LOG = (_fact(1), _fact(2), _POISON, _fact(2), _REUSED, _fact(3))
_PLACES = {1: Place(_PARTITION, 0), 2: Place(_PARTITION, 1), 3: Place(_PARTITION, 5)}
_PARKED = {("turns.v1", Place(_PARTITION, 2)): "model_refused", ("turns.v1", Place(_PARTITION, 4)): "id_reused"}


def _change(number: int) -> Change:
    return Change(number, "added", f"m-{number}", f"Number {number} of {_OWNER}", "LIVE", f"{_OWNER}-{number}")


def _published(number: int, value: bytes = b"") -> Published:
    return Published(_OWNER, _change(number), value or str(number).encode())


def _good() -> Observation:
    """Three turns, one of them sent twice, one that is poison, and one under a used id: as all should be."""
    live = {_OWNER: {f"m-{n}": f"Number {n} of {_OWNER}" for n in _PLACES}}
    stored = {(_OWNER, f"{_OWNER}-{n}"): [Effect("STORED", place, 10.0 + n)] for n, place in _PLACES.items()}
    poison = (_OWNER, _POISON.id)
    return Observation(
        acknowledged=[
            Acknowledged(Place(_PARTITION, offset), turn.owner, turn.id, 1.0 + offset)
            for offset, turn in enumerate(_LOG)
        ],
        log=[Logged(Place(_PARTITION, offset), turn) for offset, turn in enumerate(_LOG)],
        ledger={**stored, poison: [Effect("PARKED", Place(_PARTITION, 2), 12.0)]},
        turns={**dict.fromkeys(stored, ("STORED", None)), poison: ("PARKED", "model_refused")},
        live=live,
        decisions=dict.fromkeys(stored, 1),
        history={_OWNER: [_change(n) for n in _PLACES]},
        seqs={_OWNER: 3},
        parked=dict(_PARKED),
        parked_topic=[Parked(topic, place, reason, 20.0) for (topic, place), reason in _PARKED.items()],
        candidates=[*stored, next(iter(stored))],
        feed=[_published(1), _published(2), _published(1), _published(2), _published(3)],
        listed=live,
        told={poison: ("PARKED", "model_refused"), next(iter(stored)): ("STORED", "")},
    )


def _lost_turn(seen: Observation) -> None:
    name = (_OWNER, f"{_OWNER}-2")
    seen.ledger = {each: effects for each, effects in seen.ledger.items() if each != name}
    seen.turns = {**seen.turns, name: ("PENDING", None)}


def _lost_memory(seen: Observation) -> None:
    seen.live = seen.listed = {_OWNER: {"m-1": f"Number 1 of {_OWNER}", "m-3": f"Number 3 of {_OWNER}"}}


def _lost_record(seen: Observation) -> None:
    seen.acknowledged = [*seen.acknowledged, Acknowledged(Place(_PARTITION, 6), _OWNER, f"{_OWNER}-4", 9.0)]


def _lost_by_rpc(seen: Observation) -> None:
    seen.told = {(_OWNER, f"{_OWNER}-3"): ("PENDING", "")}


def _lost_parked(seen: Observation) -> None:
    seen.parked_topic = seen.parked_topic[:1]


def _doubled_memory(seen: Observation) -> None:
    seen.live = seen.listed = {_OWNER: {**seen.live[_OWNER], "m-4": f"Number 2 of {_OWNER}"}}


def _doubled_decision(seen: Observation) -> None:
    seen.decisions = {**seen.decisions, (_OWNER, f"{_OWNER}-2"): 2}


def _no_decision(seen: Observation) -> None:
    seen.decisions = {name: 1 for name in seen.decisions if name != (_OWNER, f"{_OWNER}-2")}


def _decided_poison(seen: Observation) -> None:
    seen.decisions = {**seen.decisions, (_OWNER, _POISON.id): 1}


def _confirmed_by_itself(seen: Observation) -> None:
    again = replace(_change(1), seq=4, kind="confirmed")
    seen.history = {_OWNER: [*seen.history[_OWNER], again]}
    seen.seqs = {_OWNER: 4}
    seen.feed = [*seen.feed, Published(_OWNER, again, b"4")]


def _causes_swapped(seen: Observation) -> None:
    first, second, third = seen.history[_OWNER]
    swapped = [replace(first, cause=second.cause), replace(second, cause=first.cause), third]
    seen.history = {_OWNER: swapped}
    seen.feed = [Published(_OWNER, change, b"") for change in swapped]


def _doubled_effect(seen: Observation) -> None:
    name = (_OWNER, f"{_OWNER}-2")
    seen.ledger = {**seen.ledger, name: [*seen.ledger[name], *seen.ledger[name]]}


def _swapped(seen: Observation) -> None:
    swapped = [_change(1), replace(_change(3), seq=2), replace(_change(2), seq=3)]
    seen.history = {_OWNER: swapped}
    seen.feed = [Published(_OWNER, change, b"") for change in swapped]


def _parked_good(seen: Observation) -> None:
    name = (_OWNER, f"{_OWNER}-2")
    seen.ledger = {**seen.ledger, name: [Effect("PARKED", _PLACES[2], 12.0)]}
    seen.turns = {**seen.turns, name: ("PARKED", "internal_error")}


def _parked_window(seen: Observation) -> None:
    seen.parked = {**seen.parked, ("candidates.v1", Place(0, 0)): "internal_error"}


def _parked_for_another_reason(seen: Observation) -> None:
    seen.parked = {**seen.parked, ("turns.v1", Place(_PARTITION, 4)): "internal_error"}


def _gap_in_history(seen: Observation) -> None:
    seen.history = {_OWNER: [_change(1), _change(3)]}


def _gap_in_feed(seen: Observation) -> None:
    seen.feed = [_published(1), _published(3), _published(2)]


def _feed_cut_short(seen: Observation) -> None:
    seen.feed = seen.feed[:2]


def _feed_that_differs(seen: Observation) -> None:
    seen.feed = [*seen.feed, _published(2, b"another")]


def _feed_that_folds_to_less(seen: Observation) -> None:
    gone = replace(_change(2), seq=4, kind="archived", state="ARCHIVED")
    seen.feed = [*seen.feed, Published(_OWNER, gone, b"4")]
    seen.history = {_OWNER: [*seen.history[_OWNER], gone]}
    seen.seqs = {_OWNER: 4}


def _outbox_left(seen: Observation) -> None:
    seen.outbox = 1


def _retired(seen: Observation) -> None:
    seen.dead = [(_OWNER, f"Number 2 of {_OWNER}", "SUPERSEDED")]


def _never_said(seen: Observation) -> None:
    seen.ledger = {**seen.ledger, (_OWNER, "unknown"): [Effect("STORED", Place(_PARTITION, 1), 1.0)]}


def _at_another_place(seen: Observation) -> None:
    seen.ledger = {**seen.ledger, (_OWNER, f"{_OWNER}-1"): [Effect("STORED", Place(_PARTITION, 1), 1.0)]}


def _uncommitted(seen: Observation) -> None:
    seen.lag = 2


def _listed_less(seen: Observation) -> None:
    seen.listed = {_OWNER: {"m-1": f"Number 1 of {_OWNER}"}}


def test_what_is_as_it_should_be_passes() -> None:
    assert check(_good()) == []


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (_lost_turn, Fault.LOST),
        (_lost_memory, Fault.LOST),
        (_lost_record, Fault.LOST),
        (_lost_by_rpc, Fault.LOST),
        (_lost_parked, Fault.LOST),
        (_doubled_memory, Fault.DOUBLED),
        (_doubled_decision, Fault.DOUBLED),
        (_no_decision, Fault.LOST),
        (_decided_poison, Fault.DOUBLED),
        (_confirmed_by_itself, Fault.DOUBLED),
        (_causes_swapped, Fault.STORE),
        (_doubled_effect, Fault.DOUBLED),
        (_swapped, Fault.REORDERED),
        (_parked_good, Fault.PARKED),
        (_parked_window, Fault.PARKED),
        (_parked_for_another_reason, Fault.PARKED),
        (_gap_in_history, Fault.FEED),
        (_gap_in_feed, Fault.FEED),
        (_feed_cut_short, Fault.FEED),
        (_feed_that_differs, Fault.FEED),
        (_feed_that_folds_to_less, Fault.FEED),
        (_outbox_left, Fault.FEED),
        (_retired, Fault.STORE),
        (_never_said, Fault.STORE),
        (_at_another_place, Fault.STORE),
        (_uncommitted, Fault.STORE),
        (_listed_less, Fault.STORE),
    ],
)
def test_what_is_wrong_is_found_and_fails_the_run(spoil: Callable[[Observation], None], fault: Fault) -> None:
    seen = _good()
    spoil(seen)
    findings = check(seen)
    assert fault in {finding.fault for finding in findings}
    verdict = report(_report(seen))
    assert not verdict["ok"]
    assert f"FAILED {fault}: " in verdict["text"]


_GARBAGE = "model_answer_unusable"
_SECOND = (_OWNER, f"{_OWNER}-2")


def _garbled(*, stored: bool = False) -> Observation:
    """The second turn was parked while the model answered garbage. It came again: then it was stored, or not."""
    seen = _good()
    key = ("turns.v1", _PLACES[2])
    seen.garbage = [(15.0, 25.0)]
    seen.parked = {**seen.parked, key: _GARBAGE}
    seen.parked_topic = [*seen.parked_topic, Parked(*key, _GARBAGE, 20.0)]
    if stored:
        return seen
    seen.ledger = {**seen.ledger, _SECOND: [Effect("PARKED", _PLACES[2], 20.0)]}
    seen.turns = {**seen.turns, _SECOND: ("PARKED", _GARBAGE)}
    seen.told = {**seen.told, _SECOND: ("PARKED", _GARBAGE)}
    seen.decisions = {name: 1 for name in seen.decisions if name != _SECOND}
    seen.live = seen.listed = {_OWNER: {f"m-{n}": f"Number {n} of {_OWNER}" for n in (1, 3)}}
    history = [_change(1), replace(_change(3), seq=2)]
    seen.history, seen.seqs = {_OWNER: history}, {_OWNER: 2}
    seen.feed = [Published(_OWNER, change, b"") for change in history]
    return seen


@pytest.mark.parametrize("stored", [False, True])
def test_a_good_turn_may_be_parked_while_the_model_answers_garbage(stored: bool) -> None:
    verdict = report(_report(_garbled(stored=stored)))
    assert verdict["ok"], verdict["text"]
    assert verdict["figures"]["parked while the model answered garbage"] == int(not stored)


def test_a_turn_stored_after_it_was_parked_for_garbage_may_come_after_later_ones() -> None:
    seen = _garbled(stored=True)
    _swapped(seen)
    assert check(seen) == []


def _late_garbage(seen: Observation) -> None:
    seen.garbage = [(15.0, 19.0)]


def _garbage_for_another_reason(seen: Observation) -> None:
    seen.turns = {**seen.turns, _SECOND: ("PARKED", "internal_error")}


def _garbage_parked_again_for_another_reason(seen: Observation) -> None:
    seen.parked_topic = [*seen.parked_topic, Parked("turns.v1", _PLACES[2], "internal_error", 20.0)]


def _garbage_without_effect(seen: Observation) -> None:
    seen.ledger = {name: effects for name, effects in seen.ledger.items() if name != _SECOND}


def _garbage_stored_too(seen: Observation) -> None:
    seen.live = seen.listed = _good().live


def _garbage_decided(seen: Observation) -> None:
    seen.decisions = {**seen.decisions, _SECOND: 1}


def _garbage_elsewhere(seen: Observation) -> None:
    seen.parked = {**seen.parked, ("turns.v1", _PLACES[3]): _GARBAGE}


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (_late_garbage, Fault.PARKED),
        (_garbage_for_another_reason, Fault.PARKED),
        (_garbage_parked_again_for_another_reason, Fault.PARKED),
        (_garbage_without_effect, Fault.LOST),
        (_garbage_stored_too, Fault.DOUBLED),
        (_garbage_decided, Fault.DOUBLED),
        (_garbage_elsewhere, Fault.PARKED),
    ],
)
def test_garbage_excuses_nothing_else(spoil: Callable[[Observation], None], fault: Fault) -> None:
    seen = _garbled()
    spoil(seen)
    assert fault in {finding.fault for finding in check(seen)}


def _report(seen: Observation, *incidents: str) -> Report:
    recovery = Recovery("broker_kill", "SIGKILL", 100.0, 103.0, seconds=4.5)
    return Report(
        seed=7,
        seen=seen,
        findings=check(seen),
        incidents=incidents,
        recoveries=[recovery, Recovery("worker_kill", "worker-1", 110.0, 110.0)],
        redelivered=40,
        retries=1,
        began=90.0,
        settled_seconds=1.0,
    )


def test_the_table_counts_what_was_absorbed_and_names_each_fault_with_its_recovery() -> None:
    verdict = report(_report(_good()))
    assert verdict["ok"]
    figures = verdict["figures"]
    assert figures["turns acknowledged"] == 4
    assert figures["turns stored"] == 3
    assert figures["records parked"] == 2
    assert {name: count for name, count in figures.items() if name.startswith("duplicates")} == {
        "duplicates absorbed: sent again by producers": 1,
        "duplicates absorbed: delivered again by offset resets": 40,
        "duplicates absorbed: turns that came again on candidates.v1": 1,
        "duplicates absorbed: changes that came again on changes.v1": 2,
        "duplicates absorbed: records that were parked again": 0,
    }
    assert "| 10.0 s | broker_kill | SIGKILL  | 3.0 s  | 4.5 s           |" in verdict["text"]
    assert "never" in verdict["text"]


def test_a_worker_that_did_not_end_fails_a_run_that_lost_nothing() -> None:
    assert not report(_report(_good(), "worker-1 had not ended 16 s after SIGTERM"))["ok"]


def test_the_longest_stall_counts_only_while_turns_wait() -> None:
    assert longest_stall([1.0, 20.0, 21.0], [2.0, 25.0, 26.0]) == 5.0
    assert longest_stall([1.0, 2.0, 3.0], [4.0, 5.0, 12.0]) == 7.0
    assert longest_stall([], []) == 0.0


def test_the_first_record_of_an_id_counts_whoever_was_meant_to_be_first() -> None:
    wanted = oracle([Logged(Place(0, n), turn) for n, turn in enumerate((_REUSED, _fact(1), _REUSED))])
    assert wanted.texts == {_OWNER: [(f"{_OWNER}-1", "Other words")]}
    assert wanted.parked == {Place(0, 1): "id_reused"}
    assert wanted.repeated == 1
