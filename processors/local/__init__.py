"""The local extractor: rules over plain sentences in the first person. No model, and no understanding beyond the rules.

English is read best: homes, jobs, names, ages, allergies, diets, family, animals, likes, languages, plans with dates,
passing states with their end, rules for the assistant; other plain statements in the first person are kept as they are,
in the third. Of Portuguese, Spanish, German, French, Chinese and Arabic the plainest forms of the same are known
(`processors.local.languages`); text stays in the speaker's language, slots are the same in all.

Corrections ("sorry, I meant Lisbon") replace what they correct, and what is taken back ("forget that I live in Lisbon")
becomes a retraction with its text and slot. It passes over questions, hypotheticals, quotations, role play, pasted
lists and code, and what others are said to say. What it cannot do: tell irony, resolve "he", "she" and "there" over
sentences, or read between the lines.
"""

from processors.local.reading import PROMPT_VERSION, read_locally

__all__ = ["PROMPT_VERSION", "read_locally"]
