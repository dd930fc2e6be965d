"""What a running embedded system says of itself: `state.json` in its data directory, there while it runs.

Commands read it for what their settings leave open: where Kafka, Postgres and the query service are, and a key.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from cli.embedded.processes import ProcessIdentity, read_identity, write_private

STATE_FILE: Final = "state.json"
SUPERVISOR_FILE: Final = "up.pid"
"""Who starts, runs or stops the system: there before the state is, and after it."""


@dataclass(frozen=True, slots=True)
class State:
    """A system that is ready. Readable by its user only: the DSN may hold a password.

    data_dir: where it keeps everything.  supervisor: the process of `mnemo up`.  processes: the pids of what it started
    at first, by name.  ops_urls: of `worker` and `query`, for `/healthz`, `/readyz`, `/metrics`.  notes: what is not as
    one would expect, for people.
    """

    data_dir: Path
    supervisor: ProcessIdentity
    kafka_bootstrap_servers: str
    postgres_dsn: str = field(repr=False)
    url: str
    grpc_address: str
    app: str
    key_file: Path
    logs: Path
    processes: Mapping[str, int] = field(default_factory=dict)
    ops_urls: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def api_key(self) -> str:
        """Of `app`."""
        return self.key_file.read_text().strip()

    def to_json(self) -> str:
        """For `parse_state`."""
        return json.dumps(asdict(self), default=str, indent=2) + "\n"


def parse_state(text: str) -> State:
    """The inverse of `State.to_json`. Raises ValueError for anything else."""
    try:
        values: dict[str, Any] = json.loads(text)
        values |= {name: Path(values[name]) for name in ("data_dir", "key_file", "logs")}
        values["supervisor"] = ProcessIdentity(**values["supervisor"])
        values["notes"] = tuple(values["notes"])
        return State(**values)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("not the state of an embedded system") from error


def default_data_dir() -> Path:
    """`MNEMO_DATA_DIR`; else for root `/var/lib/mnemostream`, for others `mnemostream` in the user's data directory."""
    if given := os.environ.get("MNEMO_DATA_DIR"):
        return Path(given)
    if os.geteuid() == 0:
        return Path("/var/lib/mnemostream")
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "mnemostream"


def write_state(state: State) -> None:
    """Make it known."""
    write_private(state.data_dir / STATE_FILE, state.to_json())


def forget_state(data_dir: Path) -> None:
    """The system stops."""
    (data_dir / STATE_FILE).unlink(missing_ok=True)


def read_state(data_dir: Path | None = None) -> State | None:
    """The system that runs from `data_dir` (None: the default one). None where none runs, or it is another user's."""
    try:
        state = parse_state(((data_dir or default_data_dir()) / STATE_FILE).read_text())
    except (OSError, ValueError):
        return None
    return state if state.supervisor.is_alive() else None


def read_supervisor(data_dir: Path) -> ProcessIdentity | None:
    """The process of `mnemo up` on `data_dir`, also while it starts or stops. None where none runs."""
    supervisor = read_identity(data_dir / SUPERVISOR_FILE)
    return supervisor if supervisor is not None and supervisor.is_alive() else None
