"""The table that `make bench` prints."""

import contextlib
import sys
import time
from collections.abc import Iterator


class Table:
    """Markdown, a row at a time."""

    def __init__(self) -> None:
        self._print("| what | figure | beside |", "|---|---|---|")

    def row(self, what: str, figure: str, beside: str = "") -> None:
        """One line of it, at once."""
        self._print(f"| {what} | {figure} | {beside} |")

    @staticmethod
    def _print(*lines: str) -> None:
        for line in lines:
            print(line, flush=True)


@contextlib.contextmanager
def telling(what: str) -> Iterator[None]:
    """Progress on stderr."""
    start = time.perf_counter()
    print(f"{what} …", file=sys.stderr, flush=True)
    yield
    print(f"{what}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
