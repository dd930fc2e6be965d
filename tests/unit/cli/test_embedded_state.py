"""What is known of a running system, of its processes, and of its environment."""

import json
import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cli.commands.up import public_state, summary
from cli.embedded.environment import clean_environment, settings_to_pass_on
from cli.embedded.processes import (
    DirectoryLock,
    ProcessIdentity,
    choose_ports,
    identify,
    myself,
    read_identity,
    write_private,
)
from cli.embedded.state import State, default_data_dir, forget_state, parse_state, read_state, write_state
from cli.embedded.supervisor import Supervisor, pause_seconds
from cli.embedded.system import UpOptions, parse_options
from runtime.settings import load_settings


@pytest.fixture
def state(tmp_path: Path) -> State:
    key_file = tmp_path / "key"
    key_file.write_text("mnk_secret\n")
    return State(
        data_dir=tmp_path,
        supervisor=myself(),
        kafka_bootstrap_servers="127.0.0.1:9092",
        postgres_dsn="postgresql://u:secret@h/db",
        url="http://127.0.0.1:7600",
        grpc_address="127.0.0.1:7601",
        app="acme",
        key_file=key_file,
        logs=tmp_path / "logs",
        processes={"kafka": 1},
        ops_urls={"worker": "http://127.0.0.1:1"},
        notes=("port 9092 is taken: Kafka is on 9999",),
    )


def test_a_state_is_read_as_it_was_written_while_its_system_lives(state: State) -> None:
    assert parse_state(state.to_json()) == state
    write_state(state)
    assert read_state(state.data_dir) == state
    assert (state.data_dir / "state.json").stat().st_mode & 0o777 == 0o600
    forget_state(state.data_dir)
    assert read_state(state.data_dir) is None


def test_a_system_whose_process_is_gone_does_not_run_even_if_its_pid_was_given_away(state: State) -> None:
    write_state(replace(state, supervisor=ProcessIdentity(os.getpid(), "another-boot/1")))

    assert read_state(state.data_dir) is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"data_dir": 1}', "nonsense"])
def test_a_state_that_is_not_one_counts_as_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text(text)

    assert read_state(tmp_path) is None


def test_what_is_shown_of_a_system_holds_no_secret(state: State) -> None:
    shown = json.dumps(public_state(state)) + "\n".join(summary(state, load_settings({}), detached=True)) + repr(state)

    assert "secret" not in shown
    assert str(state.key_file) in shown
    assert "port 9092 is taken" in shown
    assert "not for production" in shown


def test_the_data_directory_is_what_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMO_DATA_DIR", "/somewhere")
    assert default_data_dir() == Path("/somewhere")
    monkeypatch.delenv("MNEMO_DATA_DIR")
    monkeypatch.setenv("XDG_DATA_HOME", "/xdg")
    expected = "/var/lib/mnemostream" if os.geteuid() == 0 else "/xdg/mnemostream"
    assert default_data_dir() == Path(expected)


def test_options_travel_whole() -> None:
    options = UpOptions(Path("/d"), kafka="k:1", postgres="postgresql://u:secret@h/db", kafka_jars=Path("/jars"))

    assert parse_options(options.to_json()) == options
    assert "secret" not in repr(options)


def test_keys_and_settings_that_merely_lie_there_are_not_passed_on() -> None:
    lying = {
        "OPENAI_API_KEY": "1",
        "OPENAI_BASE_URL": "1",
        "ANTHROPIC_API_KEY": "1",
        "SOME_API_KEY": "1",
        "MNEMO_POSTGRES_DSN": "1",
        "PGPASSWORD": "1",
    }
    meant = {"PATH": "/bin", "HTTPS_PROXY": "p", "HOME": "/h"}

    assert clean_environment(lying | meant, with_postgres=False) == meant
    assert clean_environment(lying | meant, with_postgres=True) == meant | {"PGPASSWORD": "1"}


def test_settings_that_somebody_gave_are_passed_on_but_not_what_is_decided_here() -> None:
    environ = {
        "MNEMO_MAX_FACTS_PER_TURN": "3",
        "MNEMO_POSTGRES_DSN": "postgresql://production",
        "MNEMO_KAFKA_BOOTSTRAP_SERVERS": "production:9092",
        "MNEMO_OPENAI_API_KEY": "sk-lying-there",
        "MNEMO_QUERY_PORT": "1",
    }

    assert settings_to_pass_on(load_settings(environ), with_kafka=False) == {"MNEMO_MAX_FACTS_PER_TURN": "3"}


def test_a_model_that_was_asked_for_gets_its_key_and_a_kafka_its_login() -> None:
    settings = load_settings(
        {"OPENAI_API_KEY": "sk-meant", "MNEMO_KAFKA_SSL_CAFILE": "ca.pem"}, model_provider="openai"
    )

    assert settings_to_pass_on(settings, with_kafka=True) == {
        "MNEMO_KAFKA_SSL_CAFILE": str(Path("ca.pem").absolute()),
        "MNEMO_MODEL_PROVIDER": "openai",
        "MNEMO_OPENAI_API_KEY": "sk-meant",
    }


def test_a_preferred_port_is_taken_where_it_is_free_and_all_are_different() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        taken = holder.getsockname()[1]
        [free] = choose_ports(0)

        chosen = choose_ports(free, taken, free, 0, 0)

    assert chosen[0] == free
    assert taken not in chosen
    assert len(set(chosen)) == 5
    assert all(15_000 <= port < 32_768 for port in chosen[1:])


def test_a_process_is_known_until_it_ends() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        identity = identify(process.pid)
        assert identity is not None
        assert identity.is_alive()
        assert identity != myself()
    assert not identity.is_alive()


def test_an_identity_that_was_cut_off_is_none(tmp_path: Path) -> None:
    file = tmp_path / "a.pid"
    myself().write(file)
    assert read_identity(file) == myself()
    file.write_text('{"pid": 1, "sta')
    assert read_identity(file) is None
    assert read_identity(tmp_path / "none") is None


def test_a_lock_is_held_once(tmp_path: Path) -> None:
    first, second = DirectoryLock(tmp_path / "lock"), DirectoryLock(tmp_path / "lock")
    assert first.acquire()
    assert not second.acquire()
    first.release()
    assert second.acquire()
    second.release()


def test_what_is_private_is_readable_by_nobody_else_even_over_an_older_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("old")
    file.chmod(0o644)

    write_private(file, "new")

    assert file.read_text() == "new"
    assert file.stat().st_mode & 0o777 == 0o600


def test_pauses_double_up_to_half_a_minute() -> None:
    assert [pause_seconds(failures) for failures in (1, 2, 3, 4, 5, 6, 100)] == [1, 2, 4, 8, 16, 30, 30]


class Flaky:
    """Ends whenever it is told to."""

    is_running = True
    starts = 0

    def start(self) -> None:
        self.is_running = True
        self.starts += 1


def test_who_ends_is_started_after_its_pause_and_who_ran_long_starts_afresh() -> None:
    said: list[str] = []
    service = Flaky()
    supervisor = Supervisor(said.append, lambda: said.append(f"start {service.starts}"))
    watched = supervisor.watch("worker", service, now=0)

    for now in (10, 10.5, 11):  # 1 s after the first end
        service.is_running = service.starts > 0
        supervisor.look_after(watched, now)
    assert service.starts == 1
    service.is_running = False
    for now in (20, 21, 22):  # 2 s after the second in a row
        supervisor.look_after(watched, now)
    assert service.starts == 2
    service.is_running = False
    for now in (100, 101):  # it ran for more than a minute: 1 s again
        supervisor.look_after(watched, now)
    assert service.starts == 3
    assert said[0] == "worker ended unexpectedly; starting it again in 1 s"
    assert said[1:3] == ["start 1", "worker runs again"]
    assert said[3] == "worker ended unexpectedly; starting it again in 2 s"
