"""A cluster with nodes tells about itself from inside: version, parts and settings, on a real hosted API server."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from tests.support import guest_nodes
from tests.support import management as s
from tests.support.api_server import account_token, free_port
from tests.support.eventually import eventually
from tests.support.hosted_api import hosted_api
from tests.support.hosted_operator import Running, rests, says
from tests.support.passes import a_pass
from tests.support.registry import Registry
from tests.support.router import World, haproxy_binary

from hcp import payload
from hcp.api.paths import at
from hcp.kube import Client
from hcp.kube import resources as k
from hcp.kube.errors import ApiError
from hcp.payload.release import definitions
from hcp.router.config import Settings
from hcp.router.controller import Router
from hcp.router.haproxy import HAProxy
from hcp.runtime.conditions import condition_of

Object = dict[str, Any]
NAME, NS = "told", "clusters-told"
OPERATORS = {"dns", "etcd", "ingress", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "network"}
DOMAIN = f"apps.{NAME}.apps.example.test"
SETTINGS = (
    k.APISERVER_CONFIGS,
    k.IMAGE_CONFIGS,
    k.INFRASTRUCTURES,
    k.INGRESS_CONFIGS,
    k.NETWORK_CONFIGS,
    k.OAUTH_CONFIGS,
    k.OPERATORHUBS,
    k.PROXY_CONFIGS,
)


@pytest.fixture
async def image(registry: Registry, tmp_path: Path) -> str:
    folder = payload.ensure(["openshift-definitions"])["openshift-definitions"] / "manifests" / "crds"
    images = (*s.COMPONENTS, "router")
    return await s.push_release(registry, tmp_path, "1.36.3", images, CONFIG_DEFINITIONS=definitions(folder))


@pytest.fixture
async def guest(
    admin: Client, operator: Callable[[], Running], image: str, registry: Registry, tmp_path: Path, bin_dir: Path
) -> AsyncIterator[Client]:
    """The hosted API, with a control plane that is there and no nodes; its kubeconfig lies in tmp_path."""
    operator()
    proxy = {"httpsProxy": "http://proxy.test:3128", "noProxy": ".test"}
    more = {"configuration": {"proxy": proxy}}
    async with hosted_api(admin, NAME, image, registry, tmp_path, bin_dir, **more) as client:
        yield client


async def versions(guest: Client) -> dict[str, str]:
    """Everything told inside, by the version the server gives it: another one is a write."""
    found = {}
    for resource in (k.CLUSTERVERSIONS, k.CLUSTEROPERATORS, *SETTINGS):
        for one in await guest.list(resource):
            found[f"{resource.plural}/{one['metadata']['name']}"] = one["metadata"]["resourceVersion"]
    return found


async def test_a_cluster_tells_its_version_and_parts_from_its_first_node_on(
    admin: Client, guest: Client, operator: Callable[[], Running], tmp_path: Path, bin_dir: Path
) -> None:
    async with a_pass("hostedcluster"):
        await admin.patch(k.HOSTEDCLUSTERS, NAME, "clusters", {"metadata": {"annotations": {"nudge": "1"}}})
    await eventually(lambda: says(admin, NAME, "ClusterVersionProgressing", "True"), "no nodes yet")
    available = await eventually(lambda: s.condition(admin, NAME, "ClusterVersionAvailable"), "whether it is there")
    assert available["reason"] == "NoWorkerNodesAvailable"
    served = {crd["spec"]["group"] for crd in await guest.list(k.CRDS)}
    assert "config.openshift.io" not in served, "a control plane without nodes pays nothing for it"

    assert await guest.get_or_none(k.NAMESPACES, "openshift-ingress") is None, "nor has it an ingress"
    await guest_nodes.join(guest, "one")
    args = await _ingress(admin, guest)
    await _serves(admin, guest, args, tmp_path)

    async def told() -> Object | None:
        live = await guest.get_or_none(k.CLUSTERVERSIONS, "version") if await guest.has(k.CLUSTERVERSIONS) else None
        return live if live and live.get("status") else None

    version = await eventually(told, "the version is told")
    entry = version["status"]["history"][0]
    assert (entry["state"], entry["version"], entry["completionTime"]) == ("Partial", "1.36.3", None)

    async def complete() -> bool:
        return {one["metadata"]["name"] for one in await guest.list(k.CLUSTEROPERATORS)} == OPERATORS

    await eventually(complete, "every part has its operator")
    await eventually(lambda: _settings(guest), "and every setting is told")

    most = partial(guest_nodes.report_available, guest, but="coredns")
    await eventually(lambda: _says(guest, "network", "Available", "True"), "the network is there", most)
    assert await _says(guest, "dns", "Available", "False")
    assert await s.condition(admin, NAME, "ClusterVersionAvailable")
    assert (await _history(admin))["state"] == "Partial", "one part is missing"

    async def completed() -> bool:
        live = await guest.get(k.CLUSTERVERSIONS, "version")
        return bool(live["status"]["history"][0]["state"] == "Completed")

    await eventually(completed, "the version is reached", partial(guest_nodes.report_available, guest))

    async def outside_too() -> bool:
        kinds = ("ClusterVersionAvailable", "ClusterVersionSucceeding")
        done = (await _history(admin))["state"] == "Completed"
        return done and all([await says(admin, NAME, kind, "True") for kind in kinds])

    await eventually(outside_too, "and told outside")
    seen = partial(asyncio.to_thread, _as_people_see_it, bin_dir, tmp_path / "guest.kubeconfig")
    await eventually(seen, "as people see it")

    await _nobody_inside_changes_it(guest)
    await _steady(admin, guest, operator)

    # What is lost is told.
    await guest_nodes.report_available(guest, but="coredns")
    await eventually(lambda: _says(guest, "dns", "Available", "False"), "dns is gone")
    await eventually(lambda: says(admin, NAME, "ClusterVersionSucceeding", "False"), "it is told outside too")

    async def failing() -> bool:
        found = condition_of(await guest.get(k.CLUSTERVERSIONS, "version"), "Failing") or {}
        return found.get("status") == "True" and "dns" in str(found.get("message"))

    await eventually(failing, "and so does the version")


async def _says(guest: Client, operator: str, kind: str, status: str) -> bool:
    found = condition_of(await guest.get(k.CLUSTEROPERATORS, operator), kind)
    return found is not None and found["status"] == status


async def _history(admin: Client) -> Object:
    live = await admin.get(k.HOSTEDCLUSTERS, NAME, "clusters")
    return dict(live["status"]["version"]["history"][0])


async def _ingress(admin: Client, guest: Client) -> list[str]:
    """The router inside, its certificate, and the way to it through the management cluster's router."""
    service = await eventually(
        lambda: guest.get_or_none(k.SERVICES, "router-nodeport-default", "openshift-ingress"), "the router's Service"
    )
    ports = {one["name"]: one["nodePort"] for one in service["spec"]["ports"]}
    assert set(ports) == {"http", "https"}
    deployment = await eventually(
        lambda: guest.get_or_none(k.DEPLOYMENTS, "router-default", "openshift-ingress"), "the router"
    )
    assert f"--domain={DOMAIN}" in deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    shown = await eventually(
        lambda: guest.get_or_none(k.SECRETS, "default-ingress-cert", "openshift-ingress"), "its certificate"
    )
    leaf = x509.load_pem_x509_certificate(base64.b64decode(shown["data"]["tls.crt"]))
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert f"*.{DOMAIN}" in names.get_values_for_type(x509.DNSName)
    root = await admin.get(k.SECRETS, "root-ca", NS)
    leaf.verify_directly_issued_by(x509.load_pem_x509_certificate(base64.b64decode(root["data"]["ca.crt"])))

    async def led() -> Object | None:
        found = [one for one in await admin.list(k.ROUTES, NS) if "passthrough" in one["metadata"]["name"]]
        return found[0] if found else None

    route = (await eventually(led, "the Route in front of the machines"))["spec"]
    assert (route["host"], route["wildcardPolicy"]) == (f"https.{DOMAIN}", "Subdomain")
    assert route["tls"]["termination"] == "passthrough"

    async def in_front() -> bool:
        front = await admin.get(k.SERVICES, route["to"]["name"], NS)
        assert [one["targetPort"] for one in front["spec"]["ports"]] == [ports["https"]]
        return bool(front["spec"]["selector"]["kubevirt.io"] == "virt-launcher")

    await eventually(in_front, "the Service it leads to")
    return list(deployment["spec"]["template"]["spec"]["containers"][0]["args"])


async def _serves(admin: Client, guest: Client, args: list[str], tmp_path: Path) -> None:
    """The router as its pod would run it, with the rights of its account and no others."""
    token = await eventually(lambda: account_token(guest, "router-default", "openshift-ingress"), "its account")
    config = yaml.safe_load((tmp_path / "guest.kubeconfig").read_text())
    config["users"][0]["user"] = {"token": token}
    (tmp_path / "router.kubeconfig").write_text(yaml.safe_dump(config))
    settings = Settings(tmp_path / "unused", free_port(), free_port(), address="127.0.0.1")
    world = World(guest, "default", Router(guest, HAProxy(settings)), HAProxy(settings), tmp_path)
    ports = {"http": settings.http_port, "https": settings.https_port, "health": free_port()}
    command = [sys.executable, "-m", "hcp", *args, f"--haproxy={haproxy_binary()}"]
    command += [f"--{name}-port={port}" for name, port in ports.items()]
    with (tmp_path / "router.log").open("wb") as log:
        process = subprocess.Popen([*command, f"--kubeconfig={tmp_path / 'router.kubeconfig'}"], stdout=log, stderr=log)
    root = base64.b64decode((await admin.get(k.SECRETS, "root-ca", NS))["data"]["ca.crt"]).decode()
    try:
        await world.service("app", await world.backend("app", tls=False))
        await world.route("app", "app", tls="edge", host=f"app.{DOMAIN}")

        async def answered() -> bool:
            assert process.poll() is None, (tmp_path / "router.log").read_text()
            try:
                return (await world.https(f"app.{DOMAIN}", trust=root))[2] == "app"
            except OSError:
                return False

        await eventually(answered, "an app below the default domain, with the cluster's own certificate")
        assert (await world.admitted("app"))["status"] == "True"
    finally:
        process.terminate()
        process.wait()
        for server in world.servers:
            server.close()


async def _settings(guest: Client) -> bool:
    found = {resource: await guest.get(resource, "cluster") for resource in SETTINGS}
    assert at(found[k.INFRASTRUCTURES], "status.platform") == "KubeVirt"
    assert at(found[k.INFRASTRUCTURES], "status.controlPlaneTopology") == "External"
    assert at(found[k.INGRESS_CONFIGS], "spec.domain") == DOMAIN
    assert at(found[k.NETWORK_CONFIGS], "status.networkType") == "Flannel"
    assert at(found[k.PROXY_CONFIGS], "status.httpsProxy") == "http://proxy.test:3128"
    return True


def _as_people_see_it(bin_dir: Path, kubeconfig: Path) -> bool:
    def get(*words: str) -> list[list[str]]:
        command = [str(bin_dir / "kubectl"), f"--kubeconfig={kubeconfig}", "get", "--no-headers", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return [line.split() for line in done.stdout.splitlines()]

    assert get("clusterversion")[0][:4] == ["version", "1.36.3", "True", "False"]
    found = {row[0]: row[1:5] for row in get("co")}
    assert set(found) == OPERATORS
    assert all(row == ["1.36.3", "True", "False", "False"] for row in found.values()), found
    return True


async def _nobody_inside_changes_it(guest: Client) -> None:
    """An administrator of the guest is told where to go instead."""
    update = {"spec": {"desiredUpdate": {"version": "1.37.0", "image": "registry.example/release:1.37.0"}}}
    with pytest.raises(ApiError, match="hcp upgrade cluster"):
        await guest.patch(k.CLUSTERVERSIONS, "version", None, update)
    with pytest.raises(ApiError, match="HostedCluster"):
        await guest.delete(k.NETWORK_CONFIGS, "cluster")
    own = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator", "metadata": {"name": "own"}, "spec": {}}
    await guest.create(own)
    await guest.delete(k.CLUSTEROPERATORS, "own")


async def _steady(admin: Client, guest: Client, operator: Callable[[], Running]) -> None:
    running = Running.latest

    async def still() -> dict[str, str] | None:
        before = await versions(guest)
        quiet = await rests(admin, NAME)
        return before if quiet and await versions(guest) == before else None

    before = await eventually(still, "a pass that writes nothing, outside and inside")
    # A new process goes through everything, and writes nothing.
    await running.stop()
    async with a_pass("hostedcluster", "guest", "cluster-version"):
        again = operator()
    assert again.writes == [] and await versions(guest) == before
    assert json.dumps(before).count("clusteroperators/") == len(OPERATORS)
