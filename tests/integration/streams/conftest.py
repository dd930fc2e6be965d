from collections.abc import Callable, Iterator

import pytest

from tests.integration.streams.worker_process import WorkerProcess

WorkerStarter = Callable[..., WorkerProcess]


@pytest.fixture
def worker_settings(kafka_bootstrap: str, topic_prefix: str, database_dsn: str) -> dict[str, str]:
    """The environment of a worker on topics, a group and a database of this test alone."""
    return {
        "MNEMO_KAFKA_BOOTSTRAP_SERVERS": kafka_bootstrap,
        "MNEMO_TOPIC_PREFIX": topic_prefix,
        "MNEMO_CONSUMER_GROUP": f"group-{topic_prefix.rstrip('.')}",
        "MNEMO_POSTGRES_DSN": database_dsn,
        "MNEMO_DRAIN_SECONDS": "5",
    }


@pytest.fixture
def start_worker(worker_settings: dict[str, str]) -> Iterator[WorkerStarter]:
    """Start workers with these settings; they are killed after the test."""
    workers: list[WorkerProcess] = []

    def start(stages: str = "extract,reconcile", **changes: str) -> WorkerProcess:
        workers.append(WorkerProcess(worker_settings | changes, stages))
        return workers[-1]

    yield start
    for worker in workers:
        worker.kill()
