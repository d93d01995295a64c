"""A management cluster without nodes: a real API server, the controllers that clean up, a real registry with releases.

What nodes would do is done by hand here: load balancer addresses, and the processes of a hosted control plane, started
with the very command lines and files that the operator put into the cluster.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import hashlib
import json
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support import crds as crds_support
from tests.support.api_server import START_SECONDS, STARTS, ApiServer, free_port, local_opener
from tests.support.definitions import CLUSTER_API, open_crd, real
from tests.support.registry import Registry, push

from hcp import pki, release
from hcp.kube import Client
from hcp.kube import resources as k
from hcp.kube.errors import NotFound
from hcp.kube.transport import Transport
from hcp.oci.writer import ImageConfig, Layer, write_image

Object = dict[str, Any]
ROOT = Path(__file__).parents[2]
COMPONENTS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "konnectivity-server",
    "konnectivity-agent",
    "coredns",
    "kube-proxy",
    "flannel",
    "haproxy",
)
PRIORITIES = ("hypershift-control-plane", "hypershift-api-critical", "hypershift-etcd")
# What a hosted namespace may hold, by kind.
KINDS = (
    k.SECRETS,
    k.CONFIGMAPS,
    k.SERVICES,
    k.DEPLOYMENTS,
    k.STATEFULSETS,
    k.PDBS,
    k.NETWORKPOLICIES,
    k.ROLEBINDINGS,
    k.HOSTEDCONTROLPLANES,
    k.ROUTES,
    k.CAPI_CLUSTERS,
    k.KUBEVIRTCLUSTERS,
)


async def prepare(client: Client) -> None:
    """Definitions, priorities, a storage class and the operator's namespace."""
    extra = [*real(k.ROUTES, *CLUSTER_API), open_crd(k.INGRESS_CONFIGS), open_crd(k.IMAGE_CONFIGS)]
    from hcp.api import generate

    await crds_support.install(client, [*generate.crds(), *extra])
    for name in PRIORITIES:
        await client.apply(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": 1000,
            }
        )
    for name in ("hypershift", "clusters", "openshift-config"):
        await client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    ingress = {"apiVersion": "config.openshift.io/v1", "kind": "Ingress", "metadata": {"name": "cluster"}}
    await client.apply({**ingress, "spec": {"domain": "apps.example.test"}})


@contextmanager
def management_server(directory: Path, bin_dir: Path, *flags: str) -> Iterator[ApiServer]:
    """An API server with the controllers that deletion needs: a management cluster without nodes."""
    made = ApiServer(directory, bin_dir)
    controllers = None
    try:
        made.start_etcd()
        made.start_api(*flags)
        controllers = Controllers(made)
        yield made
    finally:
        if controllers is not None:
            controllers.stop()
        made.stop()


class Controllers:
    """kube-controller-manager with the two controllers that deletion needs, and others if asked for."""

    def __init__(self, server: ApiServer, *others: str) -> None:
        log = (server.directory / "kcm.log").open("ab")
        self._process = subprocess.Popen(
            [
                server.bin_dir / "kube-controller-manager",
                f"--kubeconfig={server.kubeconfig}",
                f"--controllers={','.join(('namespace-controller', 'garbage-collector-controller', *others))}",
                "--leader-elect=false",
                "--secure-port=0",
                "--concurrent-namespace-syncs=4",
            ],
            stdout=log,
            stderr=log,
        )
        log.close()

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


async def push_release(
    registry: Registry, directory: Path, tag: str, components: tuple[str, ...] = COMPONENTS, **files: str
) -> str:
    """A release that names images which are never pulled here; `files` by the name of their constant."""
    digest = hashlib.sha256(tag.encode()).hexdigest()
    tags = [
        {"name": c, "from": {"kind": "DockerImage", "name": f"{registry.host}/hcp/{c}@sha256:{digest}"}}
        for c in components
    ]
    references = {"kind": "ImageStream", "metadata": {"name": tag}, "spec": {"tags": tags}}
    layer = Layer()
    layer.file(release.IMAGE_REFERENCES, json.dumps(references))
    for name, text in files.items():
        layer.file(getattr(release, name), text)
    layout = directory / f"release-{tag}-{len(components)}-{len(files)}"
    write_image(layout, "release", [layer], ImageConfig())
    repository = "hcp/release" if components == COMPONENTS else "hcp/incomplete"
    await push(registry, layout, repository, tag)
    return f"{registry.host}/{repository}:{tag}"


async def create(client: Client, name: str, image: str, registry: Registry, **spec: Any) -> Object:
    """A HostedCluster with its pull secret and trust bundle, as a person would make them."""
    auths = json.dumps({"auths": {"unused.example": {"auth": "YTpi"}}})
    await client.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": f"{name}-pull-secret", "namespace": "clusters"},
            "stringData": {".dockerconfigjson": auths},
        }
    )
    await client.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{name}-trust", "namespace": "clusters"},
            "data": {"ca-bundle.crt": registry.ca_pem.decode()},
        }
    )
    cluster = crds_support.rendered_cluster("clusters", name)
    cluster["spec"] |= {
        "release": {"image": image},
        "pullSecret": {"name": f"{name}-pull-secret"},
        "additionalTrustBundle": {"name": f"{name}-trust"},
        "controllerAvailabilityPolicy": "SingleReplica",
    } | spec
    for field in ("infraID", "clusterID", "sshKey", "secretEncryption"):
        if field not in spec:
            cluster["spec"].pop(field, None)
    return await client.create(cluster)


# Of documentation: nobody answers there.
BALANCER_SIX = "2001:db8::88"


async def give_address(client: Client, ns: str, address: str) -> None:
    """What a load balancer does."""
    for name in ("kube-apiserver",):
        service = await client.get_or_none(k.SERVICES, name, ns)
        if service and service["spec"].get("type") == "LoadBalancer" and not service["status"].get("loadBalancer"):
            # A load balancer of both families has an address of each.
            both = [address, *([BALANCER_SIX] if service["spec"].get("ipFamilyPolicy") else [])]
            body = {"status": {"loadBalancer": {"ingress": [{"ip": one} for one in both]}}}
            await client.patch(k.SERVICES, name, ns, body, subresource="status")


async def report_ready(
    client: Client, ns: str, *, only: str = "", runs: Callable[[Object], bool] = lambda _live: True, sets: bool = True
) -> None:
    """What controllers say when all pods run; `runs` says of a Deployment whether they do, `sets` of StatefulSets."""
    for live in await client.list(k.DEPLOYMENTS, ns):
        if only not in ("", live["metadata"]["name"]) or not runs(live):
            continue
        wanted, generation = live["spec"]["replicas"], live["metadata"]["generation"]
        now = "2026-01-01T00:00:00Z"
        status = {
            "observedGeneration": generation,
            "replicas": wanted,
            "updatedReplicas": wanted,
            "readyReplicas": wanted,
            "availableReplicas": wanted,
            "unavailableReplicas": 0,
            "conditions": [
                {"type": "Available", "status": "True", "reason": "x", "lastTransitionTime": now, "lastUpdateTime": now}
            ],
        }
        if (live.get("status") or {}).get("observedGeneration") != generation:
            await client.patch(k.DEPLOYMENTS, live["metadata"]["name"], ns, {"status": status}, subresource="status")
    for live in await client.list(k.STATEFULSETS, ns) if sets else ():
        wanted = live["spec"]["replicas"]
        if ((live.get("status") or {}).get("readyReplicas") or 0) != wanted:
            fewer = {} if wanted else dict.fromkeys(("updatedReplicas", "availableReplicas"), 0)
            body = {"status": {"replicas": wanted, "readyReplicas": wanted, "observedGeneration": 1, **fewer}}
            await client.patch(k.STATEFULSETS, live["metadata"]["name"], ns, body, subresource="status")


async def objects(client: Client, ns: str) -> dict[tuple[str, str], Object]:
    """Everything the operator made in a hosted namespace."""
    found: dict[tuple[str, str], Object] = {}
    for resource in KINDS:
        for live in await client.list(resource, ns):
            name = live["metadata"]["name"]
            if name not in ("kube-root-ca.crt",):
                found[(resource.kind, name)] = live
    return found


async def condition(client: Client, name: str, kind: str) -> Object:
    try:
        live = await client.get(k.HOSTEDCLUSTERS, name, "clusters")
    except NotFound:
        return {}
    conditions = (live.get("status") or {}).get("conditions") or []
    return next((c for c in conditions if c["type"] == kind), {})


def open_sessions() -> int:
    """Connection pools of this process to API servers."""
    return sum(isinstance(o, Transport) and o.connected for o in gc.get_objects())


class OperatorProcess:
    """The operator as a process of its own, which can be killed at any moment."""

    def __init__(self, server: ApiServer, *, die_after_writes: int = 0) -> None:
        self._log = (server.directory / "operator.log").open("ab")
        self._process = subprocess.Popen(
            [
                sys.executable,
                str(Path(__file__).with_name("operator_driver.py")),
                str(server.kubeconfig),
                str(die_after_writes),
            ],
            stdout=self._log,
            stderr=self._log,
            cwd=ROOT,
        )

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._log.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None


class HostedProcesses:
    """etcd and kube-apiserver of a hosted cluster, started from what lies in its namespace."""

    def __init__(self, directory: Path, bin_dir: Path) -> None:
        self._directory = directory
        self._bin_dir = bin_dir
        self._processes: list[subprocess.Popen[bytes]] = []

    async def start(self, client: Client, ns: str, port: int) -> None:
        """Returns when both answer."""
        etcd = (await client.get(k.STATEFULSETS, "etcd", ns))["spec"]["template"]["spec"]
        api = (await client.get(k.DEPLOYMENTS, "kube-apiserver", ns))["spec"]["template"]["spec"]
        etcd_port, peer_port, metrics_port = free_port(), free_port(), free_port()
        arguments = await self._materialize(client, ns, etcd)
        changes = {
            "$(POD_NAME)": "etcd-0",
            "https://$(POD_IP):2379,https://localhost:2379": f"https://127.0.0.1:{etcd_port}",
            "$(POD_IP):2380": f"127.0.0.1:{peer_port}",
            "$(POD_IP):2382": f"127.0.0.1:{metrics_port}",
        }
        await self._begin(_changed(arguments, changes), f"http://127.0.0.1:{metrics_port}/readyz")
        arguments = await self._materialize(client, ns, api)
        changes = {"--secure-port=6443": f"--secure-port={port}", "etcd-client:2379": f"127.0.0.1:{etcd_port}"}
        await self._begin(_changed(arguments, changes), f"https://127.0.0.1:{port}/readyz")

    async def _begin(self, command: list[str], ready: str) -> subprocess.Popen[bytes]:
        """Until it answers; one that ends by itself is started again, as a kubelet would."""
        for left in reversed(range(STARTS)):
            self._run(command)
            if await answers(ready, self._processes[-1]):
                return self._processes[-1]
            assert left, f"{command!r} ended"
        raise AssertionError

    def stop(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
        self._processes.clear()

    async def _materialize(self, client: Client, ns: str, pod: Object) -> list[str]:
        """Write the volumes of the first container below our directory and point its arguments there."""
        container = pod["containers"][0]
        volumes = {v["name"]: v for v in pod["volumes"]}
        paths: dict[str, str] = {}
        for mount in container["volumeMounts"]:
            target = self._directory / container["name"] / mount["name"]
            target.mkdir(parents=True, exist_ok=True)
            paths[mount["mountPath"]] = str(target)
            volume = volumes.get(mount["name"], {})
            if "secret" in volume:
                live = await client.get(k.SECRETS, volume["secret"]["secretName"], ns)
                for key, value in (live.get("data") or {}).items():
                    (target / key).write_bytes(base64.b64decode(value))
            elif "configMap" in volume:
                live = await client.get(k.CONFIGMAPS, volume["configMap"]["name"], ns)
                for key, value in live["data"].items():
                    (target / key).write_text(value)
        ordered = dict(sorted(paths.items(), key=lambda item: -len(item[0])))
        return _changed(container["command"], ordered)

    def _run(self, command: list[str]) -> None:
        name = command[0]
        with (self._directory / f"{name}.log").open("ab") as log:
            self._processes.append(
                subprocess.Popen([self._bin_dir / name, *command[1:]], stdout=log, stderr=log, cwd=self._directory)
            )


async def answers(url: str, process: subprocess.Popen[bytes]) -> bool:
    """Whether it says that it is ready, as soon as it does; not when it ended."""
    opener = local_opener(ssl._create_unverified_context())  # a kubelet's probe trusts anybody too

    def ask() -> bool:
        try:
            with opener.open(url, timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    async with asyncio.timeout(START_SECONDS):
        while not await asyncio.to_thread(ask):
            if process.poll() is not None:
                return False
            await asyncio.sleep(0.1)
    return True


def _changed(arguments: list[str], changes: dict[str, str]) -> list[str]:
    result = []
    for argument in arguments:
        changed = argument
        for old, new in changes.items():
            if old in changed:
                changed = changed.replace(old, new)
                if old.startswith("/"):
                    break
        result.append(changed)
    return result


def verify_certificates(found: dict[tuple[str, str], Object]) -> None:
    """Every leaf fits its CA, and the kubeconfigs carry the client certificate that is there."""
    from hcp.controlplane import certs
    from hcp.controlplane.params import Params

    sample = Params("x", "clusters", "x", "x", "x")
    for spec in certs.leaves(sample):
        live = found[("Secret", spec.name)]
        pair = certs.leaf_pair(spec, live)
        ca = certs.authority_pair(found[("Secret", spec.authority)])
        assert ca is not None
        assert base64.b64decode(live["data"]["ca.crt"]) == ca.cert_pem, spec.name
        leaf = pki.Leaf(spec.leaf.cn, spec.leaf.orgs, usage=spec.leaf.usage)
        if spec.leaf.usage == "client":
            assert not pki.needs_renewal(pair, ca.cert_pem, leaf), spec.name
