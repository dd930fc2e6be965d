"""The table at the end of a run, and its verdict."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from tests.chaos.checks import Fault, Finding, Observation, excused, longest_stall
from tests.chaos.workload import oracle

_SHOWN: Final = 20
"""Of each kind of finding."""


@dataclass(eq=False)
class Recovery:
    """A fault that was injected, and how long its end was over when turns of every partition took effect again."""

    kind: str
    detail: str
    began_at: float
    ended_at: float
    redelivered: int = 0
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What a run gave."""

    seed: int
    seen: Observation
    findings: Sequence[Finding]
    incidents: Sequence[str]
    recoveries: Sequence[Recovery]
    redelivered: int
    """Records that stood on a topic when its group began anew."""
    retries: int
    began: float
    settled_seconds: float


def report(made: Report) -> dict[str, Any]:
    """`ok`, the text for people, and the figures."""
    figures = _figures(made)
    lines = [*_table([("what", "figure"), *((name, str(figure)) for name, figure in figures.items())]), ""]
    lines += _faults(made)
    shown: Counter[Fault] = Counter()
    for finding in made.findings:
        shown[finding.fault] += 1
        if shown[finding.fault] <= _SHOWN:
            lines.append(f"FAILED {finding.fault}: {finding.evidence}")
    lines += [f"FAILED {fault}: {count - _SHOWN} more" for fault, count in shown.items() if count > _SHOWN]
    lines += [f"FAILED {incident}" for incident in made.incidents]
    ok = not made.findings and not made.incidents
    lines.append(f"seed {made.seed}: " + ("nothing lost, doubled or reordered" if ok else "FAILED"))
    return {"ok": ok, "text": "\n".join(lines), "figures": figures}


def _figures(made: Report) -> dict[str, Any]:
    seen, wanted = made.seen, oracle(made.seen.log)
    found = Counter(finding.fault for finding in made.findings)
    outcomes = Counter(effect.outcome for effects in seen.ledger.values() for effect in effects)
    garbled = [name for name in excused(seen) if seen.turns.get(name, ("", None))[0] == "PARKED"]
    again = sum(count - 1 for count in Counter(seen.candidates).values())
    told = len(seen.feed) - len({(each.owner, each.change.seq) for each in seen.feed})
    parked_again = len(seen.parked_topic) - len({(each.topic, each.place) for each in seen.parked_topic})
    ended = {name: effects[0].at for name, effects in seen.ledger.items() if effects}
    came: dict[tuple[str, str], float] = {}
    for ack in seen.acknowledged:
        name = (ack.owner, ack.turn_id)
        if name in wanted.turns:
            came[name] = min(came.get(name, ack.at), ended.get(name, ack.at), ack.at)
    return {
        "records acknowledged": len(seen.acknowledged),
        "turns acknowledged": len({(ack.owner, ack.turn_id) for ack in seen.acknowledged}),
        "turns stored": outcomes["STORED"],
        "records parked": len(seen.parked),
        "parked while the model answered garbage": len(garbled),
        "lost": found[Fault.LOST],
        "doubled": found[Fault.DOUBLED],
        "reordered": found[Fault.REORDERED],
        "parked wrongly": found[Fault.PARKED],
        "otherwise wrong": found[Fault.STORE] + found[Fault.FEED] + len(made.incidents),
        "duplicates absorbed: sent again by producers": wanted.repeated,
        "duplicates absorbed: delivered again by offset resets": made.redelivered,
        "duplicates absorbed: turns that came again on candidates.v1": again,
        "duplicates absorbed: changes that came again on changes.v1": told,
        "duplicates absorbed: records that were parked again": parked_again,
        "sends that failed first": made.retries,
        "longest stall": f"{longest_stall(came.values(), [at for name, at in ended.items() if name in came]):.1f} s",
        "settled after the last turn in": f"{made.settled_seconds:.1f} s",
    }


def _faults(made: Report) -> list[str]:
    """Each as it ran, then recovery by kind."""
    if not made.recoveries:
        return []
    rows = [("at", "fault", "what", "lasted", "recovered after")]
    kinds: dict[str, list[float | None]] = defaultdict(list)
    for each in made.recoveries:
        kinds[each.kind].append(each.seconds)
        lasted = f"{each.ended_at - each.began_at:.1f} s"
        rows.append((f"{each.began_at - made.began:.1f} s", each.kind, each.detail, lasted, _seconds(each.seconds)))
    worst = [("fault", "times", "recovery, median", "worst")]
    for kind, taken in sorted(kinds.items()):
        known = [seconds for seconds in taken if seconds is not None]
        longest = None if len(known) < len(taken) else max(known)
        worst.append((kind, str(len(taken)), _seconds(median(known) if known else None), _seconds(longest)))
    return [*_table(rows), "", *_table(worst), ""]


def _seconds(taken: float | None) -> str:
    return "never" if taken is None else f"{taken:.1f} s"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]
