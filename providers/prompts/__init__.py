"""The prompts, each in a file of its own that carries its version. A change of text is a new file."""

from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Instructions:
    """The stable text of a prompt, and the version that goes into every decision."""

    version: str
    text: str


def load(name: str) -> Instructions:
    """The prompt of the file `name`.md, such as `extraction.v2`."""
    return Instructions(name, files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8"))
