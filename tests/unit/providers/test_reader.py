"""The reader that asks a model, over a model that says what a test wants."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from mnemostream.turns import Message, Reason, Role, Turn
from typing_extensions import override

from cli.dev.scripted_answers import scripted_answer
from processors.answers import Dropped
from processors.errors import ModelUnavailable, Rejected
from processors.extraction import ReadingFailed, ReadRequest
from processors.records import AppProfile, Category, ContextMessage
from providers.chat import AnswerSchema, ChatMessage, Completion
from providers.prompts import load
from providers.reader import ModelReader

Says = Callable[[Sequence[ChatMessage]], Completion]


def as_scripted(messages: Sequence[ChatMessage]) -> Completion:
    return Completion(
        scripted_answer([message.content for message in messages]), whole=True, tokens_in=100, tokens_out=7
    )


@dataclass
class Model:
    """The port `Chat`. `says`: one for each call, the last one for all further."""

    says: list[Says] = field(default_factory=lambda: [as_scripted])
    asked: list[Sequence[ChatMessage]] = field(default_factory=list)
    schemas: list[AnswerSchema] = field(default_factory=list)
    model: str = "scripted"
    in_flight: int = 0
    most_in_flight: int = 0

    async def complete(self, messages: Sequence[ChatMessage], schema: AnswerSchema) -> Completion:
        self.asked.append(messages)
        self.schemas.append(schema)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        says = self.says[min(len(self.asked), len(self.says)) - 1]
        try:
            await asyncio.sleep(0)
            return says(messages)
        finally:
            self.in_flight -= 1


def text(said: str, *, whole: bool = True) -> Says:
    return lambda _: Completion(said, whole=whole, tokens_in=100, tokens_out=7)


def refuses(_: Sequence[ChatMessage]) -> Completion:
    raise Rejected(Reason.MODEL_REFUSED, "the model refuses to answer this")


def is_away(_: Sequence[ChatMessage]) -> Completion:
    raise ModelUnavailable("away")


def a_fact(said: str, **changes: Any) -> dict[str, Any]:
    plain = {"text": said, "category": "fact", "importance": 5, "confidence": "explicit", "messages": [0]}
    return plain | changes


def facts(*items: Any) -> Says:
    return text(msgspec.json.encode({"facts": items}).decode())


def request(*said: str, recalled: tuple[str, ...] = (), **profile: Any) -> ReadRequest:
    messages = tuple(Message(Role.USER, each) for each in said)
    turn = Turn(
        id="secret-id",
        app="acme",
        owner="secret-owner",
        said_at=datetime(2026, 11, 21, tzinfo=UTC),
        messages=messages,
        recalled=recalled,
    )
    return ReadRequest(turns=(turn,), profile=AppProfile(**profile))


def named(turn_id: str, asked: ReadRequest) -> ReadRequest:
    return replace(asked, turns=tuple(replace(turn, id=turn_id) for turn in asked.turns))


def towns(count: int) -> str:
    return " ".join(f"I once lived in the town of N{number}x, for a year or so." for number in range(count))


async def test_one_call_reads_a_window_and_its_cost_is_told() -> None:
    model = Model()
    answer = await ModelReader(model).read(request("I live in Lisbon."))
    assert [fact.text for fact in answer.facts] == ["I live in Lisbon."]
    assert (answer.requests, answer.reading.tokens_in, answer.reading.tokens_out) == (1, 100, 7)
    assert (answer.reading.model, answer.reading.prompt_version) == ("scripted", "extraction.v2")
    [[system, user]] = model.asked
    assert (system.role, user.role) == ("system", "user")
    assert system.content.startswith(load("extraction.v2").text.strip())
    assert "secret" not in system.content + user.content


async def test_the_nonce_is_fresh_and_the_system_text_and_schema_are_the_same_objects_worth_caching() -> None:
    model = Model()
    reader = ModelReader(model)
    for _ in range(2):
        await reader.read(request("I live in Lisbon.", categories=(Category("hobby"),)))
    (system, user), (system_again, user_again) = model.asked
    assert system == system_again
    assert user != user_again
    assert model.schemas[0] is model.schemas[1]
    assert "hobby" in model.schemas[0].schema["$defs"]["FactAnswer"]["properties"]["category"]["enum"]


async def test_an_answer_that_cannot_be_used_is_asked_for_again_with_what_was_wrong() -> None:
    model = Model([text("Sure!"), facts({"text": "x"}), as_scripted])
    answer = await ModelReader(model).read(request("I live in Lisbon."))
    assert [fact.text for fact in answer.facts] == ["I live in Lisbon."]
    assert (answer.requests, answer.reading.tokens_in, answer.reading.tokens_out) == (3, 300, 21)
    assert [message.role for message in model.asked[2]] == ["system", "user", "assistant", "user"]
    assert model.asked[1][2].content == "Sure!"
    assert "not valid JSON" in model.asked[1][3].content
    assert "missing required field `category`" in model.asked[2][3].content


@pytest.mark.parametrize(
    "says",
    [
        text(""), text("null"), text("[]"), text('{"facts": [{}]}'), text('{"facts": ['),
        facts(a_fact("x", messages=[9])),
        text(msgspec.json.encode({"facts": [a_fact("The user lives in Lisbon")]}).decode(), whole=False),
    ],
)  # fmt: skip
async def test_what_stays_unusable_is_rejected_with_its_cost_and_never_no_facts(says: Says) -> None:
    model = Model([says])
    with pytest.raises(ReadingFailed) as failed:
        await ModelReader(model).read(request("I live in Lisbon."))
    assert failed.value.reason is Reason.MODEL_ANSWER_UNUSABLE
    assert "Lisbon" not in str(failed.value)
    assert (failed.value.requests, failed.value.reading.tokens_in, len(model.asked)) == (3, 300, 3)


async def test_good_facts_are_kept_and_bad_ones_beside_them_counted_without_asking_again() -> None:
    model = Model([facts(a_fact("Good"), a_fact("Bad", importance=0), a_fact("Bad", messages=[7]), "none at all")])
    dropped: Counter[Dropped] = Counter()
    reader = ModelReader(model, on_dropped=lambda why, count: dropped.update({why: count}))
    answer = await reader.read(request("x y z"))
    assert [fact.text for fact in answer.facts] == ["Good"]
    assert dropped == {Dropped.IMPORTANCE_OUT_OF_RANGE: 1, Dropped.UNKNOWN_MESSAGE: 1, Dropped.NOT_A_FACT: 1}
    assert len(model.asked) == 1


async def test_a_refusal_is_rejected_and_an_absent_model_is_waited_for() -> None:
    with pytest.raises(Rejected) as rejected:
        await ModelReader(Model([text("no"), refuses])).read(request("I live in Lisbon."))
    assert rejected.value.reason is Reason.MODEL_REFUSED
    with pytest.raises(ModelUnavailable):
        await ModelReader(Model([is_away])).read(request("I live in Lisbon."))


async def test_where_all_was_recalled_nothing_is_asked() -> None:
    model = Model()
    answer = await ModelReader(model).read(request("- Lives in Porto", recalled=("Lives in Porto",)))
    assert (answer.facts, answer.requests, model.asked) == ((), 0, [])
    assert answer.reading.prompt_version == "extraction.v2"


async def test_a_long_turn_is_read_in_chunks_at_once_and_its_strongest_facts_are_kept() -> None:
    model = Model()
    said = towns(60) + "\nFACT: The user is allergic to nuts. | importance=10 | confidence=explicit"
    dropped: Counter[Dropped] = Counter()
    reader = ModelReader(model, chunk_characters=1_000, on_dropped=lambda why, count: dropped.update({why: count}))
    answer = await reader.read(request(said))
    assert len(model.asked) == answer.requests == model.most_in_flight == 4
    assert answer.reading.tokens_in == 400
    assert len(answer.facts) == 5
    assert "The user is allergic to nuts." in [fact.text for fact in answer.facts]
    assert dropped[Dropped.TOO_MANY] > 0
    assert answer.unread_characters == 0


async def test_what_chunks_share_is_one_fact() -> None:
    model = Model([facts(a_fact("The user has lived in many towns.", messages=[0]))])
    dropped: Counter[Dropped] = Counter()
    reader = ModelReader(model, chunk_characters=1_000, on_dropped=lambda why, count: dropped.update({why: count}))
    answer = await reader.read(request(towns(60)))
    assert [(fact.text, fact.messages) for fact in answer.facts] == [("The user has lived in many towns.", (0,))]
    assert dropped == {Dropped.REPEATED: answer.requests - 1}


async def test_one_chunk_that_stays_unusable_rejects_the_window_and_one_that_is_away_lets_it_wait() -> None:
    with pytest.raises(ReadingFailed) as failed:
        await ModelReader(Model([stumbles("N59x", text("no"))]), chunk_characters=1_000).read(request(towns(60)))
    assert failed.value.reason is Reason.MODEL_ANSWER_UNUSABLE
    model = Model([stumbles("N0x", is_away)])
    with pytest.raises(ModelUnavailable):
        await ModelReader(model, chunk_characters=1_000).read(request(towns(60)))
    assert model.in_flight == 0


async def test_a_megabyte_of_prose_costs_sixteen_calls_and_the_rest_is_counted() -> None:
    model = Model([facts()])
    answer = await ModelReader(model).read(request(towns(18_000)))
    assert len(model.asked) == 16
    assert 700_000 < answer.unread_characters < 1_000_000


async def test_a_long_window_asks_about_four_chunks_at_once_and_several_take_turns() -> None:
    model = Model([facts()])
    reader = ModelReader(model, chunk_characters=1_000)
    await reader.read(request(towns(200)))
    assert (len(model.asked), model.most_in_flight) == (12, 4)
    await asyncio.gather(*(reader.read(named(f"t-{number}", request(towns(60)))) for number in range(5)))
    assert len(model.asked) == 12 + 20
    assert model.most_in_flight == 8


def stumbles(at: str, otherwise: Says) -> Says:
    """As scripted, but for the chunk that has `at` in it."""
    return lambda messages: otherwise(messages) if at in messages[1].content else as_scripted(messages)


@dataclass
class Slow(Model):
    """Answers `answers` calls, and no more until it is told to."""

    answers: int = 0
    stuck: asyncio.Event = field(default_factory=asyncio.Event)

    @override
    async def complete(self, messages: Sequence[ChatMessage], schema: AnswerSchema) -> Completion:
        if len(self.asked) >= self.answers:
            self.stuck.set()
            await asyncio.Event().wait()
        return await super().complete(messages, schema)


async def test_an_attempt_that_ran_out_of_time_is_gone_on_with_and_every_token_is_told_once() -> None:
    model = Slow(answers=7)
    reader, asked = ModelReader(model, chunk_characters=1_000), request(towns(200))
    attempt = asyncio.ensure_future(reader.read(asked))
    await model.stuck.wait()
    attempt.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt
    assert (len(model.asked), model.in_flight) == (7, 0)
    model.answers = 100
    answer = await reader.read(asked)
    assert len(model.asked) == 12
    assert (answer.requests, answer.reading.tokens_in, answer.reading.tokens_out) == (12, 1_200, 84)
    again = await reader.read(asked)
    assert (again.requests, again.reading.tokens_in, again.facts) == (0, 0, answer.facts)
    assert answer.facts == (await ModelReader(Model(), chunk_characters=1_000).read(asked)).facts


async def test_while_one_chunk_is_waited_for_the_others_are_read_and_not_asked_about_again() -> None:
    model = Model([stumbles("N0x", is_away)])
    reader, asked = ModelReader(model, chunk_characters=1_000), request(towns(200))
    for attempts in (1, 2, 3):
        with pytest.raises(ModelUnavailable):
            await reader.read(asked)
        assert len(model.asked) == 11 + attempts
    model.says = [as_scripted]
    answer = await reader.read(asked)
    assert (len(model.asked), answer.requests, answer.reading.tokens_in) == (15, 12, 1_200)  # three had no answer


async def test_the_longest_wait_that_the_model_asks_for_is_the_windows() -> None:
    waits = iter([None, timedelta(seconds=7), timedelta(seconds=3), None])

    def away(_: Sequence[ChatMessage]) -> Completion:
        raise ModelUnavailable("away", retry_after=next(waits))

    with pytest.raises(ModelUnavailable) as raised:
        await ModelReader(Model([away]), chunk_characters=1_000).read(request(towns(60)))
    assert raised.value.retry_after == timedelta(seconds=7)


async def test_what_was_read_before_a_rejection_is_told_once_and_kept_for_when_the_turn_is_replayed() -> None:
    model = Model([stumbles("N59x", text("no"))])
    reader, asked = ModelReader(model, chunk_characters=1_000), request(towns(60))
    with pytest.raises(ReadingFailed) as failed:
        await reader.read(asked)
    assert failed.value.requests == 3 + 3
    model.says = [as_scripted]
    answer = await reader.read(asked)
    assert (len(model.asked), answer.requests, answer.reading.tokens_in) == (7, 1, 100)


async def test_an_answer_that_came_before_an_outage_is_paid_for_and_told_too() -> None:
    model = Model([stumbles("N0x", text("no")), *[as_scripted] * 3, is_away, as_scripted])
    reader, asked = ModelReader(model, chunk_characters=1_000), request(towns(60))
    with pytest.raises(ModelUnavailable):
        await reader.read(asked)
    answer = await reader.read(asked)
    assert (len(model.asked), answer.requests, answer.reading.tokens_in) == (6, 5, 500)


@pytest.mark.parametrize(
    "change",
    [
        lambda turn: replace(turn, owner="bob"),
        lambda turn: replace(turn, app="other"),
        lambda turn: replace(turn, id="t-2"),
        lambda turn: replace(turn, said_at=turn.said_at + timedelta(seconds=1)),
        lambda turn: replace(turn, recalled=("The user likes tea.",)),
    ],
)
async def test_only_the_same_chunk_of_the_same_turn_is_remembered(change: Callable[[Turn], Turn]) -> None:
    model, asked = Model(), request(towns(60))
    reader = ModelReader(model, chunk_characters=1_000)
    await reader.read(asked)
    await reader.read(replace(asked, turns=tuple(map(change, asked.turns))))
    assert len(model.asked) == 8


async def test_what_the_prompt_is_made_of_tells_chunks_apart_and_another_context_only_the_first() -> None:
    model, asked = Model(), request(towns(60))
    reader = ModelReader(model, chunk_characters=1_000)
    await reader.read(asked)
    await reader.read(replace(asked, profile=AppProfile(categories=(Category("hobby"),))))
    assert len(model.asked) == 8
    await reader.read(replace(asked, context=(ContextMessage(Role.USER, "Hello."),)))
    assert len(model.asked) == 9


async def test_short_windows_are_not_remembered_and_long_ones_not_without_end() -> None:
    model = Model()
    reader = ModelReader(model, chunk_characters=1_000, remembered_chunks=4)
    for said in ("I live in Lisbon.", "I live in Lisbon."):
        await reader.read(request(said))
    assert len(model.asked) == 2
    for name, calls in (("a", 4), ("a", 0), ("b", 4), ("a", 4)):
        model.asked.clear()
        await reader.read(named(name, request(towns(60))))
        assert len(model.asked) == calls


async def test_a_lone_short_turn_costs_less_than_1200_tokens() -> None:
    model = Model()
    await ModelReader(model).read(request("I moved to Lisbon last week, and my sister Ana works at Acme."))
    sent = (
        "".join(message.content for message in model.asked[0]) + msgspec.json.encode(model.schemas[0].schema).decode()
    )
    assert len(sent) / 4 < 1_100  # for this prompt four characters a token is right within a percent: 981 by o200k
