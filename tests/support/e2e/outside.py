"""A machine outside of a cluster that asks the cluster's CoreDNS for every name: no name is resolved by hand."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.support.e2e.local_tools import Cluster
from tests.support.eventually import eventually_sync

from hcp import payload

SERVICE = "dns-from-outside"
# In a mount namespace of its own: the file is what the C library and browsers read.
_WITH_RESOLVER = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'


class Outside:
    """Programs of a person who has never heard of the cluster's addresses."""

    def __init__(self, management: Cluster, folder: Path) -> None:
        self._resolver = folder / "resolv.conf"
        ports = [{"name": kind.lower(), "protocol": kind, "port": 53} for kind in ("UDP", "TCP")]
        spec = {"type": "LoadBalancer", "selector": {"k8s-app": "kube-dns"}, "ports": ports}
        metadata = {"name": SERVICE, "namespace": "kube-system"}
        management.apply({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})

        def address() -> str:
            found = management.get("service", SERVICE, "-n", "kube-system")["status"]["loadBalancer"]["ingress"]
            return str(found[0]["ip"])

        self._resolver.write_text(f"nameserver {eventually_sync(address, 'an address of CoreDNS', 120)}\n")
        curl = shutil.which("curl")
        self._curl = curl or str(payload.ensure(["test-curl"])["test-curl"] / "bin" / "curl")

    def words(self, *command: str) -> list[str]:
        """The command line that runs a program with that DNS server."""
        return [
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            _WITH_RESOLVER,
            str(self._resolver),
            *command,
        ]

    def curl(self, url: str, trust: Path, *more: str) -> str:
        """What is answered, its status at the end; nothing where nobody answers or the certificate is another's."""
        words = (
            "--silent",
            "--show-error",
            "--max-time",
            "60",
            "--cacert",
            str(trust),
            "--write-out",
            "\n%{http_code}",
        )
        done = subprocess.run(
            self.words(self._curl, *words, *more, url), capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, f"curl {url}: {done.stderr}"
        return done.stdout
