"""Everything that the embedded runtime downloads or builds, done at installation instead of at first use."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cli.embedded.jars import Progress, ensure_jars, no_progress
from cli.embedded.kafka import class_archive, ensure_class_archive, java_executable
from cli.embedded.postgres import find_package


@dataclass(frozen=True, slots=True)
class Fetched:
    """Where it all is."""

    jars: Path
    class_archive: Path
    model: Path


def fetch_all(progress: Progress = no_progress, say: Callable[[str], None] = lambda _message: None) -> Fetched:
    """Kafka's jars, its class archive, the local embedding model; done already: nothing. Safe to run twice at once.

    progress: called with what, bytes done, bytes in all.  say: called with what takes a moment.  Raises EmbeddedError,
    also where a package is missing that the embedded runtime stands on.
    """
    java_executable()
    find_package()
    jars = ensure_jars(progress=progress)
    if not class_archive().exists():
        say("Preparing Kafka for quick starts")
        with tempfile.TemporaryDirectory(prefix="mnemo-fetch-") as scratch:
            ensure_class_archive(Path(scratch) / "kafka")
    say("Preparing the local embedding model")
    from providers.local.model import ensure_model

    return Fetched(jars[0].parent, class_archive(), ensure_model())
