"""The plainest statements of languages other than English: a table each, one reader for all."""

from typing import Final

from processors.local.languages.arabic import ARABIC
from processors.local.languages.chinese import CHINESE
from processors.local.languages.french import FRENCH
from processors.local.languages.german import GERMAN
from processors.local.languages.model import Language
from processors.local.languages.portuguese import PORTUGUESE
from processors.local.languages.spanish import SPANISH

LANGUAGES: Final[tuple[Language, ...]] = (PORTUGUESE, SPANISH, GERMAN, FRENCH, CHINESE, ARABIC)
"""In the order in which they are tried."""

__all__ = ["LANGUAGES", "Language"]
