"""A hosted cluster whose machines run in another embedded cluster than its control plane, and whose API has a name.

The name is answered by the infra cluster, whose resolver machines ask, by the cluster that manages, whose operator
asks whether the API answers under it, and for commands by a file of theirs: moving it is what whoever owns the DNS zone
would do.
"""

from __future__ import annotations

import asyncio
import base64
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import yaml
from tests.support.e2e.connections import Answer
from tests.support.e2e.control_planes import NS
from tests.support.e2e.hosted_tools import SMALL_VM
from tests.support.e2e.local_tools import HCP, Cluster, hcp
from tests.support.eventually import eventually_sync

CLUSTER, VMS, HOST = "outlives", "vms", "api.outlives.test"


def infra_kubeconfig(infra: Cluster, folder: Path) -> Path:
    """As the how-to makes it: a token of an account that has the rights of `hcp rbac external-infra`."""
    infra.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": VMS}})
    rights = hcp("rbac", "external-infra", "--infra-namespace", VMS, "--token").stdout
    infra.kubectl("apply", "-f", "-", stdin=rights)

    def token() -> str:
        data = infra.get("secret", "hcp-infra-token", "-n", VMS).get("data") or {}
        return base64.b64decode(data.get("token", "")).decode()

    config = yaml.safe_load(infra.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": eventually_sync(token, "a token", 60)}
    path = folder / "infra.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


def create(management: Cluster, infra: Path, folder: Path, nodes: int) -> None:
    """A cluster whose API is found by its name, wherever it is."""
    secret = folder / "pull-secret.json"
    secret.write_text('{"auths": {}}')
    rendered = hcp(
        *("create", "cluster", "kubevirt", "--name", CLUSTER, "--pull-secret", str(secret), "--render"),
        *("--render-sensitive", *SMALL_VM, "--node-pool-replicas", str(nodes), "--etcd-storage-size", "1Gi"),
        *("--control-plane-availability-policy", "SingleReplica", "--kubeconfig", str(management.kubeconfig)),
        *("--infra-namespace", VMS, "--infra-kubeconfig-file", str(infra)),
    )
    objects = [one for one in yaml.safe_load_all(rendered.stdout) if one]
    for made in objects:
        for service in made["spec"]["services"] if made["kind"] == "HostedCluster" else ():
            if service["service"] == "APIServer":
                balancer = {"type": "LoadBalancer", "loadBalancer": {"hostname": HOST}}
                service["servicePublishingStrategy"] = balancer
    management.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}})
    management.apply(*objects)


def api_address(management: Cluster) -> str:
    """Where the name has to lead."""

    def found() -> str:
        ingress = management.get("service", "kube-apiserver", "-n", f"{NS}-{CLUSTER}")["status"]["loadBalancer"]
        return str(ingress["ingress"][0]["ip"])

    return str(eventually_sync(found, "an address for the API", 300))


class Name:
    """The API's name: for machines, for the operator, and for commands that are run with it."""

    def __init__(self, infra: Cluster, folder: Path) -> None:
        self._infra = infra
        self._hosts = folder / "hosts"
        # By cluster: what its resolver was told without the name.
        self._corefiles: dict[str, str] = {}

    def lead_to(self, management: Cluster) -> None:
        """To the API server that this cluster runs."""
        address = api_address(management)
        self._hosts.write_text(f"{Path('/etc/hosts').read_text()}\n{address} {HOST}\n")
        for cluster in (management, self._infra):
            self._tell(cluster, address)

    def _tell(self, cluster: Cluster, address: str) -> None:
        if cluster.name not in self._corefiles:
            found = cluster.get("configmap", "coredns", "-n", "kube-system")
            self._corefiles[cluster.name] = str(found["data"]["Corefile"])
        # Short-lived: no resolver on the way keeps what it was.
        zone = f"outlives.test:53 {{\n    hosts {{\n        {address} {HOST}\n        ttl 5\n    }}\n}}\n"
        body = {"data": {"Corefile": self._corefiles[cluster.name] + zone}}
        cluster.kubectl("patch", "configmap", "coredns", "-n", "kube-system", "-p", yaml.safe_dump(body))
        cluster.kubectl("delete", "pods", "-n", "kube-system", "-l", "k8s-app=kube-dns", "--grace-period=1")

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """`hcp`, in a mount namespace of its own whose /etc/hosts knows the name; follows what `lead_to` writes."""
        script = 'mount --bind "$0" /etc/hosts && exec "$@"'
        command = ["unshare", "--mount", "sh", "-c", script, str(self._hosts), str(HCP), *words]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(os.environ)
        )

    def run(self, *words: str) -> str:
        process = self.begin(*words)
        said, _ = process.communicate(timeout=1500)
        assert process.returncode == 0, said
        return said


class Web:
    """Asks a web server for its page, as a visitor would."""

    def __init__(self, address: str, port: int) -> None:
        self._where = (address, port)

    async def once(self) -> Answer:
        began = time.monotonic()
        error = ""
        try:
            async with asyncio.timeout(2.0):
                reader, writer = await asyncio.open_connection(*self._where)
                try:
                    writer.write(b"GET /hostname HTTP/1.0\r\n\r\n")
                    status = await reader.readline()
                    error = "" if b" 200 " in status else f"answered {status[:40]!r}"
                finally:
                    writer.transport.abort()
        except TimeoutError:
            error = "no answer in time"
        except OSError as refused:
            error = type(refused).__name__
        return Answer(began, time.monotonic() - began, error)


def machines(infra: Cluster) -> dict[str, tuple[Any, ...]]:
    """By name: the VM and its instance, which are others after a restart."""
    vms = {one["metadata"]["name"]: one for one in infra.get("virtualmachines", "-n", VMS)["items"]}
    running = {one["metadata"]["name"]: one for one in infra.get("virtualmachineinstances", "-n", VMS)["items"]}
    return {
        name: (one["metadata"]["uid"], one["metadata"]["generation"], running[name]["metadata"]["uid"])
        for name, one in vms.items()
    }
