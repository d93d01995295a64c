"""The router against HAProxy by hand on the same path, and with many Routes and open requests.

    sudo .venv/bin/python bench/ingress.py [--rounds 24] [--seconds 1] [--routes 1000] [--open 10000]

A real etcd and kube-apiserver, `hcp router run` as it runs in a hosted cluster, and wrk from Debian's package. The
yardstick is a HAProxy with a configuration of a few lines, written for the one host that is asked: it has to choose
by nothing. Both lead to the same pod and are asked in short turns, in the order ours, theirs, theirs, ours: what
disturbs the machine for longer than a turn disturbs both. Ratios are medians over pairs of neighbours, with the
quarters beside them. As many requests are open at a time as the limit of open files permits: HAProxy has two for a
plain one and four for one over TLS.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import re
import resource
import shutil
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import ingress_world as w
from bench.wrk import HEAD, ask
from bench.wrk import compare as in_turns

from hcp import payload
from hcp.kube import Client, load_config
from hcp.kube import resources as r
from hcp.local.network.ports import free_ports

# Files of one open request, half of them over TLS, and those of everything else.
FILES, OTHER_FILES = 3, 2000
CONNECTIONS = 32
UPDATES = 20
CHANGES = 100


def seconds_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def compare(wrk: str, paths: dict[str, tuple[tuple[str, int], tuple[str, int]]], rounds: int, seconds: int) -> None:
    """Path by path: ours and by hand in turn."""
    print(f"load {os.getloadavg()[0]:.0f}\n{HEAD}")
    for name, sides in paths.items():
        hand, ours = (partial(ask, [wrk], url, CONNECTIONS, seconds, partial(seconds_of, pid)) for url, pid in sides)
        print(in_turns(hand, ours, rounds).row(name), flush=True)


async def many_routes(client: Client, router: w.Running, count: int) -> None:
    for name, port in (("first", w.POD_PORTS[1]), ("second", w.POD_PORTS[2])):
        await w.service(client, name, port)
    started = time.monotonic()
    slots = asyncio.Semaphore(16)

    async def make(number: int) -> None:
        async with slots:
            await client.apply(w.route(f"many-{number}", "first", f"many-{number}.bench.test"))

    await asyncio.gather(*(make(number) for number in range(count)))
    made = time.monotonic()
    for number in range(count):
        await w.answered(router.http, f"many-{number}.bench.test", "first")
    print(f"\n{count} Routes made in {made - started:.1f} s, all served {time.monotonic() - made:.1f} s later")
    times = []
    for turn in range(UPDATES):
        target = "second" if turn % 2 == 0 else "first"
        began = time.monotonic()
        await client.apply(w.route("many-7", target, "many-7.bench.test"))
        await w.answered(router.http, "many-7.bench.test", target)
        times.append(time.monotonic() - began)
        await asyncio.sleep(0.3)
    print(f"update to served: median {statistics.median(times):.3f} s, longest {max(times):.3f} s of {UPDATES}")
    await asyncio.sleep(2)
    print(f"resident: router {resident(router.pid):.0f} MB, HAProxy {resident(router.haproxy):.0f} MB")


async def first_load(directory: Path, program: str, kubeconfig: str, count: int) -> None:
    """A router that starts where many Routes are."""
    began = time.monotonic()
    with w.another(directory, program, kubeconfig) as other:
        await w.answered(other.http, "many-0.bench.test", "first")
        first = time.monotonic() - began
        for number in range(count):
            await w.answered(other.http, f"many-{number}.bench.test", "first")
        print(f"another router: first Route after {first:.1f} s, all after {time.monotonic() - began:.1f} s")


class Slow:
    """A pod that answers when it is told."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()
        self.all = asyncio.Event()
        self.go_on = asyncio.Event()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            self.numbers.add(int(head.split(b" ")[1].lstrip(b"/")))
            await self.go_on.wait()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ndone")
            await writer.drain()
        writer.close()


async def open_requests(client: Client, router: w.Running, count: int) -> int:
    pod = Slow()
    server = await asyncio.start_server(pod.talk, "0.0.0.0", 0, backlog=4096)
    await w.service(client, "slow", int(server.sockets[0].getsockname()[1]))
    body = w.route("slow", "slow", "slow.bench.test")
    body["metadata"]["annotations"] = {"haproxy.router.openshift.io/timeout": "1h"}
    await client.apply(body)
    await w.listed(router, "slow.bench.test")
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    slots = asyncio.Semaphore(100)

    async def ask(number: int) -> bool:
        """Half of them over TLS that the router ends. One that never got to the pod was not open: it is tried again."""
        while True:
            if (good := await once(number)) or number in pod.numbers:
                return good

    async def once(number: int) -> bool:
        try:
            async with slots:
                secure = number % 2 == 0
                port = router.https if secure else router.http
                more: dict[str, Any] = {"ssl": context, "server_hostname": "slow.bench.test"} if secure else {}
                reader, writer = await asyncio.open_connection("127.0.0.1", port, **more)
                writer.write(b"GET /%d HTTP/1.1\r\nHost: slow.bench.test\r\n\r\n" % number)
                await writer.drain()
            said = await reader.read()
            writer.close()
            return said.endswith(b"done")
        except (OSError, ssl.SSLError):
            return False

    tasks = [asyncio.create_task(ask(number)) for number in range(count)]
    while len(pod.numbers) < count:
        await asyncio.sleep(0.2)
    print(f"\n{len(pod.numbers)} requests are open, half of them over TLS; {CHANGES} changes follow")
    haproxy = router.haproxy
    for number in range(CHANGES):
        name = f"change-{number % 10}"
        if number % 5 == 4:
            await client.delete(r.ROUTES, name, w.NAMESPACE, missing_ok=True)
        else:
            await client.apply(w.route(name, "first", f"{name}.bench.test"))
        if number % 10 == 0:
            await client.apply(w.certificate("default-cert"))
            await client.apply({**body, "spec": {**body["spec"], "to": {"kind": "Service", "name": "first"}}})
        if number % 10 == 5:
            await client.apply(body)
        await asyncio.sleep(0.05)
    await asyncio.sleep(1)
    print(f"resident meanwhile: router {resident(router.pid):.0f} MB, HAProxy {resident(router.haproxy):.0f} MB")
    pod.go_on.set()
    good = sum(await asyncio.gather(*tasks))
    same = "the same HAProxy all the time" if router.haproxy == haproxy else "HAPROXY WAS STARTED ANEW"
    print(f"answered: {good} of {count}, dropped {count - good}; {same}")
    server.close()
    return count - good


@contextlib.contextmanager
def haproxy(program: str, directory: Path, name: str, text: str) -> Iterator[int]:
    config = directory / f"{name}.cfg"
    config.write_text(text)
    process = subprocess.Popen([program, "-db", "-f", str(config)])
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("rounds", 24), ("seconds", 1), ("routes", 1000), ("open", 10000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    parts = payload.ensure(["haproxy", "wrk"])
    program, wrk = (str(parts[name] / "bin" / name) for name in ("haproxy", "wrk"))
    directory = Path(tempfile.mkdtemp(prefix="hcp-bench-ingress-"))
    try:
        ports = free_ports(3)
        with (
            haproxy(program, directory, "pods", w.pods()),
            haproxy(program, directory, "hand", w.by_hand(directory, *ports)) as hand,
            w.router(directory, program) as router,
        ):
            asyncio.run(_run(args, directory, (program, wrk), router, hand, ports))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


async def _run(
    args: argparse.Namespace,
    directory: Path,
    programs: tuple[str, str],
    router: w.Running,
    hand: int,
    ports: list[int],
) -> None:
    program, wrk = programs
    async with Client(load_config(router.kubeconfig)) as client:
        await w.service(client, "pod", w.POD_PORTS[0])
        await client.apply(w.route("pod", "pod", "localhost"))
        for name, annotations in w.ASKED.items():
            optional = w.route(name, "pod", "localhost")
            optional["spec"]["path"], optional["metadata"]["annotations"] = f"/{name}", annotations
            await client.apply(optional)
            await w.answered(router.http, "localhost", "pod", f"/{name}")
        await w.answered(router.http, "localhost", "pod")
        plain, ended, direct = ports

        def pair(theirs: str, ours: str) -> tuple[tuple[str, int], tuple[str, int]]:
            return (theirs, hand), (ours, router.haproxy)

        http, https = f"http://localhost:{router.http}/", f"https://localhost:{router.https}/"
        paths = {
            "HTTP": pair(f"http://localhost:{plain}/", http),
            "HTTP, a timeout by annotation": pair(f"http://localhost:{plain}/", f"{http}timeout"),
            "HTTP, addresses and rates too": pair(f"http://localhost:{plain}/guarded", f"{http}guarded"),
            "HTTPS ended, names looked at first": pair(f"https://localhost:{ended}/", https),
            "HTTPS ended, no passthrough beside": pair(f"https://localhost:{direct}/", https),
        }
        await asyncio.to_thread(compare, wrk, paths, args.rounds, args.seconds)
        await many_routes(client, router, args.routes)
        await first_load(directory, program, router.kubeconfig, args.routes)
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        batches = -(-args.open // max(100, (limit - OTHER_FILES) // FILES))
        dropped = [await open_requests(client, router, args.open // batches) for _ in range(batches)]
        print(f"\nload {os.getloadavg()[0]:.0f}")
        print(f"in all: {args.open // batches * batches} requests, {sum(dropped)} dropped")


if __name__ == "__main__":
    main()
