import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from store.migrate import migrate
from tests import services
from tests.integration.streams.faults.nursery import Nursery
from tests.integration.streams.faults.system import Scene, ScriptedModel, nursery, scripted_model


@pytest.fixture(scope="session")
def workers() -> Iterator[Nursery]:
    """What starts workers."""
    with services.scratch_directory() as directory, nursery(directory) as made:
        yield made


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    """A model that does as it is told."""
    with scripted_model() as made:
        yield made


@pytest.fixture(autouse=True)
def obedient(model: ScriptedModel) -> Iterator[None]:
    """Each test begins and ends with a model that answers."""
    model.control(reset=True)
    yield
    model.come_back()
    model.control(reset=True)


@pytest.fixture
def scene(
    kafka_bootstrap: str, topic_prefix: str, database_dsn: str, model: ScriptedModel, workers: Nursery
) -> Iterator[Scene]:
    """Topics and a database of this test alone, on the servers that all tests share."""
    with entered(Scene(kafka_bootstrap, topic_prefix, database_dsn, model, workers)) as made:
        yield made


@pytest.fixture(scope="module")
def living(kafka_bootstrap: str, postgres_server: str, model: ScriptedModel, workers: Nursery) -> Iterator[Scene]:
    """The same for all tests of a module, with one worker: it lives through all of them."""
    with fresh(kafka_bootstrap, postgres_server, model, workers) as made:
        made.start(MNEMO_EXTRACTION_TIMEOUT_SECONDS="1")
        yield made
        assert asyncio.run(made.workers[0].terminate()) == 0


@contextmanager
def fresh(bootstrap: str, admin_dsn: str, model: ScriptedModel, workers: Nursery) -> Iterator[Scene]:
    """Topics and a database, made now and left behind."""
    prefix = services.unique_prefix()
    services.create_topics(bootstrap, prefix)
    dsn = services.create_database(admin_dsn, services.unique_name("faults"))
    services.run_async(migrate(dsn))
    with entered(Scene(bootstrap, prefix, dsn, model, workers)) as made:
        yield made


@contextmanager
def entered(scene: Scene) -> Iterator[Scene]:
    """Its workers end with it."""
    try:
        yield scene
    finally:
        scene.kill_all()


@pytest.fixture(scope="session")
def minute() -> float:
    """How long something is gone: a minute where somebody has the time, else less."""
    return 60 if os.environ.get("MNEMO_TEST_LONG") == "1" else 10
