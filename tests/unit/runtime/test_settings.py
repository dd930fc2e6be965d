"""The settings: where they come from, and what is said about wrong ones."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from runtime.reference import setting_docs, settings_markdown
from runtime.settings import InvalidSettings, Settings, load_settings

NAMES_OF_THE_CONTRACT = """
KAFKA_BOOTSTRAP_SERVERS KAFKA_SECURITY_PROTOCOL KAFKA_SASL_MECHANISM KAFKA_SASL_USERNAME KAFKA_SASL_PASSWORD
KAFKA_SSL_CAFILE KAFKA_SSL_CERTFILE KAFKA_SSL_KEYFILE POSTGRES_DSN POSTGRES_POOL_SIZE TOPIC_PREFIX CONSUMER_GROUP
TOPIC_PARTITIONS TOPIC_REPLICATION MODEL_PROVIDER EMBEDDING_PROVIDER OPENAI_API_KEY OPENAI_BASE_URL EXTRACTION_MODEL
ARBITRATION_MODEL EMBEDDING_MODEL EMBEDDING_DIMENSIONS AUTO_MERGE_THRESHOLD ARBITRATION_THRESHOLD MAX_FACTS_PER_TURN
MAX_MEMORY_BYTES MAX_LIVE_MEMORIES EXTRACTION_TIMEOUT_SECONDS ARBITRATION_TIMEOUT_SECONDS EMBEDDING_TIMEOUT_SECONDS
MAX_IN_FLIGHT DRAIN_SECONDS DECAY_INTERVAL_SECONDS RETENTION_DAYS QUERY_HOST QUERY_PORT GRPC_HOST GRPC_PORT OPS_HOST
OPS_PORT URL API_KEY OWNER LOG_LEVEL
"""


@pytest.mark.parametrize("name", NAMES_OF_THE_CONTRACT.split())
def test_every_name_of_the_contract_is_a_setting(name: str) -> None:
    assert name.lower() in Settings.model_fields


def test_without_an_environment_the_defaults_hold() -> None:
    settings = load_settings({})
    assert settings.kafka_bootstrap_servers == "localhost:9092"
    assert (settings.query_port, settings.grpc_port, settings.ops_port) == (7600, 7601, 7602)
    assert settings.postgres_dsn is None


def test_the_environment_is_read_by_load_settings_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMO_QUERY_PORT", "9")
    assert Settings().query_port == 7600
    assert load_settings().query_port == 9


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mnemo.toml"
    file.write_text('topic_partitions = 2\nmax_in_flight = 2\ndrain_seconds = 2\nowner = "from-file"\n')
    environ = {"MNEMO_MAX_IN_FLIGHT": "3", "MNEMO_DRAIN_SECONDS": "3", "MNEMO_OWNER": "from-env"}
    settings = load_settings(environ, file, drain_seconds=4, owner=None)
    assert (settings.topic_partitions, settings.max_in_flight, settings.drain_seconds) == (2, 3, 4)
    assert settings.owner == "from-env"


def test_the_file_may_use_the_names_of_the_environment_too(tmp_path: Path) -> None:
    file = tmp_path / "mnemo.toml"
    file.write_text('MNEMO_TOPIC_PREFIX = "a."\nmnemo_consumer_group = "b"\n')
    settings = load_settings({}, file)
    assert (settings.topic_prefix, settings.consumer_group) == ("a.", "b")


def test_an_empty_string_counts_as_unset(tmp_path: Path) -> None:
    file = tmp_path / "mnemo.toml"
    file.write_text('url = ""\n')
    settings = load_settings({"MNEMO_QUERY_PORT": "", "MNEMO_API_KEY": ""}, file)
    assert settings.query_port == 7600
    assert settings.api_key is None
    assert settings.url is None


def test_an_unknown_name_is_an_error_that_names_it_and_the_closest_one() -> None:
    with pytest.raises(InvalidSettings, match=r"MNEMO_QUERY_PROT: no such setting; did you mean MNEMO_QUERY_PORT\?"):
        load_settings({"MNEMO_QUERY_PROT": "7600"})


def test_an_unknown_name_that_is_like_no_other_is_an_error_without_a_guess() -> None:
    with pytest.raises(InvalidSettings) as caught:
        load_settings({"MNEMO_XYZZY": "secret-value"})
    assert str(caught.value) == "MNEMO_XYZZY: no such setting"


def test_an_unknown_name_in_the_file_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "mnemo.toml"
    file.write_text("topic_partition = 8\n[table]\nx = 1\n")
    with pytest.raises(InvalidSettings) as caught:
        load_settings({}, file)
    assert "topic_partition: no such setting; did you mean MNEMO_TOPIC_PARTITIONS?" in str(caught.value)
    assert "table: no such setting" in str(caught.value)


def test_a_file_that_is_missing_or_broken_is_an_error_without_its_text(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="cannot be read"):
        load_settings({}, tmp_path / "none.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("api_key = mnk_secret\n")
    with pytest.raises(InvalidSettings, match="is not valid TOML") as caught:
        load_settings({}, broken)
    assert "mnk_secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MNEMO_TEST_KAFKA", "anything"),
        ("MNEMO_QUERY_SERVICE_HOST", "10.0.0.1"),
        ("MNEMO_QUERY_SERVICE_PORT", "7600"),
        ("MNEMO_QUERY_SERVICE_PORT_HTTP", "7600"),
        ("MNEMO_QUERY_PORT_7600_TCP", "tcp://10.0.0.1:7600"),
        ("MNEMO_QUERY_PORT_7600_TCP_ADDR", "10.0.0.1"),
        ("MNEMO_QUERY_PORT_7600_TCP_PORT", "7600"),
        ("MNEMO_QUERY_PORT_7600_TCP_PROTO", "tcp"),
        ("MNEMO_POSTGRES_PORT", "tcp://10.0.0.1:5432"),
        ("MNEMO_PORT", "tcp://10.0.0.1:80"),
        ("MNEMO_SERVICE_HOST", "10.0.0.1"),
        ("MNEMO_PORT_80_TCP", "tcp://10.0.0.1:80"),
        ("PATH", "/bin"),
    ],
)
def test_what_tests_and_kubernetes_put_there_is_passed_over(name: str, value: str) -> None:
    assert load_settings({name: value}) == load_settings({})


def test_a_port_is_a_setting_though_kubernetes_uses_the_same_shape() -> None:
    assert load_settings({"MNEMO_QUERY_PORT": "7700"}).query_port == 7700


def test_a_port_that_kubernetes_overwrote_is_explained_without_its_value() -> None:
    with pytest.raises(InvalidSettings, match=r"MNEMO_QUERY_PORT: .*mnemo-query.*enableServiceLinks: false") as caught:
        load_settings({"MNEMO_QUERY_PORT": "tcp://10.0.0.1:7600"})
    assert "10.0.0.1" not in str(caught.value)


def test_a_misspelt_port_is_no_shape_of_kubernetes() -> None:
    with pytest.raises(InvalidSettings, match="MNEMO_QERY_PORT: no such setting"):
        load_settings({"MNEMO_QERY_PORT": "7600"})


@pytest.mark.parametrize(
    ("environ", "rule"),
    [
        ({"MNEMO_QUERY_PORT": "hunter2"}, "MNEMO_QUERY_PORT: .*integer"),
        ({"MNEMO_QUERY_PORT": "65536"}, "MNEMO_QUERY_PORT: .*65535"),
        ({"MNEMO_POSTGRES_DSN": "hunter2"}, "MNEMO_POSTGRES_DSN: must begin with postgresql://"),
        ({"MNEMO_MODEL_PROVIDER": "hunter2"}, "MNEMO_MODEL_PROVIDER: .*'local', 'openai' or 'anthropic'"),
        ({"MNEMO_ARBITRATION_THRESHOLD": "0.99"}, "MNEMO_ARBITRATION_THRESHOLD: must not be above"),
        ({"MNEMO_KAFKA_SECURITY_PROTOCOL": "SASL_SSL"}, "MNEMO_KAFKA_SASL_MECHANISM: needed"),
        ({"MNEMO_URL": "hunter2"}, "MNEMO_URL: "),
        ({"MNEMO_KAFKA_BOOTSTRAP_SERVERS": "hunter2"}, "MNEMO_KAFKA_BOOTSTRAP_SERVERS: "),
        ({"MNEMO_LOG_LEVEL": "hunter2"}, "MNEMO_LOG_LEVEL: .*'DEBUG'"),
    ],
)
def test_a_broken_rule_names_the_setting_and_never_the_value(environ: dict[str, str], rule: str) -> None:
    with pytest.raises(InvalidSettings, match=rule) as caught:
        load_settings(environ)
    assert "hunter2" not in str(caught.value)


def test_everything_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(InvalidSettings) as caught:
        load_settings({"MNEMO_QUERY_PORT": "x", "MNEMO_MAX_IN_FLIGHT": "0"})
    assert len(str(caught.value).splitlines()) == 2


def test_a_key_of_openai_is_taken_only_when_a_provider_is_openai() -> None:
    lies_around = {"OPENAI_API_KEY": "sk-x", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    assert load_settings(lies_around).openai_api_key is None
    for provider in ("MNEMO_MODEL_PROVIDER", "MNEMO_EMBEDDING_PROVIDER"):
        settings = load_settings({**lies_around, provider: "openai"})
        assert settings.openai_api_key is not None
        assert settings.openai_api_key.get_secret_value() == "sk-x"
        assert settings.openai_base_url == "http://127.0.0.1:1/v1"


def test_a_key_of_anthropic_is_taken_only_when_the_provider_is_anthropic() -> None:
    lies_around = {
        "ANTHROPIC_API_KEY": "sk-ant-x",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:1",
        "OPENAI_API_KEY": "sk-x",
    }
    assert load_settings(lies_around | {"MNEMO_MODEL_PROVIDER": "openai"}).anthropic_api_key is None
    settings = load_settings(lies_around | {"MNEMO_MODEL_PROVIDER": "anthropic"})
    assert settings.anthropic_api_key is not None
    assert settings.anthropic_api_key.get_secret_value() == "sk-ant-x"
    assert settings.anthropic_base_url == "http://127.0.0.1:1"
    assert settings.openai_api_key is None


@pytest.mark.parametrize(
    ("environ", "model"),
    [
        ({"MNEMO_MODEL_PROVIDER": "openai"}, "gpt-5-mini"),
        ({"MNEMO_MODEL_PROVIDER": "anthropic"}, "claude-haiku-5-5"),
        ({"MNEMO_MODEL_PROVIDER": "anthropic", "MNEMO_EXTRACTION_MODEL": "other"}, "other"),
    ],
)
def test_each_provider_has_a_model_of_its_own_by_default(environ: dict[str, str], model: str) -> None:
    assert load_settings(environ).extraction_model == model


def test_texts_cannot_be_embedded_by_anthropic() -> None:
    with pytest.raises(InvalidSettings, match="MNEMO_EMBEDDING_PROVIDER: Anthropic has no embeddings"):
        load_settings({"MNEMO_EMBEDDING_PROVIDER": "anthropic"})


def test_our_own_name_of_the_key_wins_over_openais() -> None:
    environ = {"OPENAI_API_KEY": "sk-a", "MNEMO_OPENAI_API_KEY": "sk-b", "MNEMO_MODEL_PROVIDER": "openai"}
    key = load_settings(environ).openai_api_key
    assert key is not None
    assert key.get_secret_value() == "sk-b"


@pytest.mark.parametrize(
    ("environ", "provider"),
    [
        ({}, "local"),
        ({"MNEMO_MODEL_PROVIDER": "openai"}, "openai"),
        ({"MNEMO_MODEL_PROVIDER": "openai", "MNEMO_EMBEDDING_PROVIDER": "local"}, "local"),
        ({"MNEMO_EMBEDDING_PROVIDER": "openai"}, "openai"),
        ({"MNEMO_MODEL_PROVIDER": "anthropic"}, "local"),
        ({"MNEMO_MODEL_PROVIDER": "anthropic", "MNEMO_EMBEDDING_PROVIDER": "openai"}, "openai"),
    ],
)
def test_texts_are_embedded_by_the_models_provider_unless_another_is_named(
    environ: dict[str, str], provider: str
) -> None:
    assert load_settings(environ).embedding_provider == provider


def test_secrets_do_not_show() -> None:
    settings = load_settings({"MNEMO_API_KEY": "mnk_x", "MNEMO_POSTGRES_DSN": "postgresql://u:hunter2@h/d"})
    assert "mnk_x" not in repr(settings)
    assert "hunter2" not in repr(settings)


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError):
        Settings().query_port = 1  # type: ignore[misc]  # that it is refused is what is tested


def test_every_setting_is_explained() -> None:
    assert [entry.name for entry in setting_docs() if not entry.doc] == []


def test_the_page_about_settings_is_current() -> None:
    page = Path(__file__).parents[3] / "docs" / "settings.md"
    assert page.read_text("utf-8") == settings_markdown(), "run: mnemo dev settings-docs > docs/settings.md"


@pytest.mark.parametrize(
    ("dsn", "fits"),
    [
        ("postgresql://u:p@h:5432/db", True),
        ("postgresql://mnemo@/mnemo?host=%2Ftmp%2Fsocket", True),
        ("postgresql:///db", True),
        ("postgresql://u:p@h1:1,h2:2/db", True),
        ("postgresql://u:p@[::1]:5432/db?sslmode=require", True),
        ("postgresql://u:secret@h:port/db", False),
        ("postgresql://u:sec/ret@h/db", False),
        ("postgresql://u:secret@[::1/db", False),
    ],
)
def test_the_address_of_postgres_is_one(dsn: str, fits: bool) -> None:
    environ = {"MNEMO_POSTGRES_DSN": dsn}
    if fits:
        assert load_settings(environ).postgres_dsn is not None
        return
    with pytest.raises(InvalidSettings, match="MNEMO_POSTGRES_DSN: must be") as wrong:
        load_settings(environ)
    assert "sec" not in str(wrong.value)


def test_a_wrong_provider_is_one_complaint_not_two() -> None:
    with pytest.raises(InvalidSettings) as wrong:
        load_settings({"MNEMO_MODEL_PROVIDER": "bogus"})
    assert str(wrong.value).splitlines() == ["MNEMO_MODEL_PROVIDER: Input should be 'local', 'openai' or 'anthropic'"]
