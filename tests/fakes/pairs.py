"""Questions for arbitrators: short to write, with the differences that the guards see."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5

from mnemostream.turns import Role

from processors.arbitration import Offered, Question
from processors.guards import differences

SAID = datetime(2026, 11, 21, 10, tzinfo=UTC)
_NAMES = UUID("5f0e6f0a-2f1d-4a71-9b1e-0d8a54b0a6c3")


def id_of(text: str) -> UUID:
    """Of the memory that says `text`."""
    return uuid5(_NAMES, text)


def question(
    text: str,
    *known: str,
    attribute: str | None = None,
    same_slot: bool | None = None,
    live: bool = True,
    retracts: bool = False,
    role: Role | None = Role.USER,
) -> Question:
    """`text` beside each of `known`, which was said a day before; of the same slot where `attribute` names one."""
    offered = tuple(
        Offered(
            memory_id=id_of(memory),
            text=memory,
            stated_at=SAID - timedelta(days=1),
            live=live,
            same_slot=attribute is not None if same_slot is None else same_slot,
            similarity=0.9,
            differences=differences(memory, text),
        )
        for memory in known
    )
    return Question(
        text=text,
        stated_at=SAID,
        role=role,
        retracts=retracts,
        offered=offered,
        subject=None if attribute is None else "user",
        attribute=attribute,
    )
