"""What the tests of hosted clusters share: a kubectl inside, nodes that are ready, a web workload."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from tests.support.e2e.local_tools import Cluster, hcp
from tests.support.eventually import eventually_sync

# `KEEP=1`: the clusters that are there are used and left; for whoever works on a test that takes an hour to get to.
KEEP = bool(os.environ.get("KEEP"))
# `ON=name`: this embedded cluster instead of one for each file. It is left; what a file made on it goes.
ON = os.environ.get("ON", "")
SMALL_VM = ("--memory", "2Gi", "--cores", "1", "--root-volume-size", "16")
# From busybox in an image that every node already has: a pull takes minutes on an emulated CPU.
_SERVER = "mkdir -p /tmp/www && hostname > /tmp/www/hostname && exec busybox httpd -f -vv -p 8080 -h /tmp/www"


@contextlib.contextmanager
def with_one_node(name: str, cluster: str, folder: Path, release: str = "") -> Iterator[Cluster]:
    """An embedded cluster with the operator and one hosted cluster that has one node; all of it goes away again.

    `release` is the component of another release than the default one.
    """
    with with_nodes(1, name, cluster, folder, release) as made:
        yield made


@contextlib.contextmanager
def with_nodes(
    count: int, name: str, cluster: str, folder: Path, release: str = "", more: tuple[str, ...] = ()
) -> Iterator[Cluster]:
    """The same with this many nodes, and with `more` flags of `hcp create cluster`."""
    with with_operator(name, folder) as made:
        try:
            if not kept(made, cluster):
                chosen = ("--release-image", pushed(made, release)) if release else ()
                create(made, cluster, count, *chosen, *more, "--wait", "--timeout", "40m")
            yield made
        finally:
            leave(made, cluster)


@contextlib.contextmanager
def with_operator(name: str, folder: Path, *more: str) -> Iterator[Cluster]:
    """An embedded cluster with KubeVirt and the operator, made with `more` flags; it goes away again, unless it is to
    be kept or is there for several files."""
    hcp("local", "up", "--name", ON or name, "--profile", "kubevirt", *more)
    try:
        made = Cluster(ON or name, folder)
        hcp("install", "--kubeconfig", str(made.kubeconfig), "--wait-until-available")
        yield made
    finally:
        if not (KEEP or ON):
            hcp("local", "down", "--name", name, "--purge")


@contextlib.contextmanager
def with_control_planes(name: str, folder: Path, *more: str) -> Iterator[Cluster]:
    """An embedded cluster without KubeVirt, made with `more` flags, for control planes without machines."""
    hcp("local", "up", "--name", ON or name, "--profile", "cluster", *more)
    try:
        hcp("local", "push", "--name", ON or name, "image-hcp", "release-1.36")
        made = Cluster(ON or name, folder)
        hcp("install", "--kubeconfig", str(made.kubeconfig), "--wait-until-available")
        made.kubectl("create", "namespace", "clusters", check=False)
        yield made
    finally:
        if not (KEEP or ON):
            hcp("local", "down", "--name", name, "--purge")


def leave(management: Cluster, cluster: str) -> None:
    """A hosted cluster goes where its management cluster stays for the next file."""
    if ON and not KEEP and cluster in _hosted(management):
        hcp("destroy", "cluster", "kubevirt", "--name", cluster, "--kubeconfig", str(management.kubeconfig))


def kept(management: Cluster, cluster: str) -> bool:
    """Whether a run before this one left the hosted cluster to be used."""
    return KEEP and cluster in _hosted(management)


def _hosted(management: Cluster) -> set[str]:
    names = management.kubectl("get", "hostedclusters", "-n", "clusters", "-o", "name").split()
    return {name.rpartition("/")[2] for name in names}


def pushed(management: Cluster, release: str) -> str:
    """The image of this release in the cluster's own registry; what of it is missing is compiled first."""
    lines = hcp("local", "push", "--name", management.name, release, seconds=5400).stdout.splitlines()
    return next(line.split()[1] for line in lines if line.startswith(f"{release} "))


def create(management: Cluster, cluster: str, count: int, *more: str) -> None:
    """A hosted cluster of small machines."""
    secret = management.kubeconfig.with_name("pull-secret.json")
    secret.write_text('{"auths": {}}')
    access = ("--kubeconfig", str(management.kubeconfig), "--pull-secret", str(secret))
    hcp(
        *("create", "cluster", "kubevirt", "--name", cluster, *access, *SMALL_VM, "--node-pool-replicas", str(count)),
        *("--control-plane-availability-policy", "SingleReplica", *more),
    )


class Guest:
    """A hosted cluster seen with its own kubeconfig."""

    def __init__(self, management: Cluster, kubeconfig: Path) -> None:
        self.management = management
        self.kubeconfig = kubeconfig

    @classmethod
    def of(cls, management: Cluster, cluster: str) -> Guest:
        """With the kubeconfig that a user gets.

        Where the API is published by a Route, this machine's resolver does not know its name: kubectl is told the
        router's address beside it.
        """
        path = management.kubeconfig.with_name("guest.kubeconfig")
        text = hcp("create", "kubeconfig", "--name", cluster, "--kubeconfig", str(management.kubeconfig)).stdout
        routed = _published(management, cluster) == "Route"
        path.write_text(_by_address(text, router_address(management)) if routed else text)
        return cls(management, path)

    def kubectl(self, *words: str, stdin: str | None = None, seconds: float = 120) -> str:
        done = subprocess.run(
            [str(self.management.kubectl_binary), f"--kubeconfig={self.kubeconfig}", *words],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )
        if done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def get(self, *words: str) -> Any:
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    def ready_nodes(self) -> list[str]:
        return [node["metadata"]["name"] for node in self.get("nodes")["items"] if _ready(node)]

    def load_balancer(self, service: str) -> str:
        ingress = self.get("service", service)["status"]["loadBalancer"].get("ingress") or []
        address: str = ingress[0]["ip"] if ingress else ""
        return address

    def run_web(self, name: str, *, replicas: int) -> None:
        """A web server that says its pod's name, spread over nodes, behind a Service of type LoadBalancer."""
        labels = {"app": name}
        spread = {
            "topologyKey": "kubernetes.io/hostname",
            "maxSkew": 1,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": labels},
        }
        container = {
            "name": "web",
            "image": self.image(),
            "command": ["sh", "-c", _SERVER],
            "readinessProbe": {"httpGet": {"path": "/hostname", "port": 8080}, "periodSeconds": 2, "timeoutSeconds": 5},
        }
        pod = {"containers": [container], "topologySpreadConstraints": [spread]}
        template = {"metadata": {"labels": labels}, "spec": pod}
        objects = [
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": name},
                "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
            },
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": name},
                "spec": {"type": "LoadBalancer", "selector": labels, "ports": [{"port": 8080}]},
            },
        ]
        self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
        eventually_sync(lambda: self._available(name) == replicas, f"{replicas} pods of {name} are ready", 600)

    def stop_kubelet(self, node: str, *, forever: bool = False) -> None:
        """As a crash that nothing restarts would; ``forever``: it does not begin with the machine either."""
        line = "systemctl disable kubelet; systemctl stop kubelet" if forever else "systemctl stop kubelet"
        with self.as_root_on(node, line):
            eventually_sync(lambda: node not in self.ready_nodes(), f"node {node} is not ready any more", 300)

    @contextlib.contextmanager
    def as_root_on(self, node: str, line: str, *, inside: bool = False) -> Iterator[str]:
        """A pod that runs this line of shell on the node itself, outside its container unless it is to stay `inside`;
        gone afterwards. Gives its name, as `pod/…`."""
        shell = ["busybox", "sh", "-c", line]
        outside = ["busybox", "nsenter", "-t", "1", "-m", "-n", "-p", "--", "sh", "-c", line]
        container = {
            "name": "root",
            "image": self.image(),
            "command": shell if inside else outside,
            "securityContext": {"privileged": True},
        }
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"generateName": "as-root-", "namespace": "kube-system"},
            "spec": {
                "nodeName": node,
                "restartPolicy": "Never",
                "tolerations": [{"operator": "Exists"}],
                "hostPID": True,
                "containers": [container],
            },
        }
        name = self.kubectl("create", "-o", "name", "-f", "-", stdin=yaml.safe_dump(pod)).strip()
        try:
            yield name
        finally:
            # By force: the node may be unable to end it, and a kubelet that begins anew must not find it.
            self.kubectl("delete", name, "-n", "kube-system", "--force", "--grace-period=0")

    def _available(self, name: str) -> int:
        found: int = self.get("deployment", name)["status"].get("availableReplicas", 0)
        return found

    def image(self) -> str:
        """One that every node already has."""
        found = self.get("daemonset", "kube-proxy", "-n", "kube-system")
        image: str = found["spec"]["template"]["spec"]["containers"][0]["image"]
        return image


def _published(management: Cluster, cluster: str) -> str:
    """How its API is."""
    services = management.get("hostedcluster", cluster, "-n", "clusters")["spec"]["services"]
    return str(next(one["servicePublishingStrategy"]["type"] for one in services if one["service"] == "APIServer"))


def _by_address(kubeconfig: str, address: str) -> str:
    """The same kubeconfig for who cannot resolve the server's name; the certificate is still asked for that name."""
    config = yaml.safe_load(kubeconfig)
    for entry in config["clusters"]:
        server = urlsplit(entry["cluster"]["server"])
        host = f"[{address}]" if ":" in address else address
        entry["cluster"] |= {"server": f"https://{host}:{server.port or 443}", "tls-server-name": server.hostname}
    return str(yaml.safe_dump(config))


def router_address(management: Cluster) -> str:
    """Where everything is that Routes publish."""

    def address() -> str:
        found = management.get("service", "router-default", "-n", "openshift-ingress")["status"]["loadBalancer"]
        return str(found["ingress"][0]["ip"])

    return str(eventually_sync(address, "the router has an address", 120))


def _ready(node: dict[str, Any]) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", []))
