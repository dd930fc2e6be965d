"""What needs no model."""

from datetime import UTC, datetime

import pytest
from mnemostream.turns import Message, Role, Turn

from processors.records import ContextMessage
from processors.small_talk import needs_no_reading


def turn(*said: tuple[Role, str], off_record: bool = False) -> Turn:
    return Turn(
        id="t",
        app="a",
        owner="o",
        said_at=datetime(2026, 11, 21, tzinfo=UTC),
        messages=tuple(Message(role, text) for role, text in said),
        off_record=off_record,
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "Hi!",
        "Hello there 👋",
        "Thanks, that's great 😀",
        "ok great thanks",
        "Good morning! How are you today?",
        "🎉🎉",
        "No problem, bye",
        "Obrigada!",
        "Guten Morgen",
        "你好！",
        "شكرا",
        "Thank you so much!!!",
        "...",
        "ok 👍",
        "👍🏽",
        "🎉" * 300,
        "❤️",
        "ｏｋ",
        "Olá, tudo bem?",
        "Muito obrigado! 🙏",
        "Até amanhã!",
        "Danke schön, alles klar",
        "Grüß Gott!",
        "好的，谢谢你！",
        "早上好",
        "صباح الخير",
        "شُكْرًا",
        "مرحبـــا",
        "¡Hola! ¿Vale?",
        "Merci beaucoup",
        "Спасибо!",
        "감사합니다",
        "\u200b \u00a0",
    ],
)
def test_greetings_thanks_and_signs_need_no_reading(text: str) -> None:
    assert needs_no_reading(turn((Role.USER, text), (Role.ASSISTANT, "I live in Lisbon myself, ask me anything.")))


@pytest.mark.parametrize(
    "text",
    [
        "I live in Lisbon",
        "My name is Ana",
        "no, I live in Porto",
        "Hi, I'm Ana",
        "Thanks, I'm vegan though",
        "ok 42",
        "Moro em Lisboa",
        "我住在里斯本",
        "Call me Al",
        "Hi " * 200 + "I moved",
        "Olá, sou o Rui",
        "Ich bin Arzt, danke",
        "谢谢，我吃素",
        "مرحبا، أنا نباتي",
        "ok 👍 but no nuts",
        "I",
    ],
)
def test_whatever_says_more_is_read(text: str) -> None:
    assert not needs_no_reading(turn((Role.USER, text)))


def test_a_yes_after_a_question_says_something() -> None:
    assert needs_no_reading(turn((Role.USER, "Yes")))
    assert not needs_no_reading(turn((Role.ASSISTANT, "Do you live in Lisbon?"), (Role.USER, "Yes")))
    asked = (ContextMessage(Role.ASSISTANT, "Do you live in Lisbon?"),)
    assert not needs_no_reading(turn((Role.USER, "Yes")), asked)
    assert needs_no_reading(turn((Role.USER, "🎉")), asked)
    assert not needs_no_reading(turn((Role.USER, "👍")), asked)
    assert not needs_no_reading(turn((Role.USER, "是的")), asked)


def test_what_only_the_assistant_or_the_system_says_is_not_read() -> None:
    assert needs_no_reading(turn((Role.SYSTEM, "You are kind."), (Role.ASSISTANT, "You live in Lisbon.")))
    assert not needs_no_reading(turn((Role.TOOL, "Calendar: dentist on Friday")))


def test_off_the_record_is_never_read() -> None:
    assert needs_no_reading(turn((Role.USER, "I live in Lisbon"), off_record=True))


@pytest.mark.parametrize("question", ["Do you live in Lisbon?", "リスボンに住んでいますか？", "هل تعيش في لشبونة؟"])
def test_a_question_is_known_by_its_mark_in_other_scripts_too(question: str) -> None:
    said = turn((Role.USER, "Yes"))
    assert not needs_no_reading(said, (ContextMessage(Role.ASSISTANT, question),))
    assert not needs_no_reading(turn((Role.ASSISTANT, question), (Role.USER, "Yes")))
