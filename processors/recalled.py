"""Memories that the application put into its own prompt (`turn.recalled`): they are known, so they are no news.

Two places keep them out. A line of a message that is such a text, whatever bullet, number or tag it has around it, is
taken out before a model sees the message. A fact that is such a text, or has its words, is dropped unless a user says
them too.
"""

import re
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Final

from mnemostream.turns import Turn

from processors.normalization import normalized

_BULLET: Final = re.compile(
    r"^\s*(?:[-*•·‣–—>#+]+|\(?\d{1,3}[.):]|\[[^\]\n]{0,40}\]|\([^)\n]{0,40}\)|[a-z_ ]{1,20}:)\s*", re.IGNORECASE
)
_TAG: Final = re.compile(r"<[^<>\n]{1,60}>")
_WORDS: Final = re.compile(r"[^\W_]+")
_EMPTY: Final = frozenset(
    re.findall(
        r"\w+",
        "the a an user users s der die das nutzer benutzer o os as um uma el la los las un una le les usuário usuario"
        " utilizador utilisateur utente المستخدم",
    )
)
"""Words that a memory may be written with or without."""
_USER: Final = re.compile("用户|用戶|使用者|ユーザー[はがの]?|사용자[는은가]?")


class Recalled:
    """What the application recalled for the turns of a window."""

    def __init__(self, turns: Iterable[Turn]) -> None:
        self._texts = [text for turn in turns for text in turn.recalled]

    def __bool__(self) -> bool:
        return bool(self._texts)

    def stripped(self, text: str) -> str:
        """`text` without the lines that are recalled texts."""
        if not self._texts:
            return text
        lines = text.split("\n")
        kept = [line for line in lines if not self._is_line(line)]
        return text if len(kept) == len(lines) else "\n".join(kept)

    def covers(self, fact: str, said: Callable[[], Iterable[str]]) -> bool:
        """Whether `fact` is a recalled text, or the words of one, where none of the texts that users `said` has those
        words too: in words of its own, not as a quotation of what was recalled."""
        if not self._texts:
            return False
        whole, words = normalized(fact), _words(fact)
        if whole not in self._whole and words not in self._words:
            return False
        return not any(_says(text, words) and whole not in normalized(text) for text in said())

    def _is_line(self, line: str) -> bool:
        bare = _TAG.sub("", line) if "<" in line else line
        return any(normalized(form) in self._lines for form in dict.fromkeys((line, bare, _BULLET.sub("", bare))))

    @cached_property
    def _whole(self) -> frozenset[str]:
        return frozenset(folded for text in self._texts if (folded := normalized(text)))

    @cached_property
    def _lines(self) -> frozenset[str]:
        parts = (line for text in self._texts if "\n" in text for line in text.split("\n"))
        return self._whole | {folded for line in parts if (folded := normalized(line))}

    @cached_property
    def _words(self) -> frozenset[tuple[str, ...]]:
        return frozenset(words for text in self._texts if (words := _words(text)))


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in _WORDS.findall(_USER.sub(" ", normalized(text))) if word not in _EMPTY)


def _says(text: str, words: tuple[str, ...]) -> bool:
    """Whether all of `words` occur in `text`, give or take their endings ("live", "lives")."""
    folded = normalized(text)
    return all(word[: max(3, len(word) - 2)] in folded for word in words)
