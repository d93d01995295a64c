"""What measures inside a cluster, on a real hosted API server: from the first node on, by halves, and gone again."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from tests.support import crds as crds_support
from tests.support import guest_nodes
from tests.support import management as s
from tests.support.definitions import open_crd
from tests.support.eventually import eventually
from tests.support.hosted_api import hosted_api
from tests.support.hosted_operator import Running
from tests.support.passes import a_pass
from tests.support.registry import Registry

from hcp import payload
from hcp.controlplane import oauth
from hcp.controlplane.params import LOGIN_IMAGE
from hcp.guest import keeper
from hcp.guest.monitoring import metrics_server
from hcp.guest.monitoring.plan import METRICS_IMAGE, NAMESPACE, NEEDED
from hcp.kube import Client, untrusted_kubeconfig
from hcp.kube import resources as k
from hcp.kube.errors import ApiError, Forbidden
from hcp.payload.release import definitions
from hcp.runtime.conditions import condition_of

Object = dict[str, Any]
NAME, NS = "measured", "clusters-measured"
PARTS = {"kube-state-metrics", "metrics-server", "node-exporter", "prometheus-k8s"}


@pytest.fixture
async def image(registry: Registry, tmp_path: Path) -> str:
    folder = payload.ensure(["openshift-definitions"])["openshift-definitions"] / "manifests" / "crds"
    images = (*s.COMPONENTS, METRICS_IMAGE, *NEEDED, LOGIN_IMAGE)
    return await s.push_release(registry, tmp_path, "1.36.3", images, CONFIG_DEFINITIONS=definitions(folder))


@pytest.fixture
async def guest(
    admin: Client, operator: Callable[[], Running], image: str, registry: Registry, tmp_path: Path, bin_dir: Path
) -> AsyncIterator[Client]:
    """The hosted API, with a control plane that is there and no nodes."""
    await crds_support.install(admin, [open_crd(k.PODMONITORS)])
    operator()
    more = {"monitoring": {"metricsSet": "SRE"}}
    async with hosted_api(admin, NAME, image, registry, tmp_path, bin_dir, **more) as client:
        yield client


async def test_what_measures_comes_with_nodes_and_goes_with_its_capability(
    admin: Client, guest: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "ASK_STEADY", 1.0)
    async with a_pass("hostedcluster"):
        await _nudge(admin, "1")
    assert await guest.get_or_none(k.NAMESPACES, NAMESPACE) is None, "a control plane without nodes pays nothing for it"
    assert await admin.get_or_none(k.SECRETS, "monitoring-crt", NS) is None
    await _read_from_outside(admin, guest)

    await guest_nodes.join(guest, "one")

    async def all_there() -> bool:
        return await _parts(guest) == PARTS

    await eventually(all_there, "all parts are wanted")
    await guest_nodes.report_available(guest, but="metrics-server")
    await eventually(lambda: _operator(guest, "False", "metrics-server"), "the operator waits for metrics-server")
    assert await _announced(guest) is None, "an API that nobody serves would be in everybody's way"

    await guest_nodes.report_available(guest)
    api = await eventually(lambda: _announced(guest), "its API is announced")
    root = x509.load_pem_x509_certificate(base64.b64decode(api["spec"]["caBundle"]))
    for name in (metrics_server.CERTIFICATE, "monitoring-tls"):
        shown = await guest.get(k.SECRETS, name, NAMESPACE)
        x509.load_pem_x509_certificate(base64.b64decode(shown["data"]["tls.crt"])).verify_directly_issued_by(root)
    # No node runs a tunnel here, so kube-apiserver cannot reach it: that is what the operator says, and not "True".
    await eventually(lambda: _operator(guest, "False", metrics_server.API), "what the API server finds is told")
    await eventually(lambda: _asks_what_there_is(guest), "Prometheus asks what there is")
    await eventually(lambda: _steady(admin, guest), "a pass that writes nothing")

    await guest.delete(k.APISERVICES, metrics_server.API)
    await eventually(lambda: _announced(guest), "what a tenant deletes comes back")

    # Prometheus is a capability, the one that can be changed.
    off = {"spec": {"capabilities": {"disabled": ["Monitoring"]}}}
    await admin.patch(k.HOSTEDCLUSTERS, NAME, "clusters", off)

    async def half() -> bool:
        return await _parts(guest) == {"metrics-server"}

    await eventually(half, "Prometheus and those it asks are gone, metrics-server stays")

    async def nothing_more() -> bool:
        role = await guest.get_or_none(k.CLUSTERROLES, "hcp:prometheus-k8s")
        return role is None and await guest.get_or_none(k.SECRETS, "monitoring-tls", NAMESPACE) is None

    await eventually(nothing_more, "with its rights and its certificate")
    with pytest.raises(ApiError, match="immutable"):
        await admin.patch(k.HOSTEDCLUSTERS, NAME, "clusters", {"spec": {"capabilities": {"disabled": ["Insights"]}}})
    await admin.patch(k.HOSTEDCLUSTERS, NAME, "clusters", {"spec": {"capabilities": {"disabled": None}}})
    await eventually(all_there, "and back again")

    await guest.delete(k.NODES, "one")

    async def withdrawn() -> bool:
        return await _announced(guest) is None

    await eventually(withdrawn, "without a node nobody can serve it")


async def test_somebody_elses_api_of_metrics_is_left_alone(admin: Client, guest: Client) -> None:
    service = {"name": "own", "namespace": "default", "port": 443}
    spec = {"group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100}
    own = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": metrics_server.API},
        "spec": {**spec, "service": service, "insecureSkipTLSVerify": True},
    }
    await guest.create(own)
    await guest_nodes.join(guest, "one")

    async def served() -> bool:
        await guest_nodes.report_available(guest)
        return await _operator(guest, "True", "somebody else")

    await eventually(served, "it is told")
    assert (await guest.get(k.APISERVICES, metrics_server.API))["spec"]["service"] == service
    await guest.delete(k.APISERVICES, metrics_server.API)
    api = await eventually(lambda: _announced(guest), "once it is gone, ours takes its place")
    assert api["spec"]["service"]["name"] == "metrics-server"


async def test_the_oauth_server_is_measured_while_there_is_one(admin: Client, guest: Client) -> None:
    async def measured() -> bool:
        return await admin.get_or_none(k.PODMONITORS, oauth.COMPONENT, NS) is not None

    await guest_nodes.join(guest, "one")
    await eventually(measured, "it comes with the first node")
    patch = {"configuration": {"oauth": {"tokenConfig": {"accessTokenMaxAgeSeconds": 3600}}}}
    await admin.patch(k.HOSTEDCLUSTERS, NAME, "clusters", {"spec": patch})

    async def ended() -> bool:
        return await admin.get_or_none(k.DEPLOYMENTS, oauth.COMPONENT, NS) is None

    await eventually(ended, "nobody is left who could log in")
    assert not await measured()


async def _read_from_outside(admin: Client, guest: Client) -> None:
    """What a Prometheus operator of the management cluster finds, and how far its certificate leads."""
    found = {one["metadata"]["name"]: one["spec"] for one in await admin.list(k.PODMONITORS, NS)}
    assert set(found) == {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
    (endpoint,) = found["kube-apiserver"]["podMetricsEndpoints"]
    pods = (await admin.get(k.DEPLOYMENTS, "kube-apiserver", NS))["spec"]["template"]
    assert found["kube-apiserver"]["selector"]["matchLabels"].items() <= pods["metadata"]["labels"].items()
    assert endpoint["port"] in [one["name"] for one in pods["spec"]["containers"][0]["ports"]]
    assert endpoint["metricRelabelings"], "of a set, not all is kept"
    tls = endpoint["tlsConfig"]
    secret = (await admin.get(k.SECRETS, tls["cert"]["secret"]["name"], NS))["data"]
    authority = (await admin.get(k.CONFIGMAPS, tls["ca"]["configMap"]["name"], NS))["data"]["ca.crt"]
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "it",
                "cluster": {
                    "server": guest.config.server,
                    "tls-server-name": tls["serverName"],
                    "certificate-authority-data": base64.b64encode(authority.encode()).decode(),
                },
            }
        ],
        "users": [
            {
                "name": "it",
                "user": {"client-certificate-data": secret["tls.crt"], "client-key-data": secret["tls.key"]},
            }
        ],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "current-context": "it",
    }
    async with Client(untrusted_kubeconfig.load(json.dumps(config).encode())) as prometheus:
        shown = await eventually(lambda: prometheus.raw_text("GET", "/metrics"), "its rights count")
        assert "apiserver_request_total" in shown
        with pytest.raises(Forbidden):
            await prometheus.list(k.NODES)


async def _parts(guest: Client) -> set[str]:
    kinds = (k.DAEMONSETS, k.DEPLOYMENTS, k.STATEFULSETS)
    return {one["metadata"]["name"] for kind in kinds for one in await guest.list(kind, NAMESPACE)}


async def _announced(guest: Client) -> Object | None:
    return await guest.get_or_none(k.APISERVICES, metrics_server.API)


async def _operator(guest: Client, status: str, words: str) -> bool:
    if not await guest.has(k.CLUSTEROPERATORS):
        return False
    found = condition_of(await guest.get_or_none(k.CLUSTEROPERATORS, "monitoring") or {}, "Available") or {}
    return found.get("status") == status and words in str(found.get("message"))


async def _asks_what_there_is(guest: Client) -> bool:
    data = (await guest.get(k.CONFIGMAPS, "prometheus-k8s", NAMESPACE))["data"]
    jobs = {job["job_name"] for job in json.loads(data["prometheus.json"])["scrape_configs"]}
    assert {"apiserver", "coredns", "kubelet", "kube-state-metrics", "metrics-server", "node-exporter"} <= jobs
    assert "router" not in jobs, "the release has none"
    return bool(json.loads(data["rules.json"])["groups"])


async def _steady(admin: Client, guest: Client) -> bool:
    """A pass over what is as it should be writes nothing; one that always writes is never steady."""

    async def versions() -> list[str]:
        kinds = (k.DAEMONSETS, k.DEPLOYMENTS, k.STATEFULSETS, k.CONFIGMAPS, k.SECRETS, k.SERVICES)
        return [one["metadata"]["resourceVersion"] for kind in kinds for one in await guest.list(kind, NAMESPACE)]

    before = await versions()
    running = Running.latest
    running.writes.clear()
    async with a_pass("hostedcluster", "guest"):
        await _nudge(admin, uuid.uuid4().hex)
    return running.writes == [] and await versions() == before


async def _nudge(admin: Client, value: str) -> None:
    await admin.patch(k.HOSTEDCLUSTERS, NAME, "clusters", {"metadata": {"annotations": {"nudge": value}}})
