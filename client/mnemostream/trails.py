"""How far a feed is: which change of an owner comes next, and what the application is done with."""

from collections.abc import Mapping
from enum import Enum, auto

from mnemostream.errors import FeedGap


class Begun(Enum):
    """Where the reading of a partition began."""

    AT_THE_BEGINNING = auto()
    """An owner's first change is the one after what is known of it."""
    IN_THE_MIDDLE = auto()
    """Where it was left. An owner of whom nothing is known may come with any number."""
    AT_THE_END = auto()
    """Whatever came before does not matter."""


class Trail:
    """The last `seq` of each owner of one partition. `known`: by owner, what the application has."""

    def __init__(self, begun: Begun, known: Mapping[str, int], place: int) -> None:
        self._begun = begun
        self._known = known
        self._last: dict[str, int] = {}
        self._may_jump: set[str] = set()
        self._was_away = False
        self.place = place
        """The offset after what was taken or passed over."""

    def take(self, owner: str, seq: int) -> bool:
        """False for a duplicate. Raises FeedGap."""
        last = self._last.get(owner)
        if last is None:
            last, sure = self._before(owner)
        else:
            sure = owner not in self._may_jump
        if seq <= last:
            return False
        jumps = seq > last + 1
        if jumps and sure:
            raise FeedGap(owner, last + 1, seq)
        if owner in self._may_jump:
            if jumps:
                self._may_jump.discard(owner)
        elif owner not in self._last and not sure and (self._was_away or self._begun is Begun.IN_THE_MIDDLE):
            # What comes first in the middle may be a late duplicate of what was published long before.
            self._may_jump.add(owner)
        self._last[owner] = seq
        return True

    def know(self, owner: str, seq: int) -> None:
        """The application has everything of `owner` up to `seq`."""
        if owner in self._last:
            self._last[owner] = seq
            self._may_jump.discard(owner)

    def pass_to(self, place: int) -> None:
        """Somebody else read on to `place` meanwhile: what comes next of an owner may lie beyond what was seen here."""
        self._may_jump = set(self._last)
        self._was_away = True
        self.place = place

    def _before(self, owner: str) -> tuple[int, bool]:
        """The last `seq` of an owner who was not met here yet, and whether the next one must follow it."""
        known = self._known.get(owner)
        if self._was_away:
            return known or 0, False
        match self._begun:
            case Begun.AT_THE_BEGINNING:
                return known or 0, True
            case Begun.IN_THE_MIDDLE:
                return known or 0, known is not None
            case Begun.AT_THE_END:
                return known or 0, False


class Progress:
    """How far one process is, in all partitions that it ever had."""

    def __init__(self, known: Mapping[str, int]) -> None:
        self._known = dict(known)
        self._trails: dict[int, Trail] = {}
        self._finished: dict[int, int] = {}
        self._reading: set[int] = set()

    @property
    def finished(self) -> dict[int, int]:
        """What is done with, by partition: the offset after it."""
        return dict(self._finished)

    def given(self, partition: int, place: int, begun: Begun) -> None:
        """`partition` is read from `place`."""
        trail = self._trails.get(partition)
        if trail is None:
            self._trails[partition] = Trail(begun, self._known, place)
        elif place > trail.place:
            trail.pass_to(place)
        if begun is not Begun.AT_THE_BEGINNING:
            self._finished[partition] = max(self._finished.get(partition, 0), place)
        self._reading.add(partition)

    def lost(self) -> None:
        """All partitions are; some may come back."""
        self._reading.clear()

    def reads(self, partition: int) -> bool:
        """Whether it was not lost."""
        return partition in self._reading

    def is_finished(self, partition: int, offset: int) -> bool:
        """Whether the record at `offset` is done with, and comes again."""
        return offset < self._finished.get(partition, 0)

    def take(self, partition: int, owner: str, seq: int) -> bool:
        """False for a duplicate. Raises FeedGap."""
        return self._trails[partition].take(owner, seq)

    def finish(self, partition: int, offset: int) -> None:
        """The record at `offset` is done with."""
        self._finished[partition] = max(self._finished.get(partition, 0), offset + 1)
        trail = self._trails[partition]
        trail.place = max(trail.place, offset + 1)

    def know(self, owner: str, seq: int) -> None:
        """The application has everything of `owner` up to `seq`."""
        self._known[owner] = seq
        for trail in self._trails.values():
            trail.know(owner, seq)
