"""`mnemo up --detach`: the same in the background, with its options on standard input: no list of processes shows them.

python -m cli.embedded.background < options.json
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import cli
from cli.embedded.environment import import_path
from cli.embedded.errors import EmbeddedError, ServerFailed
from cli.embedded.processes import wait_until
from cli.embedded.state import State, read_state
from cli.embedded.system import UpOptions, parse_options, run_system

_READY_TIMEOUT_SECONDS: Final = 900.0
"""Long enough for Postgres to recover from a crash."""


def start_in_background(options: UpOptions) -> State:
    """Start a system that goes on when this process ends, and wait until it is ready.

    Raises ServerFailed with what it said where it ends first.
    """
    logs = options.data_dir.absolute() / "logs"
    for directory in (options.data_dir, logs):
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    log = logs / "up.log"
    environment = {**os.environ, "PYTHONPATH": import_path(os.environ, Path(cli.__file__).parent)}
    with log.open("ab") as output:
        already_there = output.tell()
        process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            env=environment,
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    assert process.stdin is not None
    with process.stdin as pipe:
        pipe.write(options.to_json().encode())
    found: list[State] = []

    def is_settled() -> bool:
        state = read_state(options.data_dir)
        if state is not None and state.supervisor.pid == process.pid:
            found.append(state)
        return bool(found) or process.poll() is not None

    if not wait_until(is_settled, _READY_TIMEOUT_SECONDS):
        process.terminate()
        raise ServerFailed(f"it was not ready after {_READY_TIMEOUT_SECONDS:g} s; {log} tells more")
    if not found:
        raise ServerFailed(log.read_bytes()[already_there:].decode(errors="replace").strip() or "it ended at its start")
    process.returncode = 0  # it is not waited for: it lives on
    return found[0]


def main() -> int:
    """The process in the background. Gives the exit code."""

    def say(message: str) -> None:
        print(message, file=sys.stderr, flush=True)

    try:
        run_system(parse_options(sys.stdin.read()), say, lambda _state: say("Ready"))
    except EmbeddedError as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
