"""The local extractor: rules over English sentences in the first person. No model, and no understanding beyond the
rules.

It knows where somebody lives and works, their name, age, allergies, family and animals, what they like, speak, plan and
own, and what they ask of the assistant. Other plain statements in the first person are kept as they are, in the third.
It passes over questions, hypotheticals, quotations and small talk, and whatever is not English. What it cannot do: tell
irony, resolve pronouns over sentences, or read between the lines.
"""

from processors.local.reading import PROMPT_VERSION, read_locally

__all__ = ["PROMPT_VERSION", "read_locally"]
