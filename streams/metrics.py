"""Every instrument of the worker, on one registry. Labels come from closed sets, never an owner or an id."""

from collections.abc import Mapping, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from processors.answers import Dropped
from processors.effects import Effect
from processors.facts import Reading
from processors.records import TurnStatus
from streams.delivery import Outcome

EXTRACT: Final = "extract"
ARBITRATE: Final = "arbitrate"
OPERATIONS: Final = (EXTRACT, ARBITRATE)
"""What a language model is asked for."""

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class WorkerMetrics:
    """What a worker counts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        stage, outcome = ("stage",), ("stage", "outcome")
        self.records = Counter(
            "mnemo_records", "Records by how an attempt at them ended, or why none was made", outcome, registry=registry
        )
        self.attempt_seconds = Histogram(
            "mnemo_attempt_seconds", "Duration of an attempt at a window", outcome, registry=registry, buckets=_SECONDS
        )
        self.in_flight = Gauge("mnemo_in_flight", "Windows being handled", stage, registry=registry)
        self.pending = Gauge("mnemo_pending_records", "Records in hand that are not done", stage, registry=registry)
        self.oldest_age = Gauge(
            "mnemo_oldest_unfinished_age_seconds",
            "Time since the broker took the oldest record in hand; 0 when none is",
            stage,
            registry=registry,
        )
        self.partitions = Gauge("mnemo_assigned_partitions", "Partitions that the group gave", stage, registry=registry)
        self.rebalances = Counter("mnemo_rebalances", "Rebalances of the consumer group", stage, registry=registry)
        self.coordination_errors = Counter(
            "mnemo_coordination_errors",
            "Errors of the group's coordinator that the watchdog set going again",
            stage,
            registry=registry,
        )
        self.turns = Counter("mnemo_turns", "Turns by what the log knew of them", ("status",), registry=registry)
        self.redacted_lines = Counter("mnemo_redacted_lines", "Lines that held a secret", ("rule",), registry=registry)
        self.facts = Counter("mnemo_facts", "Facts that were read out of turns", registry=registry)
        self.dropped_facts = Counter(
            "mnemo_dropped_facts", "Facts of an answer that broke a rule", ("reason",), registry=registry
        )
        self.read_seconds = Histogram(
            "mnemo_read_seconds", "Duration of reading a window by the model", registry=registry, buckets=_SECONDS
        )
        self.unread_characters = Counter(
            "mnemo_unread_characters", "Characters of windows that were too long to be read whole", registry=registry
        )
        self.model_requests = Counter(
            "mnemo_model_requests",
            "Answers that a language model gave, usable or not",
            ("operation",),
            registry=registry,
        )
        self.tokens = Counter(
            "mnemo_model_tokens", "Tokens that went to and came from it", ("operation", "direction"), registry=registry
        )

        self.circuit_open = Gauge(
            "mnemo_model_circuit_open",
            "1 while a model counts as away and calls wait without being tried",
            ("use",),
            registry=registry,
        )
        self.decisions = Counter(
            "mnemo_decisions",
            "Decisions about candidates; marked: the safe default, because the arbitrator could not be heard",
            ("route", "action", "marked"),
            registry=registry,
        )
        self.arbitrate_seconds = Histogram(
            "mnemo_arbitrate_seconds", "Duration of arbitrating a window", registry=registry, buckets=_SECONDS
        )
        self.arbitrated = Counter(
            "mnemo_arbitrated_candidates", "Candidates that an arbitrator was asked about", registry=registry
        )
        self.refused_judgements = Counter(
            "mnemo_refused_judgements", "Judgements that named what was not offered, or broke a rule", registry=registry
        )

    def circuit(self, use: str, is_open: bool) -> None:
        """The model for `use` (extraction, arbitration, embedding) counts as away, or no longer."""
        self.circuit_open.labels(use).set(is_open)

    def redacted(self, counts: Mapping[str, int]) -> None:
        """Lines were redacted, by rule."""
        for rule, count in counts.items():
            self.redacted_lines.labels(rule).inc(count)

    def asked(self, reading: Reading, requests: int, operation: str = EXTRACT) -> None:
        """A model was asked, in so many requests, for one of `OPERATIONS`: whether or not something came of it."""
        if operation == EXTRACT:
            self.read_seconds.observe(reading.latency_seconds)
        self.model_requests.labels(operation).inc(requests)
        self.tokens.labels(operation, "in").inc(reading.tokens_in)
        self.tokens.labels(operation, "out").inc(reading.tokens_out)

    def read(self, facts: int, unread_characters: int) -> None:
        """A window was read."""
        self.facts.inc(facts)
        self.unread_characters.inc(unread_characters)

    def turn(self, status: TurnStatus) -> None:
        """A turn had this status."""
        self.turns.labels(status.value).inc()

    def dropped(self, reason: Dropped, count: int) -> None:
        """Facts of an answer were dropped."""
        self.dropped_facts.labels(reason.value).inc(count)


class RelayMetrics:
    """What a worker counts of its relay."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._published = Counter("mnemo_published_changes", "Changes put on `changes.v1`", registry=registry)
        self._shards = Gauge("mnemo_relay_shards", "Shards of the outbox that this worker holds", registry=registry)
        self._waiting = Gauge(
            "mnemo_outbox_pending_changes",
            "Changes of the shards held that are not published yet",
            registry=registry,
        )
        self._oldest_age = Gauge(
            "mnemo_outbox_oldest_age_seconds",
            "Time since the oldest of them was made; 0 when there is none",
            registry=registry,
        )

    def published(self, changes: int) -> None:
        """Changes are out."""
        self._published.inc(changes)

    def waiting(self, shards: int, pointers: int, oldest_seconds: float) -> None:
        """What waits in the shards that are held."""
        self._shards.set(shards)
        self._waiting.set(pointers)
        self._oldest_age.set(oldest_seconds)


class DecisionMetrics:
    """What a worker counts of decisions."""

    def __init__(self, metrics: WorkerMetrics) -> None:
        self._metrics = metrics

    def asked(self, reading: Reading, questions: int, refused: int) -> None:
        """An arbitrator was asked."""
        metrics = self._metrics
        metrics.asked(reading, 1, ARBITRATE)
        metrics.arbitrate_seconds.observe(reading.latency_seconds)
        metrics.arbitrated.inc(questions)
        metrics.refused_judgements.inc(refused)

    def decided(self, effects: Sequence[Effect]) -> None:
        """Decisions were committed."""
        for effect in effects:
            verdict = effect.verdict
            marked = "true" if verdict.marked else "false"
            self._metrics.decisions.labels(verdict.route.value, verdict.action.value, marked).inc()


class StageMetrics:
    """What one stage of it counts."""

    def __init__(self, metrics: WorkerMetrics, stage: str) -> None:
        self._records = {outcome: metrics.records.labels(stage, outcome.value) for outcome in Outcome}
        self._seconds = {outcome: metrics.attempt_seconds.labels(stage, outcome.value) for outcome in Outcome}
        self._in_flight = metrics.in_flight.labels(stage)
        self._pending = metrics.pending.labels(stage)
        self._oldest_age = metrics.oldest_age.labels(stage)
        self._partitions = metrics.partitions.labels(stage)
        self._rebalances = metrics.rebalances.labels(stage)
        self._coordination_errors = metrics.coordination_errors.labels(stage)

    def attempted(self, outcome: Outcome, records: int, seconds: float) -> None:
        """A window of `records` was tried."""
        self._records[outcome].inc(records)
        self._seconds[outcome].observe(seconds)

    def skipped(self, outcome: Outcome, records: int) -> None:
        """Records left the lanes without an attempt."""
        self._records[outcome].inc(records)

    def assigned(self, partitions: int) -> None:
        """A rebalance gave partitions."""
        self._partitions.set(partitions)

    def revoked(self) -> None:
        """A rebalance began."""
        self._rebalances.inc()
        self._partitions.set(0)

    def coordination_error(self) -> None:
        """The watchdog set coordination going again."""
        self._coordination_errors.inc()

    def look(self, in_flight: int, pending: int, oldest_age_seconds: float) -> None:
        """What is in hand now."""
        self._in_flight.set(in_flight)
        self._pending.set(pending)
        self._oldest_age.set(oldest_age_seconds)
