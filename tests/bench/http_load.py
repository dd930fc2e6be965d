"""A client that costs little: keep-alive HTTP/1.1 over raw sockets, `clients` at once, each asking again when answered.

Run as a process of its own, so that it does not share an event loop with what it measures:
`python -m tests.bench.http_load` reads one JSON object from standard input and prints one.
"""

import asyncio
import json
import resource
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Load:
    """Latencies in milliseconds."""

    requests: int
    seconds: float
    per_second: float
    p50: float
    p99: float
    client_cpu_ms: float
    """Of the client, for each request."""


def summarised(latencies: list[float], seconds: float, cpu_seconds: float) -> Load:
    """latencies: in seconds, in any order."""
    ordered = sorted(latencies)
    return Load(
        requests=len(ordered),
        seconds=seconds,
        per_second=len(ordered) / seconds,
        p50=1000 * ordered[len(ordered) // 2],
        p99=1000 * ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))],
        client_cpu_ms=1000 * cpu_seconds / len(ordered),
    )


def cpu_seconds() -> float:
    """Of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def _body(reader: asyncio.StreamReader, head: bytes) -> None:
    """Read the answer's body to its end and drop it."""
    if b"transfer-encoding: chunked" in head:
        await reader.readuntil(b"\r\n0\r\n\r\n")
        return
    [length] = [int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")]
    await reader.readexactly(length)


async def _client(host: str, port: int, requests: list[bytes], offset: int, until: float, out: list[float]) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        position = offset
        while (start := time.perf_counter()) < until:
            writer.write(requests[position % len(requests)])
            position += 1
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(f"the service answered {head[:15].decode('ascii', 'replace')}")
            await _body(reader, head.lower())
            out.append(time.perf_counter() - start)
    finally:
        writer.close()


async def run(job: dict[str, Any]) -> Load:
    """job: host, port, path, key, bodies (JSON objects), clients, seconds."""
    requests = []
    for body in job["bodies"]:
        payload = json.dumps(body).encode()
        head = (
            f"POST {job['path']} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {job['key']}\r\nContent-Length: {len(payload)}\r\n\r\n"
        )
        requests.append(head.encode() + payload)
    latencies: list[float] = []
    start, cpu = time.perf_counter(), cpu_seconds()
    until = start + job["seconds"]
    step = max(1, len(requests) // job["clients"])
    async with asyncio.TaskGroup() as group:
        for n in range(job["clients"]):
            group.create_task(_client(job["host"], job["port"], requests, n * step, until, latencies))
    return summarised(latencies, time.perf_counter() - start, cpu_seconds() - cpu)


if __name__ == "__main__":
    print(json.dumps(asdict(asyncio.run(run(json.load(sys.stdin))))))
