"""The router on labelled pairs: cosine (recorded, local model) and guards together."""

from collections import Counter
from typing import Final

import pytest

from processors.guards import Difference, differences
from tests import corpus
from tests.corpus import Pair

AUTO_MERGE: Final = 0.95
ARBITRATION: Final = 0.85
NEVER_SILENT: Final = frozenset({"number", "unit", "date", "name", "negation"})
WANTED: Final = {"same": "merge", "update": "arbitrate", "contradiction": "arbitrate", "unrelated": "add"}

PAIRS: Final = corpus.load()
CHANGED: Final = [pair for pair in PAIRS if NEVER_SILENT & set(pair.changes)]


def route(pair: Pair) -> str:
    """Where the table of DESIGN.md §5 sends a pair."""
    if pair.cosine >= AUTO_MERGE and not differences(pair.old, pair.new):
        return "merge"
    return "arbitrate" if pair.cosine >= ARBITRATION or pair.same_slot else "add"


def test_the_corpus_is_large_and_of_every_kind() -> None:
    labels = Counter[str](pair.label for pair in PAIRS)
    assert len(PAIRS) >= 200
    assert min(labels[label] for label in WANTED) >= 15
    assert {"en", "pt", "de", "zh", "ar"} <= {pair.language for pair in PAIRS}
    assert {change for pair in PAIRS for change in pair.changes} <= {str(kind) for kind in Difference}
    assert len({(pair.old, pair.new) for pair in PAIRS}) == len(PAIRS)


def test_the_corpus_holds_changes_that_cosine_does_not_see() -> None:
    assert sum(pair.cosine >= AUTO_MERGE for pair in CHANGED) >= 25


@pytest.mark.parametrize("pair", CHANGED, ids=lambda pair: f"{pair.old} / {pair.new}")
def test_a_changed_number_date_name_or_negation_is_never_merged_at_any_cosine(pair: Pair) -> None:
    assert differences(pair.old, pair.new)
    assert differences(pair.new, pair.old)


def test_whatever_does_not_say_the_same_has_a_difference_at_any_cosine() -> None:
    assert [pair for pair in PAIRS if pair.label != "same" and not differences(pair.old, pair.new)] == []


def test_the_named_difference_is_found_in_most_pairs() -> None:
    named = [pair for pair in PAIRS if pair.changes]
    found = [pair for pair in named if set(pair.changes) & set(differences(pair.old, pair.new))]
    assert len(found) / len(named) >= 0.88


def test_precision_and_recall_of_each_route() -> None:
    """Precision of "merge" is the law; the others cost a question or a near-duplicate, so they have a floor."""
    sent = Counter((WANTED[pair.label], route(pair)) for pair in PAIRS)
    print("\nroute        pairs sent  precision  recall")
    figures = {}
    for name in ("merge", "arbitrate", "add"):
        right = sent[name, name]
        total = sum(count for (_, got), count in sent.items() if got == name)
        wanted = sum(count for (want, _), count in sent.items() if want == name)
        figures[name] = (right / total, right / wanted)
        print(f"{name:12} {wanted:5} {total:4} {figures[name][0]:10.3f} {figures[name][1]:7.3f}")
    assert figures["merge"][0] == 1.0
    assert figures["merge"][1] >= 0.3
    assert figures["arbitrate"][0] >= 0.7
    assert figures["arbitrate"][1] >= 0.95
    assert figures["add"][0] >= 0.7


def test_no_update_or_contradiction_of_one_slot_is_added_beside_what_it_replaces() -> None:
    wrong = [pair for pair in PAIRS if pair.label in ("update", "contradiction") and pair.same_slot]
    assert {route(pair) for pair in wrong} == {"arbitrate"}
