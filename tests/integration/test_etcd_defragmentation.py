"""Defragmentation by date on three real members: one after the other, and the others answer all the while."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.api_server import free_port
from tests.support.eventually import eventually

from hcp import pki
from hcp.controlplane.params import Params
from hcp.errors import HcpError
from hcp.etcd.client import Etcd, Identity
from hcp.hostedcluster.etcd_maintenance import EtcdMaintenance, Wanted
from hcp.kube import Client, ClusterConfig
from hcp.kube.config import UserAuth
from hcp.runtime import schedule

KEY = "clusters/three"
MEMBERS = 3


class Members:
    """Three etcd processes with TLS."""

    def __init__(self, directory: Path, bin_dir: Path) -> None:
        ca = pki.new_ca("etcd-signer")
        server = pki.issue(ca, "etcd", dns=("localhost",), ips=("127.0.0.1",), usage="both")
        client = pki.issue(ca, "client", usage="client")
        self.identity = Identity(ca.cert_pem, client.cert_pem, client.key_pem)
        for name, content in (("ca.crt", ca.cert_pem), ("s.crt", server.cert_pem), ("s.key", server.key_pem)):
            (directory / name).write_bytes(content)
        ports = [(free_port(), free_port()) for _ in range(MEMBERS)]
        self.urls = [f"https://127.0.0.1:{port}" for port, _ in ports]
        cluster = ",".join(f"m{i}=http://127.0.0.1:{peer}" for i, (_, peer) in enumerate(ports))
        self._processes = []
        for i, (_, peer) in enumerate(ports):
            command = [
                str(bin_dir / "etcd"),
                f"--name=m{i}",
                f"--data-dir={directory / f'm{i}'}",
                f"--listen-client-urls={self.urls[i]}",
                f"--advertise-client-urls={self.urls[i]}",
                f"--listen-peer-urls=http://127.0.0.1:{peer}",
                f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
                f"--initial-cluster={cluster}",
                *("--cert-file=s.crt", "--key-file=s.key", "--trusted-ca-file=ca.crt", "--client-cert-auth"),
                "--unsafe-no-fsync",
            ]
            with (directory / f"m{i}.log").open("ab") as log:
                self._processes.append(subprocess.Popen(command, cwd=directory, stdout=log, stderr=log))

    def stop(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def client(self, index: int) -> Client:
        auth = UserAuth(cert_pem=self.identity.cert, key_pem=self.identity.key)
        return Client(ClusterConfig(server=self.urls[index], ca_pem=self.identity.ca, auth=auth))

    async def sizes(self) -> list[int]:
        found = []
        for url in self.urls:
            async with Etcd(url, self.identity) as member:
                found.append((await member.status()).size)
        return found


@pytest.fixture
def members(tmp_path: Path, bin_dir: Path) -> Iterator[Members]:
    made = Members(tmp_path, bin_dir)
    yield made
    made.stop()


async def put(client: Client, value: bytes) -> Any:
    body = {"key": base64.b64encode(b"same").decode(), "value": base64.b64encode(value).decode()}
    return await client.raw("POST", "/v3/kv/put", body=body)


async def fill(members: Members) -> None:
    """Sixty megabytes of history, then compacted: the files stay large."""
    async with members.client(0) as client:
        for mark in range(120):
            # They start, choose a leader, and may choose another one where the machine is busy.
            await eventually(partial(put, client, bytes([mark]) * 500_000), "a write")
    async with Etcd(members.urls[0], members.identity) as first:
        await first.compact((await first.status()).revision)
    for url in members.urls:
        async with Etcd(url, members.identity) as one, members.client(0) as client, asyncio.timeout(300):
            while (await one.status()).waste < 30 * 1024**2:
                # Freed pages are counted at the next commit.
                await put(client, b"last")
                await asyncio.sleep(0.1)


async def test_every_member_gets_its_room_back_while_the_cluster_answers(members: Members) -> None:
    await fill(members)
    before = await members.sizes()
    assert min(before) > 40 * 1024**2
    context = cast(Any, SimpleNamespace(inside=True, events=None))
    care = EtcdMaintenance(context, where=lambda _p, index: members.urls[index or 0])
    params = Params("three", "clusters", "clusters-three", "three", "id", highly_available=True)
    care._wanted[KEY] = Wanted(params, members.identity, {})
    state = care.state(KEY)
    state.plan = schedule.parse("0 3 * * *")

    # Not due: nothing happens.
    state.due = dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
    await care.reconcile(KEY)
    assert await members.sizes() == before

    failed: list[str] = []
    written = 0
    stop = asyncio.Event()

    async def write_on() -> None:
        """As a client of all members does: whoever pauses is passed over, one answer is enough.

        Where the machine is busy they may choose another leader, defragmented or not: that is waited out.
        """
        nonlocal written
        silent: list[str] = []
        while not stop.is_set():
            for index in range(MEMBERS):
                try:
                    async with members.client(index) as client, asyncio.timeout(5):
                        await put(client, str(time.time()).encode())
                    written += 1
                    silent.clear()
                    break
                except (HcpError, TimeoutError) as exc:
                    silent.append(str(exc))
            if len(silent) >= 3 * MEMBERS:
                failed.append(silent[-1])
            elif silent:
                await asyncio.sleep(1)

    writer = asyncio.create_task(write_on())
    state.due = dt.datetime.now(dt.UTC)
    await care.reconcile(KEY)
    stop.set()
    await writer
    after = await members.sizes()
    assert max(after) < 10 * 1024**2, (before, after)
    assert not failed and written
    assert state.due > dt.datetime.now(dt.UTC)
