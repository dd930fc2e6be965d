"""What an owner's changes add up to: the memories that are live."""

from collections.abc import Mapping
from types import MappingProxyType

from mnemostream.errors import FeedGap
from mnemostream.types import Change, ExportHeader, ExportLine, Memory, State


class LiveSet:
    """The live memories of each owner, from the beginning of the change feed or from exports. Pure: no I/O.

    Changes are taken once and in order: what came before is passed over, a gap is an error. What it holds is all in
    memory; keep the same two things, the memories and `seq`, in a store of your own where that is too much.
    """

    def __init__(self) -> None:
        self._live: dict[str, dict[str, Memory]] = {}
        self._known: dict[str, int] = {}

    @property
    def known(self) -> Mapping[str, int]:
        """The last `seq` of each owner, as `ChangeFeed(known=…)` takes it."""
        return MappingProxyType(self._known)

    def live(self, owner: str) -> Mapping[str, Memory]:
        """The live memories of `owner`, by id."""
        return MappingProxyType(self._live.get(owner, {}))

    def apply(self, change: Change) -> bool:
        """Take a change; False where it was taken before. Raises FeedGap where one between them is missing."""
        last = self._known.get(change.owner, 0)
        if change.seq <= last:
            return False
        if change.seq > last + 1:
            raise FeedGap(change.owner, last + 1, change.seq)
        self._known[change.owner] = change.seq
        if change.memory is None:  # the owner is erased
            self._live.pop(change.owner, None)
        else:
            self._put(change.owner, change.memory)
        return True

    def load(self, line: ExportLine) -> None:
        """Take a line of an export. Its header puts the owner back to nothing, at the `seq` of the export."""
        match line:
            case ExportHeader():
                self._live.pop(line.owner, None)
                self._known[line.owner] = line.seq
            case Memory():
                self._put(line.owner, line)
            case _:
                return

    def _put(self, owner: str, memory: Memory) -> None:
        if memory.state is State.LIVE:
            self._live.setdefault(owner, {})[memory.id] = memory
        elif owner in self._live:
            self._live[owner].pop(memory.id, None)
