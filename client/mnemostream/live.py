"""What an owner's changes add up to: the memories that are live."""

from collections.abc import Mapping
from types import MappingProxyType

from mnemostream.errors import FeedGap
from mnemostream.types import Change, ExportEnd, ExportHeader, ExportLine, Memory, State


class LiveSet:
    """The live memories of each owner, from the beginning of the change feed or from exports. Pure: no I/O.

    Changes are taken once and in order: what came before is passed over, a gap is an error. What it holds is all in
    memory; keep the same two things, the memories and `seq`, in a store of your own where that is too much.
    """

    def __init__(self) -> None:
        self._live: dict[str, dict[str, Memory]] = {}
        self._known: dict[str, int] = {}
        self._header: ExportHeader | None = None
        self._exported: dict[str, Memory] = {}

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
        """Take a line of an export, one export after the other. Its end puts what it held in the place of what was
        there of the owner, at the `seq` of the export: one that breaks off changes nothing.

        Raises ValueError for a memory or an end without its header before it.
        """
        match line:
            case ExportHeader():
                self._header, self._exported = line, {}
            case Memory():
                if self._header is None or self._header.owner != line.owner:
                    raise ValueError("this memory is of another export than the header before it")
                if line.state is State.LIVE:
                    self._exported[line.id] = line
            case ExportEnd():
                if self._header is None:
                    raise ValueError("an export begins with its header")
                self._live[self._header.owner] = self._exported
                self._known[self._header.owner] = self._header.seq
                self._header, self._exported = None, {}
            case _:
                return

    def _put(self, owner: str, memory: Memory) -> None:
        if memory.state is State.LIVE:
            self._live.setdefault(owner, {})[memory.id] = memory
        elif owner in self._live:
            self._live[owner].pop(memory.id, None)
