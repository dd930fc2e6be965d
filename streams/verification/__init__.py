"""The invariants that need Kafka, the turns that were acknowledged and the change feed: what `mnemo verify` asks beside
the store.
"""

from runtime.settings import Settings
from store.database import Database
from store.verification.findings import ACCEPTED, FEED, Findings
from store.verification.lookups import TopicLookups
from store.verification.sweep import Progress
from streams.topics import CANDIDATES, CHANGES, TURNS, missing_topics
from streams.verification.feed import FeedCheck
from streams.verification.notebook import Notebook
from streams.verification.topic_log import open_log
from streams.verification.turns import TurnsCheck

__all__ = ["TopicsAway", "needs_kafka", "verify_topics"]


def needs_kafka(findings: Findings) -> bool:
    """Whether one of the invariants has to do with the topics."""
    return ACCEPTED in findings or FEED in findings


class TopicsAway(Exception):
    """The topics that there should be are not there."""


async def verify_topics(
    settings: Settings,
    database: Database,
    findings: Findings,
    *,
    app: str | None = None,
    progress: Progress = lambda _: None,
) -> None:
    """Check the topics against the store. Raises BrokerUnavailable, StoreUnavailable, and TopicsAway.

    Memory stays flat: what has to be remembered of each owner and turn is kept in a temporary file.
    """
    missing = await missing_topics(settings, (TURNS, CANDIDATES, CHANGES))
    if missing:
        raise TopicsAway(f"these topics do not exist: {', '.join(missing)}; `mnemo topics` creates them")
    store = TopicLookups(database)
    async with open_log(settings) as log:
        if ACCEPTED in findings:
            with Notebook() as notebook:
                await TurnsCheck(settings, log, store, notebook, findings, app=app, progress=progress).run()
        if FEED in findings:
            with Notebook() as notebook:
                await FeedCheck(settings, log, store, notebook, findings, app=app, progress=progress).run()
