"""A window heard message by message: what is stated, corrected and taken back in it."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from mnemostream.turns import Role

from processors.local import corrections, english, takebacks
from processors.local.answering import as_statement
from processors.local.draft import Draft, Said
from processors.local.languages import LANGUAGES, Language
from processors.local.languages import reading as others
from processors.local.sentences import sentences
from processors.local.takebacks import Reach, TakeBack
from processors.local.words import without_name
from processors.normalization import normalized
from processors.records import ContextMessage

_MOST: Final = 1_000
"""Sentences of a message that are looked at: a message with more is a document, not talk."""
_LONGEST: Final = 2_400
"""Characters of a sentence that is looked at: no person states more in one breath."""
_BEFORE: Final = -1
"""The turn of what was said before the window."""


@dataclass(slots=True)
class Heard:
    """A statement or a retraction, where it was said."""

    turn: int
    place: int
    said: Said
    language: Language | None = None


class Listener:
    """Hears messages in order. `heard` is what stands at the end."""

    def __init__(self, context: Sequence[ContextMessage] = ()) -> None:
        self.heard: list[Heard] = []
        self._context = context
        self._context_heard: list[Heard] | None = None
        self._asked = context[-1].content if context and context[-1].role is Role.ASSISTANT else ""

    def hear_assistant(self, text: str) -> None:
        """A message of the assistant: it states nothing, but the next message may answer it."""
        self._asked = text

    def hear(self, turn: int, place: int, text: str, local: datetime) -> None:
        """A message of the user. What is said off the record is not heard at all."""
        asked, self._asked = self._asked, ""
        if takebacks.off_record(text):
            return
        answer = as_statement(asked, text) if asked else None
        said = [sentence for sentence in sentences(answer or text) if len(sentence) <= _LONGEST]
        for sentence in said[:_MOST]:
            for part in corrections.split_corrections(sentence):
                self._hear_part(turn, place, part, local)

    def _hear_part(self, turn: int, place: int, part: str, local: datetime) -> None:
        back = takebacks.take_back(part)
        if back is not None:
            self._take_back(turn, place, back, local)
            return
        if not (fix := corrections.correction(part)) or not self._correct(turn, place, fix, local):
            if said := english.statements(part, local):
                self._add(turn, place, said, None)
            else:
                self._hear_other(turn, place, part, local)

    def _add(self, turn: int, place: int, said: Sequence[Said], language: Language | None) -> None:
        texts = {normalized(draft.text) for one in said for draft in one.drafts}
        if texts:
            self.heard = [old for old in self.heard if not (_retracts(old) and _texts(old) <= texts)]
        self.heard.extend(Heard(turn, place, one, language) for one in said)

    # What is taken back

    def _take_back(self, turn: int, place: int, back: TakeBack, local: datetime) -> None:
        if back.reach is not None:
            self._take_back_before(turn, place, back.reach, local)
        elif back.topic is not None:
            self._retract(turn, place, takebacks.of_topic(back.topic))
        elif back.clause is not None:
            self._retract(turn, place, english.stated(back.clause, local))

    def _retract(self, turn: int, place: int, drafts: Sequence[Draft]) -> None:
        drafts = [replace(draft, retracts=True, importance=10) for draft in drafts]
        texts = {normalized(draft.text) for draft in drafts}
        slots = {
            (draft.subject, draft.attribute) for draft in drafts if draft.category == "general" and draft.attribute
        }
        kinds = tuple(kind for draft in drafts if (kind := takebacks.kind_of(draft)))
        self._drop(
            lambda draft: (
                normalized(draft.text) in texts
                or (draft.subject, draft.attribute) in slots
                or (draft.subject == "user" and (draft.attribute or "").startswith(kinds))
            )
        )
        for draft in drafts:
            self.heard.append(Heard(turn, place, Said("", (draft,))))

    def _take_back_before(self, turn: int, place: int, reach: Reach, local: datetime) -> None:
        standing = [old for old in self.heard if not _retracts(old)]
        here = [old for old in standing if (old.turn, old.place) == (turn, place)]
        if here and reach is not Reach.ALL:
            self.heard.remove(here[-1])
            return
        before = standing or self._before(local)
        if reach is not Reach.ALL and before:
            last = (before[-1].turn, before[-1].place)
            before = [old for old in before if (old.turn, old.place) == last]
            before = before[-1:] if reach is Reach.NO_LONGER else before
        elif reach is Reach.ALL:
            before = [*self._before(local), *standing]
            self.heard = [old for old in self.heard if (old.turn, old.place) != (turn, place)]
            before = [old for old in before if (old.turn, old.place) != (turn, place)]
        self._retract(turn, place, [draft for old in before for draft in old.said.drafts])

    def _drop(self, gone: Callable[[Draft], bool]) -> None:
        kept: list[Heard] = []
        for old in self.heard:
            left = tuple(draft for draft in old.said.drafts if draft.retracts or not gone(draft))
            if left:
                kept.append(replace(old, said=replace(old.said, drafts=left)))
        self.heard = kept

    # What is corrected

    def _correct(self, turn: int, place: int, fix: corrections.Correction, local: datetime) -> bool:
        """Whether the correction found what it corrects."""
        if corrections.is_clause(fix.meant):
            said = english.statements(fix.meant, local)
            new = {(draft.subject, draft.attribute) for one in said for draft in one.drafts if draft.attribute}
            if not new:
                return False
            self._make_room(turn, place, said, local, strong=fix.strong)
            self._add(turn, place, said, None)
            return True
        value = corrections.value_of(fix.meant)
        return value is not None and self._put(turn, place, value, fix.strong, None, local)

    def _make_room(self, turn: int, place: int, said: Sequence[Said], local: datetime, *, strong: bool) -> None:
        """What `said` is said instead of goes: the same slot, and the one that had another name."""
        drafts = [draft for one in said for draft in one.drafts]
        texts = {normalized(draft.text) for draft in drafts}
        slots = {(draft.subject, draft.attribute) for draft in drafts if draft.attribute}
        names = {_family(draft) for draft in drafts if draft.attribute == "name"}

        def wrong(draft: Draft) -> bool:
            same = (draft.subject, draft.attribute) in slots or _family(draft) in names
            return same and normalized(draft.text) not in texts

        here = [old for old in self.heard if strong or (old.turn, old.place) == (turn, place)]
        gone = [old for old in here if not _retracts(old) and any(map(wrong, old.said.drafts))]
        self.heard = [old for old in self.heard if old not in gone]
        if strong and not gone:
            before = [draft for old in self._before(local) for draft in old.said.drafts if _family(draft) in names]
            self._retract(turn, place, [draft for draft in before[-1:] if wrong(draft)])

    def _put(
        self,
        turn: int,
        place: int,
        value: str,
        strong: bool,
        language: Language | None,
        local: datetime,
        *,
        preposition: str = "",
    ) -> bool:
        """`value` in the place of the last one that was stated."""
        standing = [
            old for old in self.heard if not _retracts(old) and (strong or (old.turn, old.place) == (turn, place))
        ]
        last = next(iter((standing or (self._before(local) if strong else []))[-1:]), None)
        if last is None or last.language is not language:
            return False
        clause = corrections.replaced(last.said.clause, value, last.said.value, strong=strong)
        if clause and language is not None:
            clause = _with_preposition(language, clause, value, preposition)
        said = self._reread(clause, last, local) if clause else None
        if said is None or [_family(draft) for draft in said.drafts] != [_family(draft) for draft in last.said.drafts]:
            return False
        said = replace(said, drafts=tuple(
            replace(new, since=new.since or old.since, expires_at=new.expires_at or old.expires_at)
            for new, old in zip(said.drafts, last.said.drafts, strict=True)
        ))  # fmt: skip
        wrong = [
            old
            for new, old in zip(said.drafts, last.said.drafts, strict=True)
            if (new.subject, new.attribute) != (old.subject, old.attribute) or old.attribute is None
        ]
        if last.turn == _BEFORE:
            self._retract(turn, place, wrong)
        else:
            self.heard.remove(last)
        self._add(turn, place, [said], language)
        return True

    def _reread(self, clause: str, last: Heard, local: datetime) -> Said | None:
        if last.language is not None:
            return others.statement(last.language, clause, local)
        return english.reread(clause, last.said.drafts[0].confidence, local)

    # Other languages

    def _hear_other(self, turn: int, place: int, part: str, local: datetime) -> None:
        for language in LANGUAGES:
            if not language.speaking.search(part):
                continue
            said = [self._hear_in(language, turn, place, piece, local) for piece in _cut(language, part)]
            if any(said):
                return

    def _hear_in(self, language: Language, turn: int, place: int, part: str, local: datetime) -> bool:
        """Whether `part` says something in `language`."""
        text = part.strip(" ,.;:!。，！")
        if found := language.forget_that.match(text):
            said = others.statements(language, found["clause"], local)
            self._retract(turn, place, [draft for one in said for draft in one.drafts])
            return bool(said)
        if language.forget_last.match(text):
            self._take_back_before(turn, place, Reach.LAST, local)
            return True
        if found := language.forget_topic.match(text):
            topic = next(value for name in ("x", "x2") if (value := found.groupdict().get(name)))
            self._retract(turn, place, others.of_topic(language, topic))
            return True
        if (found := language.correction.match(text)) and self._put(
            turn, place, found["x"].strip(), True, language, local, preposition=found.groupdict().get("p") or ""
        ):
            return True
        said = others.statements(language, part, local)
        self._add(turn, place, said, language)
        return bool(said)

    def _before(self, local: datetime) -> list[Heard]:
        """What users said before the window, read when it is needed."""
        if self._context_heard is None:
            listener = Listener()
            for place, message in enumerate(self._context):
                if message.role is Role.USER:
                    listener.hear(_BEFORE, place, message.content, local)
            self._context_heard = [old for old in listener.heard if not _retracts(old)]
        return self._context_heard


def _cut(language: Language, part: str) -> Iterator[str]:
    """`part`, cut before a correction inside it."""
    for comma in list(re.finditer(r"[,，،]\s*|\s[-–—]\s", part))[:10]:
        if language.correction.match(part[comma.end() :]):
            yield part[: comma.start()]
            yield part[comma.end() :]
            return
    yield part


def _with_preposition(language: Language, clause: str, value: str, preposition: str) -> str:
    """`clause` with the preposition that goes with its new value."""
    if not language.prepositions:
        return clause
    one = "|".join(language.prepositions)
    new = preposition or language.prepositions[0]
    return re.sub(rf"\b(?:{one}) (?={re.escape(value)})", f"{new} ", clause, flags=re.IGNORECASE)


def _retracts(heard: Heard) -> bool:
    return all(draft.retracts for draft in heard.said.drafts)


def _texts(heard: Heard) -> set[str]:
    return {normalized(draft.text) for draft in heard.said.drafts}


def _family(draft: Draft) -> tuple[str, str]:
    """What a corrected statement shares with the wrong one: `allergy` of `allergy_peanuts`."""
    attribute = draft.attribute or ""
    several = (
        "allergy",
        "likes",
        "preference",
        "speaks",
        "learning",
        "eats",
        "drinks",
        "project",
        "rule",
        "pet",
        "condition",
    )
    return without_name(draft.subject), next((name for name in several if attribute.startswith(f"{name}_")), attribute)
