"""Recall: asking an owner's memories, and waiting for a turn to be among them."""

import asyncio
from dataclasses import replace
from datetime import timedelta

from memory.ports import Embedder, MemorySearch, TurnNotices, TurnReports
from processors.errors import ModelUnavailable
from processors.records import Owner
from processors.search import Mode, SearchQuery, SearchResult, TurnReport, TurnState

_OPEN = frozenset({TurnState.UNKNOWN, TurnState.PENDING})


class Recall:
    """Questions of one query service."""

    def __init__(self, memories: MemorySearch, embedder: Embedder) -> None:
        self._memories = memories
        self._embedder = embedder

    async def search(self, owner: Owner, query: SearchQuery) -> SearchResult:
        """The owner's memories that answer `query`, best first.

        While the embedding model is away the text arm answers alone, and the result says so.
        """
        vector = None
        degraded = False
        if query.text.strip() and query.mode is not Mode.TEXT:
            try:
                [vector] = await self._embedder.embed([query.text])
            except ModelUnavailable:
                degraded = True
                if query.mode is Mode.VECTOR:  # which alone would find nothing
                    query = replace(query, mode=Mode.TEXT)
        hits = await self._memories.search(owner, query, vector, self._embedder.model)
        return SearchResult(hits, degraded)


class TurnWatch:
    """Waiting for turns to end."""

    def __init__(self, reports: TurnReports, notices: TurnNotices) -> None:
        self._reports = reports
        self._notices = notices

    async def wait(self, owner: Owner, turn_id: str, timeout: timedelta) -> TurnReport:
        """The turn's state once it has ended, or as it is when `timeout` is over. A timeout of zero just looks."""
        if timeout <= timedelta(0):
            return await self._reports.report(owner, turn_id)
        deadline = asyncio.get_running_loop().time() + timeout.total_seconds()
        async with self._notices.subscribe(owner, turn_id) as ended:
            while True:
                report = await self._reports.report(owner, turn_id)
                left = deadline - asyncio.get_running_loop().time()
                if report.state not in _OPEN or left <= 0:
                    return report
                try:
                    await asyncio.wait_for(ended.wait(), left)
                except TimeoutError:
                    return await self._reports.report(owner, turn_id)
                ended.clear()
