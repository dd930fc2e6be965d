"""The instruments of the query service."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)


class QueryMetrics:
    """Labels are from closed sets: the methods of the proto, the codes of gRPC, the modes of a search."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests: Final = Counter(
            "mnemo_rpc_requests",
            "Calls by method and code. A rise of UNAVAILABLE: look at the store and the embedding model.",
            ("method", "code"),
            registry=registry,
        )
        self.seconds: Final = Histogram(
            "mnemo_rpc_seconds",
            "Time of a call in seconds, waiting for turns included.",
            ("method",),
            buckets=_BUCKETS,
            registry=registry,
        )
        self.search_seconds: Final = Histogram(
            "mnemo_search_seconds",
            "Time of a search in seconds by mode, without waiting for a turn.",
            ("mode",),
            buckets=_BUCKETS,
            registry=registry,
        )
        self.circuit_open: Final = Gauge(
            "mnemo_model_circuit_open",
            "1 while a model counts as away and calls are not tried.",
            ("use",),
            registry=registry,
        )

    def circuit(self, use: str, is_open: bool) -> None:
        """The model for `use` counts as away, or no longer."""
        self.circuit_open.labels(use).set(is_open)
