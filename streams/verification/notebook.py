"""What is remembered while topics are read: in a file, so that memory stays flat however much it is.

One temporary SQLite file, gone when it is closed. Owners are kept as `app/owner`: an app's name holds no slash.
"""

import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from processors.records import Owner
from store.verification.lookups import Head

_SCHEMA: Final = """
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    PRAGMA cache_size = -8000;
    CREATE TABLE way (owner TEXT, turn TEXT, run INTEGER, PRIMARY KEY (owner, turn, run)) WITHOUT ROWID;
    CREATE TABLE unsettled (
        owner TEXT, turn TEXT, run INTEGER, pending INTEGER, topic TEXT, part INTEGER, place INTEGER,
        PRIMARY KEY (owner, turn, run)
    ) WITHOUT ROWID;
    CREATE TABLE feed (
        owner TEXT PRIMARY KEY, owner_key INTEGER, published_to INTEGER NOT NULL, part INTEGER,
        first INTEGER, last INTEGER
    ) WITHOUT ROWID;
    CREATE TABLE hole (owner TEXT, seq INTEGER, PRIMARY KEY (owner, seq)) WITHOUT ROWID;
"""


class Unsettled(NamedTuple):
    """A turn that the ledger does not have: pending in the log of turns, or read from the topic at a place."""

    owner: Owner
    turn_id: str
    run: int
    pending: bool
    topic: str
    partition: int
    offset: int


class FeedState(NamedTuple):
    """What was seen of an owner on the topic of changes: the partition, the first seq and the last without a gap."""

    owner: Owner
    owner_key: int | None
    published_to: int
    partition: int | None
    first: int | None
    last: int | None


class Notebook:
    """One for each run; entered, it has a file."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="mnemo-verify-")
        self._book = sqlite3.connect(Path(self._directory.name) / "notebook.sqlite", isolation_level=None)
        self._book.executescript(_SCHEMA)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._book.close()
        self._directory.cleanup()

    def note_unsettled(self, turns: Iterable[Unsettled]) -> None:
        """These have to be found on their way."""
        rows = [
            (_key(turn.owner), turn.turn_id, turn.run, turn.pending, turn.topic, turn.partition, turn.offset)
            for turn in turns
        ]
        self._many("INSERT OR IGNORE INTO unsettled VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def note_on_the_way(self, turns: Iterable[tuple[Owner, str, int]]) -> None:
        """Turns and their runs that somebody will still read."""
        rows = [(_key(owner), turn_id, run) for owner, turn_id, run in turns]
        self._many("INSERT OR IGNORE INTO way VALUES (?, ?, ?)", rows)

    def lost(self, page: int) -> Iterator[list[Unsettled]]:
        """The turns that are unsettled and on no way, page by page."""
        cursor = self._book.execute(
            "SELECT owner, turn, run, pending, topic, part, place FROM unsettled"
            " WHERE NOT EXISTS (SELECT 1 FROM way WHERE way.owner = unsettled.owner AND way.turn = unsettled.turn"
            " AND (way.run = unsettled.run OR unsettled.pending))"
        )
        while rows := cursor.fetchmany(page):
            yield [
                Unsettled(_owner(owner), turn, run, bool(pending), topic, partition, offset)
                for owner, turn, run, pending, topic, partition, offset in rows
            ]

    def unsettled(self) -> int:
        """How many were noted."""
        [count] = self._book.execute("SELECT count(*) FROM unsettled").fetchone()
        return int(count)

    def expect(self, heads: Iterable[Head]) -> None:
        """What has to be on the topic of changes."""
        rows = [(_key(head.owner), head.owner_key, head.published_to) for head in heads]
        self._many("INSERT OR IGNORE INTO feed (owner, owner_key, published_to) VALUES (?, ?, ?)", rows)

    def expect_each(self, owner: Owner, seqs: Iterable[int]) -> None:
        """Single changes that have to be on it, behind what `expect` was told."""
        self._many("INSERT OR IGNORE INTO hole VALUES (?, ?)", [(_key(owner), seq) for seq in seqs])

    def seen(self, owner: Owner) -> FeedState:
        """What was seen of `owner`; nothing at first, also of one who came later."""
        row = self._book.execute(
            "SELECT owner_key, published_to, part, first, last FROM feed WHERE owner = ?", (_key(owner),)
        ).fetchone()
        return FeedState(owner, None, 0, None, None, None) if row is None else FeedState(owner, *row)

    def note_seen(self, states: Iterable[FeedState]) -> None:
        """What is seen of owners now."""
        rows = [(_key(s.owner), s.owner_key, s.published_to, s.partition, s.first, s.last) for s in states]
        self._many("INSERT OR REPLACE INTO feed VALUES (?, ?, ?, ?, ?, ?)", rows)

    def unpublished(self, page: int) -> Iterator[list[FeedState]]:
        """The owners of whom something that should be on the topic was not seen there at all."""
        cursor = self._book.execute(
            "SELECT owner, owner_key, published_to, part, first, last FROM feed"
            " WHERE owner_key IS NOT NULL AND (coalesce(last, 0) < published_to OR first > 1)"
        )
        while rows := cursor.fetchmany(page):
            yield [FeedState(_owner(owner), *rest) for owner, *rest in rows]

    def holes(self, page: int) -> Iterator[list[tuple[FeedState, int]]]:
        """The single changes that were not seen."""
        cursor = self._book.execute(
            "SELECT hole.seq, feed.owner, owner_key, published_to, part, first, last FROM hole"
            " JOIN feed ON feed.owner = hole.owner WHERE hole.seq > coalesce(feed.last, 0)"
        )
        while rows := cursor.fetchmany(page):
            yield [(FeedState(_owner(owner), *rest), seq) for seq, owner, *rest in rows]

    def _many(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        if rows:
            self._book.execute("BEGIN")
            self._book.executemany(statement, rows)
            self._book.execute("COMMIT")


def _key(owner: Owner) -> str:
    return f"{owner.app}/{owner.owner}"


def _owner(key: str) -> Owner:
    app, _, owner = key.partition("/")
    return Owner(app, owner)
