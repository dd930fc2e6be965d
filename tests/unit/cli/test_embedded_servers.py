"""What the embedded servers are told, and how their files are checked."""

import base64
from pathlib import Path

import pytest

from cli.embedded.errors import FetchFailed
from cli.embedded.jars import Jar, jars_in, locked_jars, verify
from cli.embedded.kafka import KafkaPorts, new_cluster_id, server_properties
from cli.embedded.postgres import PostgresServer, PostgresSettings, postgresql_conf


def properties(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def test_kafka_listens_on_loopback_only_and_keeps_its_log_where_it_is_told() -> None:
    given = properties(server_properties(KafkaPorts(9092, 9093), Path("/data/kafka")))

    assert given["listeners"] == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"
    assert given["advertised.listeners"] == "PLAINTEXT://127.0.0.1:9092"
    assert given["controller.quorum.voters"] == "1@127.0.0.1:9093"
    assert given["log.dirs"] == "/data/kafka"


def test_kafka_makes_no_topic_unasked_and_takes_the_largest_record_of_the_contract() -> None:
    given = properties(server_properties(KafkaPorts(1, 2), Path("/data")))

    assert given["auto.create.topics.enable"] == "false"
    assert int(given["message.max.bytes"]) > 9 * 1024 * 1024


def test_a_cluster_id_is_16_bytes_and_never_reads_as_an_option() -> None:
    for _ in range(500):
        cluster_id = new_cluster_id()
        assert len(base64.urlsafe_b64decode(cluster_id + "==")) == 16
        assert not cluster_id.startswith("-")


def conf(text: str) -> dict[str, str]:
    return dict(line.split(" = ", 1) for line in text.splitlines())


def test_postgres_is_reached_by_its_socket_only() -> None:
    given = conf(postgresql_conf(PostgresSettings(), Path("/data/it's here")))

    assert given["listen_addresses"] == "''"
    assert given["unix_socket_directories"] == "'/data/it''s here'"
    assert given["unix_socket_permissions"] == "0700"


@pytest.mark.parametrize(("durable", "expected"), [(True, "on"), (False, "off")])
def test_postgres_gives_up_durability_only_when_told(durable: bool, expected: str) -> None:
    given = conf(postgresql_conf(PostgresSettings(durable=durable), Path("/data")))

    assert {given[name] for name in ("fsync", "synchronous_commit", "full_page_writes")} == {expected}


@pytest.mark.parametrize("name", ["", "Upper", "a-b", 'a"; DROP', "1st", "a" * 64])
def test_a_database_whose_name_would_need_quoting_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a database's name is"):
        PostgresServer(tmp_path).create_database(name)


def test_a_dsn_quotes_what_a_path_may_hold(tmp_path: Path) -> None:
    assert PostgresServer(Path("/a b&c")).dsn("notes") == "postgresql://mnemo@/notes?host=/a%20b%26c/socket"


def test_the_lock_list_names_46_jars_each_with_its_hash() -> None:
    jars = locked_jars()

    assert len(jars) == len({jar.filename for jar in jars}) == 46
    assert all(len(bytes.fromhex(jar.sha256)) == 32 and jar.size_bytes > 0 for jar in jars)
    assert "kafka_2.13-4.1.1.jar" in {jar.filename for jar in jars}


def test_a_jar_that_is_not_the_locked_one_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "a.jar"
    file.write_bytes(b"changed")

    with pytest.raises(FetchFailed, match=r"a-1\.jar is not the file that was locked"):
        verify(file, Jar("g", "a", "1", "0" * 64, 7))


def test_a_folder_without_kafka_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.jar").touch()

    with pytest.raises(FetchFailed, match=r"holds no kafka_2\.13"):
        jars_in(tmp_path)
