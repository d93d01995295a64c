"""The yardstick of control planes: the same binaries with TLS, straight from the shell."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hcp import payload, pki
from hcp.local.network.ports import free_ports

PARTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


def binary(name: str, given: Path | None) -> Path:
    if given is not None:
        return given / name
    component = "etcd" if name == "etcd" else "kubernetes-1.36"
    return payload.ensure([component])[component] / "bin" / name


class Bare:
    """One etcd with one kube-apiserver."""

    def __init__(self, bin_dir: Path | None, *, own_files: bool = True, ports: Sequence[int] = ()) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="hcp-bench-"))
        self._bin = bin_dir
        self._own_files = own_files
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._port, self._etcd, self._peer, *self._others = ports or free_ports(5)

    def start(self, *, whole: bool = False) -> float:
        """Start etcd and kube-apiserver (and the two others); seconds until /readyz."""
        files = self._files()
        for name in PARTS if whole else PARTS[:2]:
            self._copy(name)
        begun = time.monotonic()
        client_url, peer_url = f"http://127.0.0.1:{self._etcd}", f"http://127.0.0.1:{self._peer}"
        self._run(
            "etcd",
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls={client_url}",
            f"--advertise-client-urls={client_url}",
            f"--listen-peer-urls={peer_url}",
            f"--initial-advertise-peer-urls={peer_url}",
            f"--initial-cluster=default={peer_url}",
        )
        self._run(
            "kube-apiserver",
            f"--etcd-servers={client_url}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port}",
            f"--tls-cert-file={files / 'server.crt'}",
            f"--tls-private-key-file={files / 'server.key'}",
            f"--client-ca-file={files / 'ca.crt'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={files / 'sa.pub'}",
            f"--service-account-signing-key-file={files / 'sa.key'}",
            "--service-cluster-ip-range=172.31.0.0/16",
            "--authorization-mode=Node,RBAC",
            "--shutdown-delay-duration=0s",
        )
        self._wait_ready(files)
        seconds = time.monotonic() - begun
        if whole:
            for name, port in zip(PARTS[2:], self._others, strict=True):
                self._run(name, f"--kubeconfig={files / 'kubeconfig'}", f"--secure-port={port}")
        return seconds

    def stop(self) -> None:
        for process in reversed(self._processes.values()):
            process.kill()
            process.wait()
        self._processes.clear()
        shutil.rmtree(self.directory, ignore_errors=True)

    def memory(self) -> dict[str, float]:
        return {name: pss(process.pid) for name, process in self._processes.items()}

    def _run(self, name: str, *args: str) -> None:
        with (self.directory / f"{name}.log").open("ab") as log:
            command = [str(self._copy(name)), *args]
            self._processes[name] = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.directory)

    def _copy(self, name: str) -> Path:
        """A file of its own: pages shared with the management cluster's processes would make the yardstick small."""
        if not self._own_files:
            return binary(name, self._bin)
        target = self.directory / f"bin-{name}"
        if not target.exists():
            shutil.copy(binary(name, self._bin), target)
        return target

    def _wait_ready(self, files: Path) -> None:
        context = ssl.create_default_context(cafile=str(files / "ca.crt"))
        while True:
            try:
                with urllib.request.urlopen(f"https://127.0.0.1:{self._port}/readyz", context=context, timeout=5):
                    return
            except OSError:
                ended = [name for name, process in self._processes.items() if process.poll() is not None]
                if ended:
                    raise SystemExit(
                        f"{ended[0]} ended: {(self.directory / f'{ended[0]}.log').read_text()[-500:]}"
                    ) from None
                time.sleep(0.02)

    def _files(self) -> Path:
        ca = pki.new_ca("bench")
        server = pki.issue(ca, "kube-apiserver", dns=["localhost"], ips=["127.0.0.1"])
        admin = pki.issue(ca, "admin", orgs=["system:masters"], usage="client")
        signing = pki.new_signing_key()
        kubeconfig = pki.kubeconfig(f"https://127.0.0.1:{self._port}", ca.cert_pem, admin.cert_pem, admin.key_pem)
        content = {
            "ca.crt": ca.cert_pem,
            "server.crt": server.cert_pem,
            "server.key": server.key_pem,
            "sa.key": signing,
            "sa.pub": pki.public_key(signing),
            "kubeconfig": pki.kubeconfig_yaml(kubeconfig),
        }
        for name, data in content.items():
            (self.directory / name).write_bytes(data)
        return self.directory


def pss(pid: int) -> float:
    """Proportional set size in MB: shared pages of one binary are counted once over all who map them."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1000 for line in text.splitlines() if line.startswith("Pss:")), 0.0)


async def pairs_at_once(count: int, bin_dir: Path | None) -> list[float]:
    """Seconds until /readyz of pairs that all start together; all run until the last is ready, as hosted ones do.

    Their memory is not looked at, so they need no files of their own: gigabytes on their way to the disk would slow
    what is measured next.
    """
    ports = free_ports(3 * count)  # chosen together: one after the other, two pairs may get the same
    pairs = [Bare(bin_dir, own_files=False, ports=ports[3 * n : 3 * n + 3]) for n in range(count)]
    try:
        with ThreadPoolExecutor(count) as threads:
            loop = asyncio.get_running_loop()
            return list(await asyncio.gather(*(loop.run_in_executor(threads, pair.start) for pair in pairs)))
    finally:
        for pair in pairs:
            pair.stop()
