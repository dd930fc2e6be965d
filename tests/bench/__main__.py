"""`make bench`: prints the table of docs/performance.md. Figures hold against each other within one run.

`python -m tests.bench --only NAME …` measures and prints some rows alone; `--help` names them.
"""

import argparse
import asyncio
import platform
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from typing import Final

import psutil

from processors.vectors import EmbeddingModel
from tests.bench import backlogs, consuming, isolation, redaction, routing, searching
from tests.bench.pipeline import Throughput, by_stage, prepare, searchable_after, through_path
from tests.bench.processes import Machine, cpu_seconds, machine
from tests.bench.table import Table, telling

OWNERS: Final = 40
MEMORIES: Final = 10_000
_SEARCH_SECONDS: Final = 8.0


def _cost(worker: float, postgres: float) -> str:
    return f"{worker + postgres:.2f} ms: worker {worker:.2f}, Postgres {postgres:.2f}"


def _deciding(table: Table) -> None:
    for name, milliseconds in routing.measure().items():
        table.row("deciding about a candidate" if "pair" not in name else name, f"{milliseconds:.2f} ms", name)


def _redacting(table: Table) -> None:
    for name, milliseconds in redaction.measure().items():
        table.row("redacting 2 kB", f"{milliseconds:.2f} ms", name)


def _instant(made: Machine, table: Table) -> None:
    instant: Throughput = asyncio.run(through_path(made, "instant", count=4000, owners=OWNERS, latency_seconds=0))
    table.row("turns/s, instant model and embeddings", f"{instant.per_second:.0f}", f"{OWNERS} owners, one worker")
    table.row(
        "CPU per turn",
        _cost(instant.worker, instant.postgres),
        f"beside it Kafka {instant.kafka:.2f}, scripted model {instant.model:.2f}",
    )
    table.row("model calls per turn", f"{instant.calls:.2f}", f"{instant.prompt_tokens:.0f} prompt tokens")


def _slow(made: Machine, table: Table) -> None:
    slow = asyncio.run(through_path(made, "slow", count=1500, owners=OWNERS, latency_seconds=0.5))
    limit = 32 / 0.5
    table.row(
        "turns/s, model of 500 ms, 32 in flight",
        f"{slow.per_second:.1f}",
        f"{100 * slow.per_second / limit:.0f} % of the {limit:.0f} that 32 calls of 500 ms allow",
    )


def _stages(made: Machine, table: Table) -> None:
    stages = asyncio.run(by_stage(made, "stages", count=2000, owners=OWNERS))
    for stage, (worker, postgres) in stages.items():
        table.row(
            f"CPU per turn, {stage} alone",
            f"{worker + postgres:.2f} ms",
            f"worker {worker:.2f}, Postgres {postgres:.2f}",
        )


def _lone(made: Machine, table: Table) -> None:
    middle, worst = asyncio.run(searchable_after(made, "lone", rounds=40))
    table.row("lone turn, published to found by Search", f"p50 {middle:.0f} ms", f"worst of 40: {worst:.0f} ms")


def _backlog(made: Machine, table: Table) -> None:
    backlog = asyncio.run(backlogs.worked_off(made, "backlog"))
    table.row(
        "turns/s, a backlog worked off, instant model",
        f"{backlog.per_second:.0f}",
        f"{backlogs.OWNERS} owners × {backlogs.EACH} turns, from the first assignment to the last turn stored",
    )
    table.row(
        "CPU per turn of the backlog",
        _cost(backlog.worker, backlog.postgres),
        "one worker that nobody warmed, from when it was ready",
    )
    table.row(
        "model calls per 1,000 turns of the backlog",
        f"{backlog.calls:.0f}",
        f"at least {1000 * -(-backlogs.EACH // 20) // backlogs.EACH} by windows of 20; "
        f"{backlog.prompt_tokens:.0f} prompt tokens a turn",
    )


def _backlog_stages(made: Machine, table: Table) -> None:
    """Faust's share is of what extract takes: there it is paid for each turn, in reconcile for each window."""
    costs = asyncio.run(backlogs.by_stage(made, "backlog-stages"))
    for stage, (worker, postgres) in costs.items():
        table.row(
            f"CPU per turn of the backlog, {stage} alone",
            f"{worker + postgres:.2f} ms",
            f"worker {worker:.2f}, Postgres {postgres:.2f}",
        )
    taken = asyncio.run(consuming.measure(made, "consuming"))
    table.row(
        "CPU per record until a handler has it",
        f"{taken.all:.3f} ms",
        f"extract's stage as it is, with a handler that does nothing, over {consuming.RECORDS:,} waiting turns",
    )
    worker = costs["extract"][0]
    table.row(
        "Faust's share of extract's CPU, backlog",
        f"{100 * taken.faust / worker:.0f} %",
        f"{taken.faust:.3f} of {worker:.2f} ms: that cost without the lanes ({taken.lanes:.3f} by themselves)",
    )


def _workers(made: Machine, table: Table) -> None:
    rates = asyncio.run(backlogs.scaling(made, "workers", 3))
    limit = backlogs.SCALING_IN_FLIGHT / backlogs.MODEL_SECONDS
    for number, rate in enumerate(rates, start=1):
        table.row(
            f"turns/s, {number} worker{'s' if number > 1 else ''}, model of 500 ms",
            f"{rate:.1f}, {rate / rates[0]:.2f}×",
            f"{100 * rate / (number * limit):.0f} % of the {number * limit:.0f} that {backlogs.SCALING_IN_FLIGHT} "
            "calls in flight a worker allow; each turn its own call",
        )


def _recovery(made: Machine, table: Table) -> None:
    recovery = asyncio.run(isolation.after_a_kill(made, "recovery"))
    others = "every partition was its" if recovery.others is None else f"{recovery.others:.1f} s in the others"
    table.row(
        "one of two workers killed: longest silence",
        f"{recovery.its_partitions:.1f} s",
        f"in its partitions, a session time-out of 10 s in it; {others}",
    )


def _reconcile(made: Machine, table: Table) -> None:
    waits = asyncio.run(isolation.reconcile_beside_extract(made, "reconcile"))
    table.row("reconcile, candidates to stored", str(waits.idle), "idle")
    for found, beside in (
        (waits.extract_hangs, f"extract hangs, {isolation.HANGING:,} turns wait for it"),
        (waits.extract_joined, "beside that a worker joins that runs extract alone"),
        (waits.worker_joined, "beside that a worker joins that runs both: its own group rebalances"),
    ):
        table.row("reconcile, candidates to stored", str(found), beside)


def _hot(made: Machine, table: Table) -> None:
    for model_seconds, model in ((0.0, "instant model"), (0.5, "model of 500 ms")):
        name = f"hot_{int(1000 * model_seconds)}"
        hot = asyncio.run(isolation.beside_hot(made, name, model_seconds=model_seconds))
        what = f"quiet owner's turn to stored, {model}"
        table.row(what, str(hot.idle), f"idle, {isolation.QUIET_OWNERS} owners")
        ratio = hot.elsewhere.p99 / hot.idle.p99
        table.row(
            what,
            str(hot.elsewhere),
            f"a hot owner has {isolation.HOT_TURNS:,} turns waiting in another partition: {ratio:.1f}× idle at p99",
        )
        ratio = hot.same_partition.p99 / hot.idle.p99
        table.row(what, str(hot.same_partition), f"… in the same partition: {ratio:.1f}× idle at p99")


def _memory(made: Machine, table: Table) -> None:
    memory = asyncio.run(backlogs.memory(made, "memory"))
    table.row(
        f"resident memory of a worker, {backlogs.WAITING:,} turns waiting",
        f"{memory.peak:.0f} MB",
        f"idle {memory.idle:.0f} MB; limit {memory.limit:.0f} MB: a fifth above idle and the declared buffers; "
        f"{memory.stored:,} turns worked off meanwhile",
    )


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


_PURE: Final[dict[str, Callable[[Table], None]]] = {"deciding": _deciding, "redacting": _redacting}
"""Without store, topics and model."""

_ON_A_MACHINE: Final[dict[str, Callable[[Machine, Table], None]]] = {
    "instant": _instant,
    "slow": _slow,
    "stages": _stages,
    "lone": _lone,
    "backlog": _backlog,
    "backlog-stages": _backlog_stages,
    "workers": _workers,
    "recovery": _recovery,
    "reconcile": _reconcile,
    "hot": _hot,
    "memory": _memory,
    "searches": _searches,
}


def _asked() -> list[str]:
    names = [*_PURE, *_ON_A_MACHINE]
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="The table of docs/performance.md.")
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    given: list[str] = parser.parse_args().only
    return [name for name in names if name in given]


def main() -> None:
    """Everything in some nine minutes, or what is asked for."""
    asked = _asked()
    memory = psutil.virtual_memory().total / (1 << 30)
    print(f"{psutil.cpu_count()} cores, {memory:.0f} GiB, Python {platform.python_version()}, {platform.system()}\n")
    table = Table()
    with ExitStack() as stack:

        @cache
        def made() -> Machine:
            return stack.enter_context(machine())

        for name in asked:
            with telling(name):
                if name in _PURE:
                    _PURE[name](table)
                else:
                    _ON_A_MACHINE[name](made(), table)


if __name__ == "__main__":
    main()
