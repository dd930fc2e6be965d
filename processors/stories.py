"""The story of a memory in words: who said what when, what it replaced, and why.

Plain English for a person. What people said stands in quotation marks, on one line and cut; it is data, also here.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Final, assert_never
from uuid import UUID

from mnemostream.turns import Role

from processors.explanations import Compared, Decision, Statement
from processors.memories import Memory, State
from processors.routing import Action, Route

MAX_QUOTE: Final = 200
"""Characters of a text that is quoted."""
_MAX_QUOTED: Final = 3
"""Messages or memories that are quoted in one sentence; of more the number is told."""

_DORMANT: Final = {State.ARCHIVED: "archived", State.EXPIRED: "expired", State.EVICTED: "evicted"}
_NUMBERS: Final = ("no times", "once", "twice")


def story(
    memory: Memory,
    statements: Sequence[Statement],
    decisions: Sequence[Decision],
    line: Sequence[Memory],
    now: datetime,
    *,
    zone: tzinfo = UTC,
) -> str:
    """The story of `memory`, in several sentences. All sequences are oldest first; days are those of `zone`."""
    return _Teller(memory, statements, decisions, line, now, zone).tell()


class _Teller:
    """One memory, and what its sentences look things up in."""

    def __init__(
        self,
        memory: Memory,
        statements: Sequence[Statement],
        decisions: Sequence[Decision],
        line: Sequence[Memory],
        now: datetime,
        zone: tzinfo,
    ) -> None:
        self._memory = memory
        self._statements = statements
        self._decisions = decisions
        self._known = {each.id: each for each in line} | {memory.id: memory}
        self._now = now
        self._zone = zone
        self._origin = next((each for each in decisions if self._made(each)), None)
        self._ends = [each for each in decisions if memory.id in each.retired]

    def tell(self) -> str:
        """All sentences, in the order in which things happened."""
        sentences = [
            *self._beginning(),
            *self._again(),
            *self._left_alone(),
            *self._end(),
            *self._outlook(),
        ]
        return " ".join(sentence for sentence in sentences if sentence)

    def _made(self, decision: Decision) -> bool:
        """Whether `decision` made the memory: it added it, alone or in place of others."""
        makes = decision.action in (Action.ADD, Action.UPDATE, Action.DELETE)
        return makes and decision.memory_id == self._memory.id and self._memory.id not in decision.retired

    def _beginning(self) -> list[str]:
        origin = self._origin
        if origin is None:
            return self._unexplained()
        return [self._told(origin), self._read(origin), self._placed(origin), self._restated()]

    def _unexplained(self) -> list[str]:
        memory = self._memory
        kept = f"“{_cut(memory.content)}” was recorded on {self._day(memory.recorded_at)}"
        told = self._quoted(self._statements[:1])
        said = [f"{told}."] if told else []
        return [*said, f"{kept}; the decision that made it is no longer known."]

    def _told(self, decision: Decision) -> str:
        """Who said what when."""
        if decision.cause_kind == "request":
            told = f"an application told it directly: “{_cut(decision.candidate)}”"
            return f"On {self._day(decision.at)} {told} (request {_plain(decision.cause_id)})."
        said = [each for each in self._statements if each.turn_id == decision.cause_id]
        if not said:
            return f"On {self._day(decision.at)} it came from turn {_plain(decision.cause_id)}."
        return f"{self._quoted(said)}."

    def _quoted(self, said: Sequence[Statement]) -> str:
        """`On 21 Nov 2026 the user said: “…” (turn t-7, message 0)`; all of one turn."""
        if not said:
            return ""
        first = said[0]
        head = f"On {self._day(first.said_at)} {_speaker(first)}"
        place = f"turn {_plain(first.turn_id)}"
        numbers = [str(each.message_index) for each in said if each.message_index is not None]
        if numbers:
            place += f", message{'s' if len(numbers) > 1 else ''} {_listed(numbers)}"
        texts = [f"“{_cut(each.text)}”" for each in said if each.text][:_MAX_QUOTED]
        if not texts:
            return f"{head} said something that the log of turns no longer holds ({place})"
        return f"{head} said: {_listed(texts)} ({place})"

    def _read(self, decision: Decision) -> str:
        """What it was read as, and by whom; what became of its text."""
        candidate, content = _cut(decision.candidate), _cut(self._memory.content)
        sentences = []
        if decision.cause_kind != "request":
            by = (
                ""
                if decision.reading is None
                else f" by {_asked(decision.reading.model, decision.reading.prompt_version)}"
            )
            sentences.append(f"It was read as “{candidate}”{by}.")
        if content != candidate and decision.action is Action.UPDATE:
            sentences.append(f"With what was known before, it became “{content}”.")
        elif content != candidate:
            sentences.append(f"It is kept as “{content}”.")
        return " ".join(sentences)

    def _placed(self, decision: Decision) -> str:
        """What was done with it: where it found its place, what it replaced, and why."""
        memory = self._memory
        replaced = [each for each in decision.retired if each != memory.id]
        if not self._ends and self._came_late(memory):
            return self._late(decision)
        if decision.route is Route.EXACT:
            return "It was added without a comparison with what was known, as the application asked."
        if replaced:
            return f"{self._replaced(replaced)}. {self._why(decision)}"
        if decision.marked:
            head = "Nobody could settle whether both can stand, so it was kept"
            return f"{head}{self._beside(decision)}: {_reason(decision)}."
        if decision.action is Action.UPDATE and memory.supersedes is not None:
            return f"{self._replaced([memory.supersedes])}. {self._why(decision)}"
        if decision.route is Route.NEW:
            return f"It was added as something new: {_reason(decision)}."
        return f"It was added{self._beside(decision)}. {self._why(decision)}"

    def _replaced(self, ids: Sequence[UUID]) -> str:
        known = [self._known[each] for each in ids if each in self._known]
        texts = [f"“{_cut(each.content)}”, {self._known_since(each)}" for each in known[:_MAX_QUOTED]]
        if more := len(ids) - len(texts):
            texts.append(f"{more} other {_plural(more, 'memory', 'memories')}" if texts else _memories(more))
        return f"It replaced {_listed(texts, ', and ')}"

    def _known_since(self, memory: Memory) -> str:
        until = "" if memory.valid_to is None else f" (it held until {self._day(memory.valid_to)})"
        return f"known since {self._day(memory.valid_from)}{until}"

    def _came_late(self, memory: Memory) -> bool:
        """Whether what replaced it was known before it."""
        if memory.superseded_by is None:
            return False
        newer = self._known.get(memory.superseded_by)
        return newer is None or newer.recorded_at <= memory.recorded_at

    def _late(self, decision: Decision) -> str:
        """It was said before something that was known already."""
        memory = self._memory
        newer = self._known.get(memory.superseded_by) if memory.superseded_by is not None else None
        what = f"“{_cut(newer.content)}”" if newer is not None else "something newer"
        held = f"from {self._day(memory.valid_from)}"
        if memory.valid_to is not None:
            held += f" to {self._day(memory.valid_to)}"
        return (
            f"It came late: {what} had been said after it and stands, so it took its place in history, as what held"
            f" {held}. {self._why(decision)}"
        )

    def _beside(self, decision: Decision) -> str:
        """` beside “…”`: what it was nearest to and left standing."""
        others = [each for each in decision.compared if each.memory_id != self._memory.id and each.content]
        stood = [each for each in others if each.state is State.LIVE and each.memory_id not in decision.retired]
        stood = sorted(stood, key=_nearness, reverse=True)
        return f" beside “{_cut(stood[0].content)}”{_likeness(stood[0])}" if stood else ""

    def _why(self, decision: Decision) -> str:
        """Who decided, and the reason that was given."""
        if decision.arbitration is not None and decision.route is Route.ARBITRATE:
            asked = _asked(decision.arbitration.model, decision.arbitration.prompt_version)
            return f"The reason, as {asked} gave it: {_reason(decision)}."
        return f"The reason: {_reason(decision)}."

    def _restated(self) -> str:
        """It says again what was superseded or taken back."""
        before = self._memory.restates
        if before is None:
            return ""
        known = self._known.get(before)
        if known is None:
            return "The same had been known before, and was replaced or taken back; said again, it came back."
        what = "taken back" if known.state is State.RETRACTED else "replaced"
        until = "" if known.valid_to is None else f" to {self._day(known.valid_to)}"
        held = f"from {self._day(known.valid_from)}{until}"
        return f"The same had been known before, {held}, and was {what}; said again, it came back as a new memory."

    def _again(self) -> list[str]:
        """That it was said again, and that it came back to life."""
        memory, again = self._memory, [each for each in self._decisions if self._confirms(each)]
        sentences = [self._revived(each) for each in again]
        if memory.confirmations > 0:
            sentences.append(self._confirmed(again))
        return sentences

    def _confirms(self, decision: Decision) -> bool:
        same = decision.memory_id == self._memory.id and decision is not self._origin
        return same and decision.action in (Action.CONFIRM, Action.NOOP) and self._memory.id not in decision.retired

    def _confirmed(self, again: Sequence[Decision]) -> str:
        memory = self._memory
        times = _NUMBERS[memory.confirmations] if memory.confirmations < 3 else f"{memory.confirmations} times"
        when = "" if memory.confirmed_at is None else f" on {self._day(memory.confirmed_at)}"
        head = f"It was said again {times}{',' if memory.confirmations > 1 and when else ''}"
        head += f"{' last' if memory.confirmations > 1 and when else ''}{when}"
        last = again[-1] if again else None
        if last is None:
            return f"{head}."
        if last.cause_kind == "request":
            return f"{head}, by an application (request {_plain(last.cause_id)})."
        said = [each for each in self._statements if each.turn_id == last.cause_id]
        if not said:
            return f"{head} (turn {_plain(last.cause_id)})."
        words = f": “{_cut(said[-1].text)}”" if said[-1].text else ""
        return f"{head}, by {_speaker(said[-1])}{words} (turn {_plain(last.cause_id)})."

    def _revived(self, decision: Decision) -> str:
        then = next((each for each in decision.compared if each.memory_id == self._memory.id), None)
        if then is None or then.state not in _DORMANT or decision.action not in (Action.CONFIRM, Action.NOOP):
            return ""
        when = self._day(_when(decision))
        return f"It had been {_DORMANT[then.state]}; said again on {when}, it came back to life."

    def _left_alone(self) -> list[str]:
        """The arbitrator was to judge whether it still holds, and could not."""
        unheard = [each for each in self._decisions if each.marked and self._confirms(each)]
        return [f"On {self._day(each.at)} nothing was done to it: {_reason(each)}." for each in unheard[-1:]]

    def _end(self) -> list[str]:
        """What it was replaced by, or who took it back."""
        return [self._ended(each) for each in self._ends]

    def _ended(self, decision: Decision) -> str:
        memory = self._memory
        taken_back = decision.memory_id is None or decision.memory_id in decision.retired
        successor = None if decision.memory_id is None else self._known.get(decision.memory_id)
        head, cause, why = f"On {self._day(_when(decision))}", self._cause(decision), self._why(decision)
        if taken_back:
            who = "an application" if decision.cause_kind == "request" else _who(decision.role)
            return f"{head} {who} took it back{cause}. {why}"
        by = f"“{_cut(decision.candidate if successor is None else successor.content)}”"
        if successor is not None and decision.action is Action.ADD and self._came_late(successor):
            said = f"{by}, said on {self._day(_when(decision))}"
            return f"{said}, came late{cause} and took its place between the two. {why}"
        if memory.state is State.LIVE and memory.valid_to is not None:
            return f"{head} it became known{cause} that {by} takes its place on {self._day(memory.valid_to)}. {why}"
        said = "an application told" if decision.cause_kind == "request" else f"{_who(decision.role)} said"
        return f"{head} it was replaced by {by}, which {said}{cause}. {why}"

    def _cause(self, decision: Decision) -> str:
        return f" ({_plain(decision.cause_kind)} {_plain(decision.cause_id)})"

    def _outlook(self) -> list[str]:
        """How it stands, and what becomes of it."""
        memory = self._memory
        match memory.state:
            case State.LIVE:
                return [self._holds(), self._fades(), self._expires()]
            case State.ARCHIVED:
                return [f"It faded, and was archived{self._on(memory.retired_at)}; said again, it comes back."]
            case State.EXPIRED:
                return [f"It expired{self._on(memory.expires_at)}."]
            case State.EVICTED:
                return [f"It was evicted{self._on(memory.retired_at)}, the weakest above the cap of live memories."]
            case State.SUPERSEDED | State.RETRACTED:
                return [self._held()]
            case State.FORGOTTEN:
                return ["It was forgotten on request."]
            case _:
                assert_never(memory.state)

    def _holds(self) -> str:
        memory = self._memory
        if memory.valid_from > self._now:
            return f"It begins to hold on {self._day(memory.valid_from)}."
        if memory.valid_to is not None and memory.valid_to <= self._now:
            return f"It held from {self._day(memory.valid_from)} to {self._day(memory.valid_to)}."
        return f"It holds since {self._day(memory.valid_from)}."

    def _held(self) -> str:
        """Left out where it is told already, or where nothing ended it."""
        memory = self._memory
        if memory.valid_to is None or (memory.superseded_by is not None and not self._ends):
            return ""
        return f"It held from {self._day(memory.valid_from)} to {self._day(memory.valid_to)}."

    def _fades(self) -> str:
        memory = self._memory
        if memory.pinned:
            return "It is pinned, and never fades."
        if memory.fades_at is None:
            return f"Memories of the category {_plain(memory.category)} never fade."
        if memory.fades_at <= self._now:
            return f"It has faded since {self._day(memory.fades_at)} and will be archived, unless it is said again."
        return f"Unless it is said again, it fades by {self._day(memory.fades_at)}."

    def _expires(self) -> str:
        return "" if self._memory.expires_at is None else f"It expires on {self._day(self._memory.expires_at)}."

    def _on(self, at: datetime | None) -> str:
        return "" if at is None else f" on {self._day(at)}"

    def _day(self, at: datetime) -> str:
        """`3 Feb 2026`, in the app's time zone; months in English whatever the locale."""
        try:
            local = at.astimezone(self._zone)
        except OverflowError:  # the first or the last day of the calendar
            local = at
        return f"{local.day} {_MONTHS[local.month - 1]} {local.year}"


_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _speaker(said: Statement) -> str:
    return f"{_who(said.role)} ({_cut(said.name)})" if said.name else _who(said.role)


def _who(role: Role | None) -> str:
    match role:
        case Role.USER:
            return "the user"
        case Role.ASSISTANT:
            return "the assistant"
        case Role.TOOL:
            return "a tool"
        case Role.SYSTEM:
            return "the system"
        case None:
            return "somebody"
        case _:
            assert_never(role)


def _when(decision: Decision) -> datetime:
    """When it was said, as far as that is known."""
    return decision.said_at or decision.at


def _asked(model: str, prompt_version: str) -> str:
    return f"{_plain(model)} ({_plain(prompt_version)})" if prompt_version else _plain(model)


def _reason(decision: Decision) -> str:
    """On one line, without a full stop of its own."""
    return _cut(decision.reason, 400).rstrip(". ") or "none was given"


def _nearness(compared: Compared) -> tuple[bool, float]:
    return compared.same_slot, -2.0 if compared.similarity is None else compared.similarity


def _likeness(compared: Compared) -> str:
    return "" if compared.similarity is None else f" (similarity {compared.similarity:.2f})"


def _memories(count: int) -> str:
    return f"{count} {_plural(count, 'memory', 'memories')} that {_plural(count, 'is', 'are')} no longer kept"


def _plural(count: int, one: str, many: str) -> str:
    return one if count == 1 else many


def _listed(words: Iterable[str], last: str = " and ") -> str:
    """`a, b and c`."""
    *head, tail = words
    return f"{', '.join(head)}{last}{tail}" if head else tail


def _plain(text: str) -> str:
    """On one line."""
    return " ".join(text.split())


def _cut(text: str, longest: int = MAX_QUOTE) -> str:
    """On one line, and not too long."""
    line = _plain(text)
    return line if len(line) <= longest else f"{line[: longest - 1].rstrip()}…"
