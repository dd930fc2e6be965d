"""`make bench`: prints the table of docs/performance.md. Figures hold against each other within one run."""

import asyncio
import contextlib
import platform
import sys
import time
from collections.abc import Iterator

import psutil

from processors.vectors import EmbeddingModel
from tests.bench import redaction, routing, searching
from tests.bench.pipeline import Throughput, by_stage, prepare, searchable_after, through_path
from tests.bench.processes import Machine, cpu_seconds, machine

OWNERS = 40
MEMORIES = 10_000
_SEARCH_SECONDS = 8.0


class Table:
    """Markdown, a row at a time."""

    def __init__(self) -> None:
        self._print("| what | figure | beside |", "|---|---|---|")

    def row(self, what: str, figure: str, beside: str = "") -> None:
        """One line of it, at once."""
        self._print(f"| {what} | {figure} | {beside} |")

    @staticmethod
    def _print(*lines: str) -> None:
        for line in lines:
            print(line, flush=True)


@contextlib.contextmanager
def telling(what: str) -> Iterator[None]:
    """Progress on stderr."""
    start = time.perf_counter()
    print(f"{what} …", file=sys.stderr, flush=True)
    yield
    print(f"{what}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)


def _cost(through: Throughput) -> str:
    total = through.worker + through.postgres
    return f"{total:.2f} ms: worker {through.worker:.2f}, Postgres {through.postgres:.2f}"


def _pipeline(made: Machine, table: Table) -> None:
    with telling("whole path, instant model"):
        instant = asyncio.run(through_path(made, "instant", count=4000, owners=OWNERS, latency_seconds=0))
    table.row("turns/s, instant model and embeddings", f"{instant.per_second:.0f}", f"{OWNERS} owners, one worker")
    table.row(
        "CPU per turn", _cost(instant), f"beside it Kafka {instant.kafka:.2f}, scripted model {instant.model:.2f}"
    )
    table.row("model calls per turn", f"{instant.calls:.2f}", f"{instant.prompt_tokens:.0f} prompt tokens")
    with telling("whole path, model of 500 ms"):
        slow = asyncio.run(through_path(made, "slow", count=1500, owners=OWNERS, latency_seconds=0.5))
    limit = 32 / 0.5
    table.row(
        "turns/s, model of 500 ms, 32 in flight",
        f"{slow.per_second:.1f}",
        f"{100 * slow.per_second / limit:.0f} % of the {limit:.0f} that 32 calls of 500 ms allow",
    )
    with telling("stages apart"):
        stages = asyncio.run(by_stage(made, "stages", count=2000, owners=OWNERS))
    for stage, (worker, postgres) in stages.items():
        table.row(
            f"CPU per turn, {stage} alone",
            f"{worker + postgres:.2f} ms",
            f"worker {worker:.2f}, Postgres {postgres:.2f}",
        )
    with telling("a lone turn"):
        middle, worst = asyncio.run(searchable_after(made, "lone", rounds=40))
    table.row("lone turn, published to found by Search", f"p50 {middle:.0f} ms", f"worst of 40: {worst:.0f} ms")


def _pure(table: Table) -> None:
    with telling("deciding and redacting, without store and model"):
        for name, milliseconds in routing.measure().items():
            table.row("deciding about a candidate" if "pair" not in name else name, f"{milliseconds:.2f} ms", name)
        for name, milliseconds in redaction.measure().items():
            table.row("redacting 2 kB", f"{milliseconds:.2f} ms", name)


def _searches(made: Machine, table: Table) -> None:
    name = "searches"
    dsn, _, environment = asyncio.run(prepare(made, name))
    model = EmbeddingModel(f"text-embedding-3-small@{searching.DIMENSIONS}", searching.DIMENSIONS)
    with telling(f"{MEMORIES} memories"):
        asyncio.run(searching.fill(dsn, model, memories=MEMORIES, owners=OWNERS))
        made.postgres.psql("VACUUM ANALYZE", database=name)
        key = asyncio.run(searching.make_key(dsn))
    bodies = searching.queries(MEMORIES, OWNERS)
    with searching.query_service(made, name, environment) as port:
        pid = searching.query_service_pid[port]
        with telling("warming"):
            searching.by_rpc(port, key, bodies, clients=16, seconds=4)
            searching.by_sql(dsn, model, bodies, clients=16, seconds=2)
        for clients in (1, 16):
            with telling(f"searches, {clients} at once"):
                service, postgres = cpu_seconds(pid), made.cpu()["postgres"]
                rpc = searching.by_rpc(port, key, bodies, clients=clients, seconds=_SEARCH_SECONDS)
                service, postgres = cpu_seconds(pid) - service, made.cpu()["postgres"] - postgres
                sql = searching.by_sql(dsn, model, bodies, clients=clients, seconds=_SEARCH_SECONDS)
            table.row(
                f"searches/s, {clients} client{'s' if clients > 1 else ''}",
                f"{rpc.per_second:.0f}, p50 {rpc.p50:.1f} ms, p99 {rpc.p99:.1f} ms",
                f"{100 * rpc.per_second / sql.per_second:.0f} % of the same SQL bare "
                f"({sql.per_second:.0f}, p50 {sql.p50:.1f} ms, p99 {sql.p99:.1f} ms)",
            )
            table.row(
                f"CPU per search, {clients} client{'s' if clients > 1 else ''}",
                f"{1000 * (service + postgres) / rpc.requests:.2f} ms",
                f"service {1000 * service / rpc.requests:.2f}, Postgres {1000 * postgres / rpc.requests:.2f}, "
                f"beside it the client {rpc.client_cpu_ms:.2f}",
            )


def main() -> None:
    """Everything, in some three minutes."""
    memory = psutil.virtual_memory().total / (1 << 30)
    print(f"{psutil.cpu_count()} cores, {memory:.0f} GiB, Python {platform.python_version()}, {platform.system()}\n")
    table = Table()
    _pure(table)
    with machine() as made:
        _pipeline(made, table)
        _searches(made, table)


if __name__ == "__main__":
    main()
