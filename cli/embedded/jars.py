"""Kafka's jars: fetched once into the user's cache, each one held against the lock list beside this module."""

import hashlib
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cli.embedded.errors import FetchFailed
from cli.embedded.processes import exclusive

KAFKA_VERSION: Final = "4.1.1"
_LOCK_LIST: Final = Path(__file__).with_name(f"kafka-{KAFKA_VERSION}.lock")
_PARALLEL: Final = 6
_ATTEMPTS: Final = 3

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is (in bytes, or in steps)."""


def no_progress(_what: str, _done: int, _total: int) -> None:
    """Says nothing."""


@dataclass(frozen=True, slots=True)
class Jar:
    """One line of the lock list."""

    group: str
    artifact: str
    version: str
    sha256: str
    size_bytes: int

    @property
    def filename(self) -> str:
        """Its name in a Maven repository."""
        return f"{self.artifact}-{self.version}.jar"


def locked_jars(text: str | None = None) -> tuple[Jar, ...]:
    """The lock list, in the order of the class path."""
    jars = []
    for line in (text if text is not None else _LOCK_LIST.read_text()).splitlines():
        if line and not line.startswith("#"):
            sha256, size, coordinates = line.split()
            group, artifact, version = coordinates.split(":")
            jars.append(Jar(group, artifact, version, sha256, int(size)))
    return tuple(jars)


def cache_directory() -> Path:
    """`mnemostream` in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "mnemostream"


def kafka_cache_directory() -> Path:
    """Of this version of Kafka."""
    return cache_directory() / f"kafka-{KAFKA_VERSION}"


def jars_in(folder: Path) -> list[Path]:
    """The jars of a folder that somebody filled by other means. They are taken as they are."""
    jars = sorted(folder.glob("*.jar"))
    if not any(jar.name.startswith("kafka_2.13-") for jar in jars):
        raise FetchFailed(f"{folder} holds no kafka_2.13-*.jar: it is not a folder with the jars of a Kafka release")
    return jars


def ensure_jars(directory: Path | None = None, progress: Progress = no_progress) -> list[Path]:
    """The jars in `directory` (default: the user's cache), those that are missing fetched from Maven Central.

    Of those that are there only names and sizes are looked at. Several processes may call this at once: one fetches,
    the others wait. What was fetched before an interruption is kept. Raises FetchFailed.
    """
    directory = directory or kafka_cache_directory() / "jars"
    wanted = locked_jars()
    if _missing(wanted, directory):
        with exclusive(directory.parent / "fetch.lock"):
            missing = _missing(wanted, directory)  # another process may have fetched them meanwhile
            directory.mkdir(parents=True, exist_ok=True)
            if missing:
                _fetch(missing, directory, progress)
    return [directory / jar.filename for jar in wanted]


def _missing(wanted: tuple[Jar, ...], directory: Path) -> list[Jar]:
    def is_there(jar: Jar) -> bool:
        try:
            return (directory / jar.filename).stat().st_size == jar.size_bytes
        except FileNotFoundError:
            return False

    return [jar for jar in wanted if not is_there(jar)]


def _fetch(missing: list[Jar], directory: Path, progress: Progress) -> None:
    total, done = sum(jar.size_bytes for jar in missing), 0
    what = f"Kafka {KAFKA_VERSION}"
    progress(what, 0, total)
    largest_first = sorted(missing, key=lambda jar: -jar.size_bytes)
    with ThreadPoolExecutor(_PARALLEL) as pool:
        running = {pool.submit(_fetch_one, jar, directory): jar for jar in largest_first}
        try:
            for future in as_completed(running):
                future.result()
                done += running[future].size_bytes
                progress(what, done, total)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _fetch_one(jar: Jar, directory: Path) -> None:
    """Download, check, and only then give it its name. jgo's own repository is a directory that goes away again."""
    # Takes half a second to import, and only a fetch needs it.
    from jgo.maven import MavenContext

    failure: Exception | None = None
    for _ in range(_ATTEMPTS):
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=directory) as scratch:
            maven = MavenContext(repo_cache=Path(scratch), local_repos=[], timeout=30)
            component = maven.project(jar.group, jar.artifact).at_version(jar.version)
            try:
                fetched = component.artifact().resolve()
            except (OSError, RuntimeError, ValueError, AssertionError) as error:  # of jgo and requests
                failure = error
                continue
            verify(fetched, jar)
            fetched.replace(directory / jar.filename)
            return
    raise FetchFailed(
        f"could not download {jar.filename} from Maven Central ({type(failure).__name__}); "
        "try again, or give a folder that holds Kafka's jars"
    ) from failure


def verify(file: Path, jar: Jar) -> None:
    """Raises FetchFailed where `file` is not byte for byte what the lock list says."""
    with file.open("rb") as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
    if found != jar.sha256:
        raise FetchFailed(
            f"{jar.filename} is not the file that was locked: its SHA-256 is {found}, {jar.sha256} was expected. "
            "It was thrown away"
        )
