"""In what two statements can differ."""

from enum import StrEnum


class Difference(StrEnum):
    """What keeps two statements from being taken for one without asking a model."""

    NUMBER = "number"
    UNIT = "unit"
    """Of measure, of currency, of time, and how often."""
    DATE = "date"
    """A day, a month, a year, a time of day, or a day relative to another."""
    NAME = "name"
    NEGATION = "negation"
    TENSE = "tense"
    """Whether it holds, held once, or will hold."""
    CERTAINTY = "certainty"
    """Known, guessed, wished for or imagined."""
    SUBJECT = "subject"
    """Whom it is about."""
    WORDING = "wording"
    """Other words, an emoji among them, where nobody can be sure that they mean the same."""
    ORDER = "order"
    """The same words in another order."""
