"""Requests per second and latency of `gainful serve`, with real client processes over loopback HTTP.

    python benchmarks/serve.py [--seconds 6] [--agents 1 10 100] [--record]

Every agent has its own connection, on which a client asks for an action and reports its outcome, one request after
another, each with a request id. In the last rows many connections share one agent, and therefore its disk syncs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.records import add_record_options, printed

CLIENTS = 2
CONFIG = {"agent": "scal-plus", "n_states": 6, "n_actions": 2, "span": 7.0}


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes, body: bytes) -> Any:
    """One POST on an open connection."""
    writer.write(head + b"%d\r\n\r\n" % len(body) + body)
    top = await reader.readuntil(b"\r\n\r\n")
    at = top.index(b"content-length: ") + 16
    body = await reader.readexactly(int(top[at : top.index(b"\r", at)]))
    if top[9:12] != b"200":
        raise RuntimeError(body.decode())
    return json.loads(body)


async def act_and_observe(port: int, agent: str, key: str, number: int, until: float, times: list[float]) -> None:
    """Act and observe on one connection until the time is over."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    heads = [
        f"POST /agents/{agent}/{verb} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
        "Content-Type: application/json\r\nContent-Length: ".encode()
        for verb in ("act", "observe")
    ]
    state, n = 0, 0
    while time.monotonic() < until:
        began = time.perf_counter()
        body = b'{"state":%d,"request_id":"%d:%d:a"}' % (state, number, n)
        decision = await ask(reader, writer, heads[0], body)
        middle = time.perf_counter()
        state = (state + decision["action"] + n) % 6
        body = b'{"decision_id":%d,"reward":0.5,"next_state":%d,"request_id":"%d:%d:o"}' % (
            decision["decision_id"],
            state,
            number,
            n,
        )
        await ask(reader, writer, heads[1], body)
        times += [middle - began, time.perf_counter() - middle]
        n += 1
    writer.close()


def client(port: int, connections: list[tuple[str, str, int]], seconds: float, results: Any) -> None:
    """A client process with its own connections."""

    async def all_of_them() -> list[float]:
        times: list[float] = []
        until = time.monotonic() + seconds
        await asyncio.gather(
            *(act_and_observe(port, agent, key, number, until, times) for agent, key, number in connections)
        )
        return times

    results.put(asyncio.run(all_of_them()))


def post(url: str, key: str, value: Any) -> Any:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(value).encode(), headers)) as answer:
        return json.load(answer)


def cell(agents: int, connections: int, fsync: str, seconds: float, place: str) -> tuple[float, Any, float]:
    """Requests per second, latencies, and the CPU seconds of the server per second."""
    command = [sys.executable, "-m", "gainful", "serve", place, "--port", "0", "--fsync", fsync, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        facts = json.loads(server.stdout.readline())
        admin, port = Path(facts["admin_key"]).read_text().strip(), int(facts["url"].rsplit(":", 1)[1])
        made = [post(f"{facts['url']}/agents", admin, {"config": {**CONFIG, "seed": i}}) for i in range(agents)]
        clients = [(made[i % agents]["id"], made[i % agents]["key"], i) for i in range(connections)]
        for agent, key, number in clients[:agents]:  # plans are compiled, threads started
            decision = post(f"{facts['url']}/agents/{agent}/act", key, {"state": 0})
            body = {"decision_id": decision["decision_id"], "reward": 0.5, "next_state": number % 6}
            post(f"{facts['url']}/agents/{agent}/observe", key, body)
        results: Any = multiprocessing.Queue()
        n = min(CLIENTS, connections)
        processes = [
            multiprocessing.Process(target=client, args=(port, clients[i::n], seconds, results)) for i in range(n)
        ]
        cpu = _cpu(server.pid)
        for process in processes:
            process.start()
        times = np.concatenate([results.get() for _ in processes])
        cpu = _cpu(server.pid) - cpu
        for process in processes:
            process.join()
        server.terminate()
        assert server.wait() == 0
    return len(times) / seconds, times * 1000.0, cpu / seconds


def _cpu(pid: int) -> float:
    import psutil

    used = psutil.Process(pid).cpu_times()
    return float(used.user + used.system)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--agents", type=int, nargs="*", default=[1, 10, 100])
    parser.add_argument("--shared", type=int, nargs="*", default=[16], help="connections to one agent")
    parser.add_argument("--fsync", nargs="*", default=["record", "10", "off"])
    add_record_options(parser)
    chosen = parser.parse_args()
    with printed("serve", "rates", keep=chosen.record):
        rates(chosen)


def rates(chosen: argparse.Namespace) -> None:
    """Print the table."""
    print(f"{os.cpu_count()} processors, {CLIENTS} client processes, {chosen.seconds:g} s each\n")
    print("| agents | connections | fsync | requests/s | p50 ms | p90 ms | p99 ms | server CPU |")
    print("|---:|---:|---|---:|---:|---:|---:|---:|")
    for agents, connections in [(n, n) for n in chosen.agents] + [(1, n) for n in chosen.shared]:
        for fsync in chosen.fsync:
            with tempfile.TemporaryDirectory() as folder:
                rate, times, cpu = cell(agents, connections, fsync, chosen.seconds, folder + "/service")
            p50, p90, p99 = np.percentile(times, [50, 90, 99])
            words = {"record": "every record", "off": "off"}.get(fsync, f"every {fsync} ms")
            print(
                f"| {agents} | {connections} | {words} | {rate:,.0f} | {p50:.2f} | {p90:.2f} | {p99:.2f} | {cpu:.0%} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
