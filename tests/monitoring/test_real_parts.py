"""Prometheus and those it asks themselves, started as their pods are, with objects of a real API server.

There is no node: Pods are objects that say where the processes of the test listen.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from tests.support.api_server import ApiServer, account_token, free_port
from tests.support.eventually import eventually
from tests.support.router import own_address
from tests.support.unit.controlplane import IMAGES, params

from hcp import payload
from hcp.guest.monitoring import kube_state_metrics, manifests, node_exporter, prometheus, web
from hcp.guest.monitoring.plan import METRICS_IMAGE, NAMESPACE, NEEDED, GuestMonitoring, Pair
from hcp.guest.objects import GuestParams
from hcp.kube import Client
from hcp.kube import resources as k
from hcp.pki import Leaf, issue_leaf, new_ca

Object = dict[str, Any]
PROGRAMS = {"prometheus": "prometheus", "promtool": "prometheus", "node_exporter": "node-exporter"}
PROGRAMS |= {"kube-state-metrics": "metrics-server", "metrics-server": "metrics-server"}
pytestmark = pytest.mark.timeout(1800)


class Place:
    """Everything a guest would be given, with its files in a folder and its processes here."""

    def __init__(self, folder: Path, server: ApiServer, admin: Client) -> None:
        self.folder, self.server, self.admin = folder, server, admin
        ca = new_ca("root-ca")
        pair = issue_leaf(ca, Leaf("prometheus-k8s", (), web.hosts(*manifests.NAMES), usage="both"))
        images = {**IMAGES, **dict.fromkeys((METRICS_IMAGE, *NEEDED), "r.test/one")}
        mine = Pair(pair.cert_pem, pair.key_pem)
        given = GuestMonitoring(ca.cert_pem, ca.cert_pem, mine, mine)
        self.params = GuestParams(params(), images, own_network=True, highly_available=False, monitoring=given)
        self.objects = manifests.objects(self.params)
        found = payload.ensure(sorted(set(PROGRAMS.values())))
        self.programs = {name: found[component] / "bin" / name for name, component in PROGRAMS.items()}
        self.ports = {"prometheus-k8s": free_port(), "kube-state-metrics": free_port(), "node-exporter": free_port()}
        self.own_port = free_port()
        self.started: dict[str, subprocess.Popen[bytes]] = {}

    def of(self, kind: str, name: str) -> Object:
        return next(o for o in self.objects if (o["kind"], o["metadata"]["name"]) == (kind, name))

    def lay_out(self) -> dict[str, str]:
        """Files where the words of the processes are then told to look, by the path they have in a pod."""
        paths = {
            web.TLS: self.folder / "tls",
            web.FOLDER: self.folder / "web",
            prometheus.FOLDER: self.folder / "config",
        }
        for path in paths.values():
            path.mkdir(exist_ok=True)
        for key, value in self.of("Secret", web.CERTIFICATE)["data"].items():
            (paths[web.TLS] / key).write_bytes(base64.b64decode(value))
        moves = {old: str(new) for old, new in paths.items()}
        for name, target in ((web.CONFIG, web.FOLDER), (prometheus.CONFIG, prometheus.FOLDER)):
            for key, value in self.of("ConfigMap", name)["data"].items():
                (paths[target] / key).write_text(changed(value, moves))
        return moves

    def start(self, kind: str, name: str, changes: dict[str, str], *more: str) -> None:
        command = self.of(kind, name)["spec"]["template"]["spec"]["containers"][0]["command"]
        words = [changed(word, changes) for word in command[1:]]
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen([self.programs[command[0]], *words, *more], stdout=log, stderr=log)
        self.started[name] = process

    def context(self, *, shown: bool) -> ssl.SSLContext:
        made = ssl.create_default_context(cafile=str(self.folder / "web" / "ca.crt"))
        if shown:
            made.load_cert_chain(self.folder / "tls" / "tls.crt", self.folder / "tls" / "tls.key")
        return made

    async def get(self, name: str, path: str, *, shown: bool = True) -> str:
        url = f"https://localhost:{self.ports[name]}{path}"
        async with aiohttp.ClientSession() as session, session.get(url, ssl=self.context(shown=shown)) as answer:
            return await answer.text()

    async def query(self, expression: str) -> list[Object]:
        path = f"/api/v1/query?query={expression}"
        try:
            found: list[Object] = json.loads(await self.get("prometheus-k8s", path))["data"]["result"]
        except (OSError, aiohttp.ClientError, ValueError):
            return []
        return found


def changed(text: str, moves: dict[str, str]) -> str:
    for old, new in moves.items():
        text = text.replace(old, new)
    return text


@pytest.fixture
async def place(tmp_path: Path, server: ApiServer, admin: Client) -> AsyncIterator[Place]:
    made = Place(tmp_path, server, admin)
    yield made
    for process in made.started.values():
        process.terminate()
        process.wait()


@pytest.fixture
def laid_out(place: Place) -> dict[str, str]:
    """Files are there; where those of a pod lie now."""
    return place.lay_out()


def test_promtool_finds_nothing_wrong(place: Place, laid_out: dict[str, str]) -> None:
    config = place.folder / "config"
    token = place.folder / "token"
    token.write_text("x")
    text = changed(
        (config / "prometheus.json").read_text(), {"/var/run/secrets/kubernetes.io/serviceaccount/token": str(token)}
    )
    text = changed(text, {"/var/run/secrets/kubernetes.io/serviceaccount/ca.crt": str(place.folder / "web" / "ca.crt")})
    (config / "prometheus.json").write_text(text)
    for words in (["rules", "rules.json"], ["config", "prometheus.json"]):
        command = [str(place.programs["promtool"]), "check", words[0], "--lint=all", "--lint-fatal", words[1]]
        done = subprocess.run(command, cwd=config, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


async def test_everything_that_is_there_is_found_and_asked(place: Place, laid_out: dict[str, str]) -> None:
    await _apply(place)
    kubeconfig = await _as_account(place, prometheus.NAME)
    moves = {**laid_out, f":{node_exporter.PORT}": f":{place.ports['node-exporter']}", node_exporter.ROOT: "/"}
    place.start("DaemonSet", "node-exporter", moves)
    states = {
        **laid_out,
        f"--port={kube_state_metrics.PORT}": f"--port={place.ports['kube-state-metrics']}",
        f"--telemetry-port={kube_state_metrics.OWN_PORT}": f"--telemetry-port={place.own_port}",
    }
    own = await _as_account(place, kube_state_metrics.NAME)
    place.start("Deployment", "kube-state-metrics", states, f"--kubeconfig={own}")
    await _pod(place, "node-exporter", "https")
    await _pod(place, "kube-state-metrics", "https-main")

    config = json.loads((place.folder / "config" / "prometheus.json").read_text())
    config["global"] |= {"scrape_interval": "2s", "evaluation_interval": "2s"}
    jobs = [job for job in config["scrape_configs"] if job["job_name"] in ("node-exporter", "kube-state-metrics")]
    for job in jobs:
        job["kubernetes_sd_configs"][0]["kubeconfig_file"] = str(kubeconfig)
    itself = next(job for job in config["scrape_configs"] if job["job_name"] == "prometheus-k8s")
    itself["static_configs"] = [{"targets": [f"localhost:{place.ports['prometheus-k8s']}"]}]
    config["scrape_configs"] = [*jobs, itself]
    (place.folder / "config" / "prometheus.json").write_text(json.dumps(config))
    (place.folder / "data").mkdir()
    where = {
        **laid_out,
        f"--storage.tsdb.path={prometheus.DATA}": f"--storage.tsdb.path={place.folder / 'data'}",
        f":{prometheus.PORT}": f":{place.ports['prometheus-k8s']}",
    }
    place.start("StatefulSet", "prometheus-k8s", where)

    async def up() -> bool:
        return {one["metric"]["job"] for one in await place.query("up==1")} == {
            "kube-state-metrics",
            "node-exporter",
            "prometheus-k8s",
        }

    await eventually(up, "all that run are asked, by their certificate")
    assert await place.query("node_memory_MemTotal_bytes"), "how the machine is"
    found = await place.query('kube_pod_info{namespace="openshift-monitoring"}')
    assert {one["metric"]["pod"] for one in found} == {"node-exporter-0", "kube-state-metrics-0"}, "how objects are"

    async def watched() -> bool:
        return bool(await place.query('ALERTS{alertname="Watchdog"}'))

    await eventually(watched, "alerts are computed")
    failed = await place.query("sum(prometheus_rule_evaluation_failures_total)")
    assert not failed or failed[0]["value"][1] == "0"
    for name in place.ports:
        with pytest.raises((aiohttp.ClientError, OSError)):
            await place.get(name, "/metrics", shown=False)
    for name, process in place.started.items():
        said = (Path("/proc") / str(process.pid) / "status").read_text()
        print(name, *re.findall(r"VmRSS:\s+(\d+ kB)", said))


async def _apply(place: Place) -> None:
    kinds = ("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding")
    for kind in kinds:
        for one in (o for o in place.objects if o["kind"] == kind):
            await place.admin.apply(one)


async def _as_account(place: Place, name: str) -> Path:
    """A kubeconfig with the rights of an account, and no others."""
    config = yaml.safe_load(place.server.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": await account_token(place.admin, name, NAMESPACE)}
    path = place.folder / f"{name}.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


async def _pod(place: Place, name: str, port: str) -> None:
    """A Pod that says where a process of the test listens."""
    container = {
        "name": "one",
        "image": "r.test/one",
        "ports": [{"name": port, "containerPort": place.ports[name]}],
    }
    metadata = {"name": f"{name}-0", "namespace": NAMESPACE, "labels": {"app.kubernetes.io/name": name}}
    await place.admin.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": NAMESPACE}}
    )
    await place.admin.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"containers": [container], "nodeName": "none", "automountServiceAccountToken": False},
        }
    )
    status = {"phase": "Running", "podIP": own_address(), "podIPs": [{"ip": own_address()}]}
    await place.admin.patch(k.PODS, f"{name}-0", NAMESPACE, {"status": status}, subresource="status")
