"""A restore that changes nothing: a throw-away etcd starts from the snapshot and is asked what it holds."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from hcp import pki
from hcp.backup.content import Snapshot
from hcp.errors import HcpError
from hcp.etcd.client import Etcd, Fingerprint, Identity

_PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class Found:
    """What the throw-away etcd says, and in which words it differs from what was noted when the backup was made."""

    revision: int
    now: Fingerprint
    problems: tuple[str, ...]
    # Why less could be compared than usual.
    note: str = ""


def programs(directory: Path | None) -> tuple[str, str]:
    """etcd and etcdutl: of the payload, or those of the machine."""
    names = ("etcd", "etcdutl")
    found = [str(directory / name) if directory is not None else shutil.which(name) for name in names]
    if not all(found):
        raise HcpError(
            "verify needs the programs etcd and etcdutl",
            hint="hcp payload build etcd makes them; --checksums-only does without",
        )
    return str(found[0]), str(found[1])


async def verify(pieces: AsyncIterator[bytes], wanted: Snapshot, directory: Path | None) -> Found:
    etcd, etcdutl = programs(directory)
    with tempfile.TemporaryDirectory(prefix="hcp-verify-") as folder:  # 0700, as tempfile makes them
        home = Path(folder)
        await _write(pieces, home / "snapshot.db")
        await _restore(etcdutl, home)
        (home / "snapshot.db").unlink()
        async with _running(etcd, home) as member:
            status = await member.status()
            now = await member.fingerprint(wanted.revision)
    return compare(wanted, status.revision, now)


def compare(wanted: Snapshot, revision: int, now: Fingerprint) -> Found:
    """The snapshot is of a moment between the two revisions that were noted; what it was before must be the same."""
    problems = []
    if not wanted.revision <= revision <= wanted.newest:
        problems.append(f"it is at revision {revision}, taken between {wanted.revision} and {wanted.newest}")
    if now.keys != wanted.keys:
        problems.append(f"at revision {wanted.revision} it has {now.keys} keys instead of {wanted.keys}")
    note = ""
    if now.compacted != wanted.compacted:
        note = "etcd forgot old revisions while the snapshot was taken, so the two hashes cannot be compared"
    elif now.hash != wanted.hash:
        problems.append(f"the hash of its keys is {now.hash} instead of {wanted.hash}")
    return Found(revision, now, tuple(problems), note)


async def _write(pieces: AsyncIterator[bytes], file: Path) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        async for piece in pieces:
            out.write(piece)


async def _restore(etcdutl: str, home: Path) -> None:
    command = [etcdutl, "snapshot", "restore", str(home / "snapshot.db"), f"--data-dir={home / 'data'}"]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise HcpError("etcd cannot restore the snapshot", cause=(done.stderr or done.stdout).strip()[-800:])


@contextlib.asynccontextmanager
async def _running(etcd: str, home: Path) -> AsyncIterator[Etcd]:
    """On this machine only, and only for whoever holds the certificate made for it: it serves a tenant's data."""
    ca = pki.new_ca("verify")
    server = pki.issue(ca, "etcd", dns=("localhost",), ips=("127.0.0.1",), usage="both")
    client = pki.issue(ca, "hcp", usage="client")
    for name, pem in (("ca.crt", ca.cert_pem), ("tls.crt", server.cert_pem), ("tls.key", server.key_pem)):
        (home / name).write_bytes(pem)
    port, peer = _free_port(), _free_port()
    url = f"https://localhost:{port}"
    command = [
        etcd,
        f"--data-dir={home / 'data'}",
        f"--listen-client-urls=https://127.0.0.1:{port}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls=http://127.0.0.1:{peer}",
        *(f"--cert-file={home / 'tls.crt'}", f"--key-file={home / 'tls.key'}"),
        *(f"--trusted-ca-file={home / 'ca.crt'}", "--client-cert-auth", "--unsafe-no-fsync", "--log-level=error"),
    ]
    with (home / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=home
        )
    try:
        async with Etcd(url, Identity(ca.cert_pem, client.cert_pem, client.key_pem)) as member:
            await _answers(member, process, home / "log")
            yield member
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _answers(member: Etcd, process: Process, log: Path) -> None:
    try:
        async with asyncio.timeout(_PATIENCE):
            while True:
                try:
                    await member.status()
                    return
                except HcpError:
                    if process.returncode is not None:
                        raise TimeoutError from None
                    await asyncio.sleep(0.1)  # nothing tells when a process listens
    except TimeoutError:
        told = (await asyncio.to_thread(log.read_text, errors="replace")).strip()[-800:]
        raise HcpError("etcd does not start from the snapshot", cause=told or "it does not answer") from None


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
