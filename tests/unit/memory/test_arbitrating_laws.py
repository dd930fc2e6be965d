"""Laws of arbitration: whatever the order in which statements arrive."""

import asyncio
import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from processors.arbitration import ArbitrationAnswer, ArbitrationRequest, Judgement
from processors.facts import Reading
from processors.memories import State
from processors.routing import Action
from tests.fakes.values import OWNER
from tests.unit.memory.owner_story import HOME, OwnerStory, hours

CITIES = ["Porto", "Lisbon", "Berlin", "Rome", "Oslo", "Quito", "Kyoto"]


class Everything:
    """An arbitrator for whom no two statements of one slot hold at once; or one that draws its judgements."""

    def __init__(self, draw: st.DataObject | None = None) -> None:
        self._draw = draw

    async def arbitrate(self, request: ArbitrationRequest) -> ArbitrationAnswer:
        answer = tuple({o.memory_id: self._judge(o.text, q.text) for o in q.offered} for q in request.questions)
        return ArbitrationAnswer(answer, Reading(model="law", prompt_version="1"))

    def _judge(self, known: str, new: str) -> Judgement:
        actions = [Action.ADD, Action.UPDATE, Action.DELETE, Action.NOOP]
        action = Action.DELETE if self._draw is None else self._draw.draw(st.sampled_from(actions))
        return Judgement(action, "by law", f"{known} {new}"[:200] if action is Action.UPDATE else None)


@settings(max_examples=60, deadline=None)
@given(st.permutations(range(len(CITIES))), st.integers(2, len(CITIES)))
def test_a_slot_ends_with_what_was_said_last_and_a_history_without_gaps(arrival: list[int], count: int) -> None:
    story = OwnerStory(Everything())
    order = [index for index in arrival if index < count]

    async def tell() -> None:
        for received, index in enumerate(order):
            text = f"The user lives in {CITIES[index]}."
            await story.say(text, at=index, received=100 + received, slot=HOME)

    asyncio.run(tell())
    line = sorted(story.memories(), key=lambda memory: memory.valid_from)
    assert [memory.content for memory in line] == [f"The user lives in {city}." for city in CITIES[:count]]
    assert story.live() == [line[-1].content]
    for earlier, later in itertools.pairwise(line):
        assert (earlier.valid_to, earlier.superseded_by) == (later.valid_from, later.id)


_SAID = st.tuples(
    st.sampled_from(CITIES[:4]),  # what
    st.integers(0, 12),  # when
    st.integers(0, 6),  # how late it arrives
    st.booleans(),  # of the slot
    st.sampled_from([False, False, False, True]),  # taken back
    st.sampled_from([0.95, 0.4]),
)


@settings(max_examples=120, deadline=None)
@given(st.lists(_SAID, max_size=10), st.data())
def test_whatever_an_arbitrator_says_history_stays_sound(
    said: list[tuple[str, int, int, bool, bool, float]], data: st.DataObject
) -> None:
    story = OwnerStory(Everything(data))
    for city in CITIES[1:4]:
        story.vectors.place(f"The user lives in {city}.", near="The user lives in Porto.", cosine=0.9)

    async def tell() -> None:
        for number, (city, when, late, of_slot, retracts, confidence) in enumerate(said):
            await story.say(
                f"The user lives in {city}.",
                at=when,
                received=when + late + number / 100,
                slot=HOME if of_slot else None,
                retracts=retracts,
                confidence=confidence,
            )

    asyncio.run(tell())
    memories = {memory.id: memory for memory in story.memories()}
    for memory in memories.values():
        assert (memory.state is State.LIVE) == (memory.retired_at is None)
        assert memory.valid_to is None or memory.valid_to >= memory.valid_from
        assert not (memory.state is State.LIVE and memory.superseded_by)
        for follow in ("supersedes", "superseded_by"):
            seen, current = set(), memory
            while (following := getattr(current, follow)) is not None:
                assert following in memories
                assert following not in seen
                seen.add(following)
                current = memories[following]
    # The feed folded is the store.
    folded = {memory.id: memory for _, _, memory in story.store.changes(OWNER)}
    assert folded == memories
    assert [seq for seq, _, _ in story.store.changes(OWNER)] == list(range(1, len(story.store.changes(OWNER)) + 1))
    live = [memory.content for memory in memories.values() if memory.state is State.LIVE]
    assert len(live) == len(set(live))
    assert all(memory.recorded_at <= hours(1_000) for memory in memories.values())
