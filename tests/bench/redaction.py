"""What redaction costs: no turn reaches the log without it, so it is on the way of every one."""

import statistics
import time
from typing import Final

from mnemostream.redaction import redact

_SIZE: Final = 2_000
_ROUNDS: Final = 400
_PROSE: Final = """We spent the weekend in Sintra, and Ana wants to go back in spring. I told her that the train from
Rossio takes 40 minutes, and that the palace opens at 9:30. By the way: I changed jobs, I work for a bakery now, four
days a week.
"""
_CODE: Final = """def login(user: str, password: str) -> Token:
    \"\"\"The token of `user`; raises Unauthenticated.\"\"\"
    if not bcrypt.checkpw(password.encode(), settings.password_hash):
        raise Unauthenticated(user)
    token = tokens.issue(user, ttl=timedelta(hours=1), secret=settings.secret_key)
    return Token(value=token, issued_at=clock.now())
"""
_OTHER_SCRIPT: Final = "我上个月搬到了里斯本，下周一开始在一家面包店上班。安娜想在春天再去一次辛特拉。\n"


def measure() -> dict[str, float]:
    """Milliseconds for a turn of 2 kB, the median: by what the turn consists of."""
    kinds = {
        "prose": _PROSE,
        "code": _CODE,
        "prose, Chinese": _OTHER_SCRIPT,
        "prose with a secret": _PROSE * 4 + "my password is hunter2\n",
    }
    return {kind: _median(_two_kilobytes(text)) for kind, text in kinds.items()}


def _two_kilobytes(text: str) -> str:
    encoded = (text * (_SIZE // len(text.encode()) + 1)).encode()
    return encoded[:_SIZE].decode("utf-8", "ignore")


def _median(text: str) -> float:
    redact(text)
    taken = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        redact(text)
        taken.append(1_000 * (time.perf_counter() - start))
    return statistics.median(taken)
