"""The world of `fleet.py`: two real API servers, a registry with a release, the players, and operator processes."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.fleet_front import NAMESPACE, name_of
from tests.support import crds as crds_support
from tests.support import registry as registries
from tests.support.api_server import ApiServer, binaries, free_port
from tests.support.definitions import CLUSTER_API, VIRTUALIZATION, open_crd, real
from tests.support.management import COMPONENTS, PRIORITIES, ROOT, push_release

from hcp import payload
from hcp.api import generate
from hcp.guest.csr import BOOTSTRAP_USER
from hcp.kube import Client, load_config
from hcp.kube import resources as k

Object = dict[str, Any]
DISK = "r.example.test/disk@sha256:" + "d" * 64
FRONT_PORT = 6443
WRITES = ("create", "update", "patch", "delete")


def ask(port: int, path: str = "/") -> str:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
        f"http://127.0.0.1:{port}{path}", timeout=30
    ) as answer:
        return str(answer.read().decode())


class Process:
    """A program of ours with its log, which ends with the world."""

    def __init__(self, log: Path, *command: str) -> None:
        self._log = log.open("ab")
        self.began = time.monotonic()
        self.popen = subprocess.Popen(
            [sys.executable, *command], stdout=self._log, stderr=self._log, cwd=ROOT, env={**os.environ}
        )

    @property
    def pid(self) -> int:
        return self.popen.pid

    def kill(self) -> None:
        self.popen.kill()
        self.popen.wait()
        self._log.close()

    def memory(self) -> tuple[float, float]:
        """MiB held now, and at most so far."""
        if self.popen.poll() is not None:
            raise SystemExit(f"{self._log.name}: it ended")
        fields = {}
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            fields[line.partition(":")[0]] = line.split()[1] if len(line.split()) > 1 else ""
        return int(fields["VmRSS"]) / 1024, int(fields["VmHWM"]) / 1024

    def cpu(self) -> float:
        return cpu_of(self.pid)


def cpu_of(pid: int) -> float:
    """Seconds of processor time."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class Operator(Process):
    """`hcp operator run`, as a developer starts it beside a cluster."""

    def __init__(self, folder: Path, kubeconfig: Path, registry: str, number: int, *more: str) -> None:
        self.port = free_port()
        log = folder / f"operator-{number}.log"
        super().__init__(
            log,
            *("-m", "hcp.cli.main", "operator", "run", "--kubeconfig", str(kubeconfig)),
            *("--metrics-port", str(self.port), "--internal-registries", f"localhost,127.0.0.1:1,{registry}"),
            *more,
        )

    def metrics(self) -> dict[str, float]:
        try:
            text = ask(self.port, "/metrics")
        except OSError:
            if self.popen.poll() is not None:
                raise SystemExit("the operator ended: see its log") from None
            return {}
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}

    def writes(self) -> dict[str, float]:
        """By verb and kind, in the management cluster; the lease and events apart."""
        found = {n: v for n, v in self.metrics().items() if n.startswith("hcp_api_requests_total{")}
        apart = ('resource="leases', 'resource="events')
        made = {n: v for n, v in found.items() if any(f'verb="{verb}"' in n for verb in WRITES)}
        return {n: v for n, v in made.items() if not any(one in n for one in apart)}

    def shards(self) -> set[int]:
        """Those whose caches are filled and on which it works."""
        start = 'hcp_shard_held{shard="'
        return {int(n.removeprefix(start).rstrip('"}')) for n in self.metrics() if n.startswith(start)}

    def passes(self, controller: str) -> float:
        start = f'hcp_reconcile_total{{controller="{controller}"'
        return sum(value for name, value in self.metrics().items() if name.startswith(start))


class Team:
    """Operator processes that share a fleet, as if they were one."""

    def __init__(self, operators: list[Operator]) -> None:
        self.all = operators

    def writes(self) -> dict[str, float]:
        return _sum(one.writes() for one in self.all)

    def metrics(self) -> dict[str, float]:
        return _sum(one.metrics() for one in self.all)

    def memory(self) -> tuple[float, float]:
        """Of the largest one: each has a limit of its own."""
        return max(one.memory()[0] for one in self.all), max(one.memory()[1] for one in self.all)

    def cpu(self) -> float:
        return sum(one.cpu() for one in self.all)

    def passes(self, controller: str) -> float:
        return sum(one.passes(controller) for one in self.all)

    def told(self) -> str:
        """Each one's memory and processor time."""
        return "; ".join(f"{one.memory()[0]:.0f} MiB, {one.cpu():.0f} s" for one in self.all)


def _sum(metrics: Iterable[Mapping[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in metrics:
        for name, value in one.items():
            found[name] = found.get(name, 0) + value
    return found


class World:
    """Everything that runs; a context manager."""

    def __init__(self, clusters: int, nodes: int, server_flags: tuple[str, ...] = ()) -> None:
        self.clusters, self.nodes = clusters, nodes
        self._flags = server_flags
        self.folder = Path(tempfile.mkdtemp(prefix="fleet-"))
        self.operators: list[Operator] = []
        self._begun = 0
        self._others: list[Process] = []
        self._stops: list[Any] = []

    async def __aenter__(self) -> World:
        try:
            await self._start()
        except BaseException:
            self._end()
            raise
        return self

    async def _start(self) -> None:
        links = self.folder / "bin"
        links.mkdir()
        bin_dir = binaries(links)
        self.management = self._server("management", bin_dir, "--service-cluster-ip-range=10.250.0.0/16", *self._flags)
        # Addresses of Services inside guests are given by the operator: each guest has a network of its own in here.
        self.guests = self._server(
            "guests", bin_dir, "--service-cluster-ip-range=172.16.0.0/12", "--allow-privileged=true", guests=True
        )
        folder = self.folder / "registry"
        folder.mkdir()
        self.registry, process = registries.start(folder, passwords=False)
        self._stops.append(process.kill)
        self.client = Client(load_config(self.management.kubeconfig))
        await self._prepare()
        self.image = await self._release()
        configs = ("--management", str(self.management.kubeconfig), "--guests", str(self.guests.kubeconfig))
        self.stats_port = free_port()
        front = ("bench/fleet_front.py", *configs, "--port", str(FRONT_PORT), "--stats-port", str(self.stats_port))
        self.front = self._begin("front", *front)
        self.player = self._begin("player", "bench/fleet_player.py", *configs, "--clusters", str(self.clusters))
        while "ready" not in (self.folder / "player.log").read_text():
            if self.player.popen.poll() is not None or self.front.popen.poll() is not None:
                raise SystemExit(f"a player ended: see {self.folder}")
            await asyncio.sleep(0.2)

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()
        self._end()

    def _end(self) -> None:
        for process in (*self.operators, *self._others):
            process.kill()
        for stop in reversed(self._stops):
            stop()

    def _begin(self, name: str, *command: str) -> Process:
        made = Process(self.folder / f"{name}.log", *command)
        self._others.append(made)
        return made

    def operator(self, *more: str) -> Operator:
        """A further operator process."""
        self._begun += 1
        where = (self.folder, self.management.kubeconfig, self.registry.host, self._begun)
        self.operators.append(Operator(*where, *more))
        return self.operators[-1]

    def guest_writes(self) -> dict[str, int]:
        return dict(json.loads(ask(self.stats_port))["writes"])

    def stats(self) -> Object:
        return dict(json.loads(ask(self.stats_port)))

    def server_cpu(self) -> float:
        servers = (self.management, self.guests)
        return sum(cpu_of(p.pid) for s in servers for p in (s._etcd, s._api) if p is not None)

    def _server(self, name: str, bin_dir: Path, *flags: str, guests: bool = False) -> ApiServer:
        folder = self.folder / name
        folder.mkdir()
        made = ApiServer(folder, bin_dir)
        if guests:
            lines = [f'bootstrap,{BOOTSTRAP_USER},3,"system:masters"']
            for number in range(self.clusters):
                for index in range(self.nodes + 2):
                    node = f"{name_of(number)}-{index}"
                    lines.append(f'node-{node},system:node:{node},n-{node},"system:masters"')
            with (folder / "tokens.csv").open("a") as file:
                file.write("\n".join(lines) + "\n")
        self._stops.append(made.stop)
        made.start_etcd()
        made.start_api("--etcd-compaction-interval=2m", *flags)
        return made

    async def _prepare(self) -> None:
        """As an installed management cluster is: kinds, namespaces, nodes, a class, a bootstrap server that runs."""
        extra = [*_definitions(k.ROUTES, *CLUSTER_API, *VIRTUALIZATION)]
        extra += [open_crd(k.INGRESS_CONFIGS), open_crd(k.IMAGE_CONFIGS)]
        await crds_support.install(self.client, [*generate.crds(), *extra])
        for name in PRIORITIES:
            priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1000}
            await self.client.apply({**priority, "metadata": {"name": name}})
        for name in ("hypershift", NAMESPACE, "openshift-config"):
            await self.client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for obj in _installed(self.registry.ca_pem.decode()):
            await self.client.apply(obj)
        ready = {"type": "Available", "status": "True", "reason": "x", "message": ""}
        status = {"observedGeneration": 1, "replicas": 1, "readyReplicas": 1, "updatedReplicas": 1}
        status |= {"availableReplicas": 1, "conditions": [ready]}  # type: ignore[dict-item]
        where = (k.DEPLOYMENTS, "ignition-server", "hypershift")
        await self.client.patch(*where, {"status": status}, subresource="status")
        for number in range(40):
            name = f"infra-{number}"
            await self.client.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
            size = {"cpu": "64", "memory": "256Gi", "pods": "500"}
            told = {"allocatable": size, "capacity": size, "conditions": [{"type": "Ready", "status": "True"}]}
            await self.client.patch(k.NODES, name, None, {"status": told}, subresource="status")

    async def _release(self) -> str:
        stream = {"architectures": {"x86_64": {"images": {"kubevirt": {"digest-ref": DISK}}}}}
        boot = {"kind": "ConfigMap", "data": {"stream": json.dumps(stream)}}
        images = (*COMPONENTS, "pause")
        return await push_release(self.registry, self.folder, "1.36.3", images, BOOT_IMAGES=json.dumps(boot))

    def cluster(self, number: int) -> Object:
        made = crds_support.rendered_cluster(NAMESPACE, name_of(number))
        high, low = divmod(number, 256)
        networking = {**made["spec"]["networking"], "serviceNetwork": [{"cidr": f"172.{16 + high}.{low}.0/24"}]}
        made["spec"] |= {
            "release": {"image": self.image},
            "pullSecret": {"name": "pull"},
            "additionalTrustBundle": {"name": "trust"},
            "controllerAvailabilityPolicy": "SingleReplica",
            "networking": networking,
        }
        for field in ("infraID", "sshKey", "secretEncryption"):
            made["spec"].pop(field, None)
        return made

    def pool(self, number: int) -> Object:
        made = crds_support.rendered_pool(NAMESPACE, name_of(number))
        made["spec"] |= {"clusterName": name_of(number), "release": {"image": self.image}, "replicas": self.nodes}
        return made


def _definitions(*resources: k.Resource) -> list[Object]:
    """The real ones where they are in the cache; else kinds that take anything."""
    found = []
    for resource in resources:
        try:
            if not all(payload.find(one) for one in _sources()):
                raise LookupError
            found += real(resource)
        except LookupError:
            found.append(open_crd(resource))
    return found


def _sources() -> tuple[str, ...]:
    from tests.support.definitions import COMPONENTS

    return COMPONENTS


def _installed(trust: str) -> list[Object]:
    hyper = {"namespace": "hypershift", "name": "ignition-server"}
    pod = {"containers": [{"name": "server", "image": "none"}]}
    template = {"metadata": {"labels": {"app": "ignition-server"}}, "spec": pod}
    auths = json.dumps({"auths": {"unused.example": {"auth": "YTpi"}}})
    marked = {"storageclass.kubernetes.io/is-default-class": "true"}
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": hyper,
            "spec": {"selector": {"matchLabels": {"app": "ignition-server"}}, "template": template},
        },
        {
            "apiVersion": "route.openshift.io/v1",
            "kind": "Route",
            "metadata": hyper,
            "spec": {"host": "ignition.apps.example.test", "to": {"kind": "Service", "name": "ignition-server"}},
        },
        {
            "apiVersion": "config.openshift.io/v1",
            "kind": "Ingress",
            "metadata": {"name": "cluster"},
            "spec": {"domain": "apps.example.test"},
        },
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "standard", "annotations": marked},
            "provisioner": "example.test/none",
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "pull", "namespace": NAMESPACE},
            "stringData": {".dockerconfigjson": auths},
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "trust", "namespace": NAMESPACE},
            "data": {"ca-bundle.crt": trust},
        },
    ]
