"""A window read by the rules: what `LocalReader` does, without its thread."""

from typing import Final

from mnemostream.turns import Role

from processors.answers import Read, strongest
from processors.cutting import cut_bytes
from processors.dates import local_time
from processors.extraction import ReadRequest
from processors.facts import MAX_FACT_BYTES, Fact
from processors.local.draft import Draft
from processors.local.listening import Heard, Listener

PROMPT_VERSION: Final = "local-3"
"""Raised with every change of the rules that changes what is read."""


def read_locally(request: ReadRequest, *, max_fact_bytes: int = MAX_FACT_BYTES) -> Read:
    """The facts that users state or take back in the window, the strongest kept; other roles state none."""
    listener = Listener(request.context)
    for index, turn in enumerate(request.turns):
        local = local_time(turn, request.profile)
        for place, message in enumerate(turn.messages):
            if message.role is Role.ASSISTANT:
                listener.hear_assistant(message.content)
            elif message.role is Role.USER and not turn.off_record:
                listener.hear(index, place, message.content, local)
    facts = [_fact(request, heard, draft, max_fact_bytes) for heard in listener.heard for draft in heard.said.drafts]
    kept, dropped = strongest(facts, request)
    return Read(kept, dropped)


def _fact(request: ReadRequest, heard: Heard, draft: Draft, max_fact_bytes: int) -> Fact:
    return Fact(
        turn=heard.turn,
        text=cut_bytes(draft.text, max_fact_bytes),
        category=draft.category,
        importance=draft.importance,
        confidence=draft.confidence,
        role=Role.USER,
        said_at=request.turns[heard.turn].said_at,
        subject=draft.subject,
        attribute=draft.attribute,
        messages=(heard.place,),
        valid_from=draft.since,
        expires_at=draft.expires_at,
        retracts=draft.retracts,
    )
