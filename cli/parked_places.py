"""Which parked records a command means, and how one is shown."""

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cli.failures import UsageProblem
from cli.moments import moment

if TYPE_CHECKING:
    from store.parked import ParkedEntry, ParkedFilter, ParkedPlace
    from streams.parked_topic import ParkedRecord

STAGES: Final = ("extract", "reconcile")
_PLACE: Final = re.compile(r"([A-Za-z0-9._-]{1,249})/([0-9]{1,9})/([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class Selection:
    """What was named: places, or a filter."""

    places: "tuple[ParkedPlace, ...]"
    wanted: "ParkedFilter"


def place_of(text: str, prefix: str) -> "ParkedPlace":
    """TOPIC/PARTITION/OFFSET; the topic with its prefix or without. Raises UsageProblem."""
    from store.parked import ParkedPlace
    from streams.topics import CANDIDATES, TURNS

    match = _PLACE.fullmatch(text)
    if match is None:
        raise UsageProblem("PLACE: must be TOPIC/PARTITION/OFFSET, as `mnemo parked list` shows it: turns.v1/3/17")
    topic = prefix + match[1] if match[1] in (TURNS, CANDIDATES) else match[1]
    return ParkedPlace(topic, int(match[2]), int(match[3]))


def filter_of(
    *,
    reason: str | None,
    app: str | None,
    owner: str | None,
    stage: str | None,
    since: str | None,
    until: str | None,
) -> "ParkedFilter":
    """The filter that the options make. Raises UsageProblem."""
    from mnemostream.turns import Reason

    from store.parked import ParkedFilter

    if owner is not None and app is None:
        raise UsageProblem("--owner: needs --app, whose owner it is")
    if reason is not None and reason not in set(Reason):
        raise UsageProblem(f"--reason: choose among {', '.join(Reason)}")
    if stage is not None and stage not in STAGES:
        raise UsageProblem(f"--stage: choose among {', '.join(STAGES)}")
    return ParkedFilter(
        app=app,
        owner=owner,
        reason=reason,
        stage=stage,
        since=moment(since, "--since"),
        until=moment(until, "--until"),
    )


def selection_of(texts: Sequence[str], wanted: "ParkedFilter", prefix: str, *, all_waiting: bool) -> Selection:
    """Places, or a filter, or all: one of them. Raises UsageProblem."""
    filtered = any(value is not None for value in wanted.values)
    if texts and (filtered or all_waiting):
        raise UsageProblem("give places or filters, not both")
    if all_waiting and filtered:
        raise UsageProblem("--all-waiting: takes no filter")
    if not (texts or filtered or all_waiting):
        raise UsageProblem("which records? Give places, a filter (--reason, --app, --since …), or --all-waiting")
    return Selection(tuple(dict.fromkeys(place_of(text, prefix) for text in texts)), wanted)


def entry_json(entry: "ParkedEntry") -> dict[str, Any]:
    """A row of the ledger of parked records."""
    landed = entry.landed
    return {
        "topic": entry.place.topic,
        "partition": entry.place.partition,
        "offset": entry.place.offset,
        "state": entry.state.value,
        "app": entry.app,
        "owner": entry.owner,
        "turnId": entry.turn_ids[0] if entry.turn_ids else None,
        "turnIds": list(entry.turn_ids),
        "turnsStored": entry.stored,
        "tookEffect": entry.took_effect,
        "stage": entry.stage,
        "reason": entry.reason,
        "detail": entry.detail,
        "attempts": entry.attempts,
        "receivedAt": _time(entry.received_at),
        "parkedAt": _time(entry.parked_at),
        "parkedPartition": None if landed is None else landed.partition,
        "parkedOffset": None if landed is None else landed.offset,
        "replayedAt": _time(entry.replayed_at),
        "replays": entry.replays,
        "droppedAt": _time(entry.dropped_at),
        "run": entry.run,
    }


def record_json(record: "ParkedRecord", *, value: bool) -> dict[str, Any]:
    """The record itself; its value, the text of a conversation, only where it is asked for.

    Bytes that are no UTF-8 stand as `…Base64`.
    """
    shown: dict[str, Any] = {
        **_readable("key", record.key),
        "headers": [{"name": name, **_readable("value", content)} for name, content in record.headers],
        "told": [{"name": name, **_readable("value", content)} for name, content in record.told],
        "valueBytes": None if record.value is None else len(record.value),
        "lost": record.lost,
    }
    return shown | _readable("value", record.value) if value else shown


def readable(name: str, shown: Mapping[str, Any]) -> str | None:
    """What `record_json` has by that name, for a person."""
    if f"{name}Base64" in shown:
        return f"base64:{shown[f'{name}Base64']}"
    text: str | None = shown[name]
    return text


def effect_shown(entry: "ParkedEntry") -> str:
    """Whether its turns took effect since."""
    if not entry.stored:
        return ""
    return "took effect" if entry.took_effect else f"{entry.stored} of {len(entry.turn_ids)} took effect"


def _readable(name: str, content: bytes | None) -> dict[str, str | None]:
    try:
        return {name: None if content is None else content.decode()}
    except UnicodeDecodeError:
        return {f"{name}Base64": base64.b64encode(content or b"").decode("ascii")}


def _time(value: Any) -> str | None:
    return None if value is None else str(value.isoformat())
