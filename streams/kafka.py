"""How this process reaches Kafka: what every client of it is told, from the settings."""

import ssl
from typing import Any

from aiokafka.helpers import create_ssl_context

from runtime.settings import Settings


def bootstrap_servers(settings: Settings) -> list[str]:
    """The brokers to begin with."""
    return [server.strip() for server in settings.kafka_bootstrap_servers.split(",") if server.strip()]


def tls_context(settings: Settings) -> ssl.SSLContext | None:
    """What TLS is done with; None where the protocol has none."""
    if "SSL" not in settings.kafka_security_protocol:
        return None
    cafile, certfile, keyfile = (
        None if path is None else str(path)
        for path in (settings.kafka_ssl_cafile, settings.kafka_ssl_certfile, settings.kafka_ssl_keyfile)
    )
    context: ssl.SSLContext = create_ssl_context(cafile=cafile, certfile=certfile, keyfile=keyfile)
    return context


def client_options(settings: Settings) -> dict[str, Any]:
    """Keyword arguments of an aiokafka client."""
    options: dict[str, Any] = {
        "bootstrap_servers": bootstrap_servers(settings),
        "security_protocol": settings.kafka_security_protocol,
        "ssl_context": tls_context(settings),
    }
    if settings.kafka_security_protocol.startswith("SASL"):
        password = settings.kafka_sasl_password
        options |= {
            "sasl_mechanism": settings.kafka_sasl_mechanism,
            "sasl_plain_username": settings.kafka_sasl_username,
            "sasl_plain_password": None if password is None else password.get_secret_value(),
        }
    return options
