"""The YAML documents of the users' guides on a real API server: accepted as they are, and meaning what they say.

docs/guides.md lists which document is proved where.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import crds as crds_support
from tests.support import management as hostedcluster_support
from tests.support import node_pools as nodepool_support
from tests.support.api_server import ApiServer
from tests.support.definitions import metallb, open_crd, real
from tests.support.eventually import eventually
from tests.support.guides import documents
from tests.support.guides.shell import Shell
from tests.support.image_sets import Published, Site
from tests.support.mirroring import published, site, source, storage, target
from tests.support.node_pools import caches, condition, running_operator
from tests.support.registry import Registry
from tests.support.registry import start as start_registry

from hcp import pki
from hcp.hostedcluster.cache import Cache
from hcp.hostedcluster.registries import Registries
from hcp.hostedcluster.releases import Releases
from hcp.kube import Client, Resource, load_config
from hcp.kube import resources as r
from hcp.nodepool.inputs import registry_authorities
from hcp.oci.trust import Trust
from hcp.preflight.infra import rights
from hcp.preflight.infra_rights import EVERY
from hcp.runtime.context import Informers

__all__ = ["published", "site", "source", "storage", "target"]

Object = dict[str, Any]
INGRESS_CONTROLLERS = Resource("operator.openshift.io", "v1", "ingresscontrollers", "IngressController")
# The kind of an operator that installs MetalLB; the others are MetalLB's own.
METALLB = Resource("metallb.io", "v1beta1", "metallbs", "MetalLB")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, bin_dir: Path) -> Iterator[ApiServer]:
    """A server of this file alone: some steps make it look like other clusters than the rest of the tests expect."""
    made = ApiServer(tmp_path_factory.mktemp("guides"), bin_dir)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture
async def owner(server: ApiServer) -> AsyncIterator[Client]:
    async with Client(load_config(server.kubeconfig)) as client:
        await nodepool_support.prepare(client)
        yield client


@pytest.fixture
def shell(server: ApiServer, bin_dir: Path, tmp_path: Path) -> Shell:
    return Shell(tmp_path, bin_dir / "kubectl", server.kubeconfig)


@pytest.fixture
async def home(owner: Client, server: ApiServer) -> AsyncIterator[str]:
    """A namespace with the hosted cluster `demo`."""
    made = await owner.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "guide-"}})
    namespace = str(made["metadata"]["name"])
    await nodepool_support.hosted_cluster(owner, namespace, server.kubeconfig)
    yield namespace
    await nodepool_support.clean(owner, namespace)


def doctor(shell: Shell) -> dict[str, dict[str, str]]:
    return {one["check"]: one for one in json.loads(shell.run("hcp doctor -o json", check=False))["checks"]}


# External infrastructure


def account(shell: Shell, server: ApiServer, namespace: str, name: str) -> Client:
    """A client as a ServiceAccount of the infra cluster, by impersonation."""
    config = yaml.safe_load(server.kubeconfig.read_text())
    config["users"][0]["user"]["as"] = f"system:serviceaccount:{namespace}:{name}"
    path = shell.folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(config))
    return Client(load_config(path))


def granted(shell: Shell, namespace: str, rights_of: tuple[documents.Rule, ...]) -> None:
    """The guide's documents, and the binding of the Role it leaves to the reader."""
    shell.run(f"oc create namespace {namespace} --dry-run=client -o yaml | oc apply -f -")
    role = documents.infra_role(namespace, rights_of)
    everything = documents.text(role, documents.network_reader(), documents.network_reader_binding(namespace))
    shell.run("oc apply -f -", stdin=everything)
    shell.run(
        f"oc -n {namespace} create rolebinding machines --role={documents.ROLE}"
        f" --serviceaccount={namespace}:{documents.ACCOUNT}"
    )


async def finding(client: Client, namespace: str, state: str, without: tuple[str, ...] = ()) -> str:
    """The worst finding about rights, once it is what is wanted: the authorizer's cache follows a little later."""

    async def worst() -> str:
        found = (await rights(client, namespace))[0]
        assert found.state == state, found
        assert not any(word in found.message for word in without), found
        return found.message or found.state

    return await eventually(worst, f"the rights are {state}")


async def test_the_newer_role_of_the_guide_is_enough(owner: Client, server: ApiServer, shell: Shell) -> None:
    granted(shell, "clusters-example", documents.NEWER_RIGHTS)
    async with account(shell, server, "clusters-example", documents.ACCOUNT) as client:
        # More would be nice to have, but nothing that is needed is missing.
        await finding(client, "clusters-example", "warning")
        await eventually(lambda: client.allowed("get", r.NETWORK_CONFIGS), "networks may be read")
        assert not await client.allowed("list", r.SECRETS)


async def test_the_older_role_lacks_only_the_isolation_of_machines(
    owner: Client, server: ApiServer, shell: Shell
) -> None:
    granted(shell, "clusters-older", documents.OLDER_RIGHTS)
    async with account(shell, server, "clusters-older", documents.ACCOUNT) as client:
        others = ("virtualmachines", "datavolumes", "services", "secrets")
        assert "networkpolicies" in await finding(client, "clusters-older", "failed", others)


async def test_the_printed_rights_hold_all_of_the_guide(owner: Client, server: ApiServer, shell: Shell) -> None:
    namespace = "clusters-printed"
    shell.run(f"oc create namespace {namespace}")
    shell.run(f"hcp rbac external-infra --infra-namespace {namespace} | oc apply -f -")
    async with account(shell, server, namespace, "hcp-infra") as client:
        await finding(client, namespace, "ok")
        for group, resources, verbs in documents.NEWER_RIGHTS:
            for name in resources:
                plural, _, sub = name.partition("/")
                # Of a finalizers subresource only `update` exists.
                meant = ("update",) if sub == "finalizers" else EVERY if verbs == documents.ANY else verbs
                for verb in meant:
                    assert await client.allowed(verb, Resource(group, "v1", plural, ""), namespace, sub), (verb, name)
        await eventually(lambda: client.allowed("get", r.NETWORK_CONFIGS), "networks may be read")
        assert not await client.allowed("get", r.SECRETS, "kube-system")


# Node pools with GPUs


async def pool_template(owner: Client, hosted: str, pool: str) -> Object:
    async def ask() -> Object:
        deployment = await owner.get(r.MACHINEDEPLOYMENTS, pool, hosted)
        name = deployment["spec"]["template"]["spec"]["infrastructureRef"]["name"]
        template = await owner.get(r.KUBEVIRTMACHINETEMPLATES, name, hosted)
        return {"deployment": deployment, "vm": template["spec"]["template"]["spec"]["virtualMachineTemplate"]["spec"]}

    return await eventually(ask)


@pytest.mark.parametrize(
    ("devices", "names"),
    [
        ([("nvidia-a100", 2)], ["nvidia-a100", "nvidia-a100"]),
        ([("gpu-a", 1), ("gpu-b", 2), ("gpu-c", 1), ("gpu-d", 1)], ["gpu-a", "gpu-b", "gpu-b", "gpu-c", "gpu-d"]),
    ],
)
async def test_gpus_reach_every_machine(
    owner: Client, server: ApiServer, shell: Shell, home: str, devices: list[tuple[str, int]], names: list[str]
) -> None:
    pool = documents.node_pool("demo", home, devices=devices)
    shell.run("oc apply -f -", stdin=documents.text(pool))
    assert "release" not in (await owner.get(r.NODEPOOLS, "demo", home))["spec"]
    async with running_operator(server.kubeconfig):
        made = await pool_template(owner, f"{home}-demo", "demo")
        devices_of_vm = made["vm"]["template"]["spec"]["domain"]["devices"]["hostDevices"]
        assert [device["deviceName"] for device in devices_of_vm] == names
        assert len({device["name"] for device in devices_of_vm}) == len(names)
        assert made["deployment"]["spec"]["replicas"] == 3
        # A pool that names no release has its cluster's.
        assert made["deployment"]["spec"]["template"]["spec"]["version"] == "1.36.3"


async def test_a_device_without_a_count_is_one(owner: Client, shell: Shell, home: str) -> None:
    pool = documents.node_pool("demo", home, devices=[("nvidia-a100", 1)])
    del pool["spec"]["platform"]["kubevirt"]["hostDevices"][0]["count"]
    shell.run("oc apply -f -", stdin=documents.text(pool))
    made = await owner.get(r.NODEPOOLS, "demo", home)
    assert made["spec"]["platform"]["kubevirt"]["hostDevices"] == [{"deviceName": "nvidia-a100", "count": 1}]


# Registries of a disconnected environment


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    made, process = start_registry(tmp_path_factory.mktemp("registry"), passwords=False)
    yield made
    process.kill()
    process.wait()


@pytest.fixture
async def openshift(owner: Client) -> Client:
    """The configuration kinds of an OpenShift management cluster, as OpenShift defines them."""
    await crds_support.install(owner, real(r.IDMS, r.ITMS, r.ICSP, r.IMAGE_CONFIGS))
    await owner.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "openshift-config"}})
    empty = {"apiVersion": "config.openshift.io/v1", "kind": "Image", "metadata": {"name": "cluster"}, "spec": {}}
    await owner.apply(empty)
    return owner


PATCH_IMAGE = "oc patch image.config.openshift.io cluster --type=merge -p "


async def test_registry_authorities_are_found_by_name_and_port(openshift: Client, shell: Shell) -> None:
    certificates = {
        f"registry{number}.example.com..5000": pki.new_ca(f"registry {number}").cert_pem.decode() for number in range(3)
    }
    text = documents.registry_authorities("openshift-config", "registry-config", certificates)
    shell.run("oc apply -f -", stdin=text)
    shell.run(PATCH_IMAGE + """'{"spec": {"additionalTrustedCA": {"name": "registry-config"}}}'""")
    async with caches(openshift) as watches:
        # The first list comes from the server's cache, which may be a moment behind.
        found = await eventually(lambda: registry_authorities(watches), "the authorities are known")
    assert sorted(found) == [f"registry{number}.example.com:5000" for number in range(3)]
    for key, pem in certificates.items():
        assert found[key.replace("..", ":")].strip() == pem.strip()


async def test_references_written_as_lists_are_refused(openshift: Client, shell: Shell, home: str) -> None:
    said = shell.refused(PATCH_IMAGE + """'{"spec": {"additionalTrustedCA": [{"name": "registry-config"}]}}'""")
    assert "additionalTrustedCA" in said
    patch = """'{"spec": {"additionalTrustBundle": [{"name": "user-ca-bundle"}]}}'"""
    said = shell.refused(f"oc -n {home} patch hostedcluster demo --type=merge -p {patch}")
    assert "additionalTrustBundle" in said


async def test_the_trust_bundle_reaches_machines(owner: Client, server: ApiServer, shell: Shell, home: str) -> None:
    certificates = [pki.new_ca(f"registry {number}").cert_pem.decode() for number in range(3)]
    shell.run("oc apply -f -", stdin=documents.trust_bundle(home, certificates))
    patch = """'{"spec": {"additionalTrustBundle": {"name": "user-ca-bundle"}}}'"""
    shell.run(f"oc -n {home} patch hostedcluster demo --type=merge -p {patch}")
    shell.run("oc apply -f -", stdin=documents.text(documents.node_pool("demo", home, memory="4Gi")))
    hosted = f"{home}-demo"
    async with running_operator(server.kubeconfig):
        made = await pool_template(owner, hosted, "demo")
        secret = made["deployment"]["spec"]["template"]["spec"]["bootstrap"]["dataSecretName"]
        target = secret.removeprefix("user-data-demo-")
        stored = await owner.get(r.SECRETS, f"ignition-{hosted}.demo-{target}", "hypershift")
    assert "cluster-trust-bundle.crt" in _document(stored)
    # The remarks between the certificates do no harm.
    bundle = (await owner.get(r.CONFIGMAPS, "user-ca-bundle", home))["data"]["ca-bundle.crt"]
    subjects = str(Trust(bundle).context("registry.example.com").get_ca_certs())
    assert all(f"registry {number}" in subjects for number in range(3))


def _document(secret: Object) -> str:
    """The stored boot document as text; it may be packed."""
    import gzip

    texts = []
    for value in secret["data"].values():
        raw = base64.b64decode(value)
        texts.append((gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode(errors="replace"))
    return "\n".join(texts)


async def _read(releases: Releases, cluster: Object, image: str) -> Any:
    found, state = await releases.read(cluster, image=image)
    assert found is not None, state.problem
    return found


@pytest.mark.parametrize(
    ("kind", "version", "field"),
    [
        ("ImageContentSourcePolicy", "operator.openshift.io/v1alpha1", "repositoryDigestMirrors"),
        ("ImageDigestMirrorSet", "config.openshift.io/v1", "imageDigestMirrors"),
        ("ImageTagMirrorSet", "config.openshift.io/v1", "imageTagMirrors"),
    ],
)
async def test_the_release_is_read_through_mirrors(
    openshift: Client, shell: Shell, home: str, registry: Registry, kind: str, version: str, field: str
) -> None:
    """What a mirroring tool writes out is applied; then a release of a registry nobody can reach is found."""
    image = await hostedcluster_support.push_release(registry, shell.folder, "1.36.3")
    mirror = image.partition(":1.")[0].rpartition("/")[0]
    source = f"{kind.lower()}.unreachable.example.com/openshift"
    entry = {"source": source, "mirrors": [mirror]}
    mirrors = {"apiVersion": version, "kind": kind, "metadata": {"name": "mirrored"}, "spec": {field: [entry]}}
    (shell.folder / "mirrors.yaml").write_text(documents.text(mirrors))
    shell.run("oc apply -f mirrors.yaml")
    host, _, port = registry.host.partition(":")
    authority = {f"{host}..{port}": registry.ca_pem.decode()}
    shell.run("oc apply -f -", stdin=documents.registry_authorities("openshift-config", "registry-config", authority))
    shell.run(PATCH_IMAGE + """'{"spec": {"additionalTrustedCA": {"name": "registry-config"}}}'""")
    informers = Informers(openshift)
    releases = Releases(Cache(openshift, informers), Registries(list))
    cluster = await openshift.get(r.HOSTEDCLUSTERS, "demo", home)
    try:
        await informers.start()
        found = await eventually(lambda: _read(releases, cluster, f"{source}/release:1.36.3"), "the release is read")
        assert found.version == "1.36.3"
    finally:
        await releases.close()
        await informers.stop()


async def test_what_mirroring_wrote_leads_to_the_mirror(
    openshift: Client, shell: Shell, home: str, site: Site, target: Registry, published: Published
) -> None:
    """Its files are applied as they are; then the release is found under its old name by who knows the mirror alone."""
    release, by_tag = published.releases["1.36.2"], published.name("team/hcp/release:1.36.2")
    site.configure({"platform": {"release": release}, "additionalImages": [{"name": by_tag}]})
    words = ("-c", "isc.yaml", "--workspace", "file://w", f"docker://{target.host}")
    await asyncio.to_thread(site.ok, *words)
    (results,) = (site.folder / "oc-mirror-workspace").iterdir()
    resources = site.folder / "w/working-dir/cluster-resources"
    files = {
        resources / "idms-oc-mirror.yaml": release,
        resources / "itms-oc-mirror.yaml": by_tag,
        results / "imageContentSourcePolicy.yaml": release,
    }
    host, _, port = target.host.partition(":")
    authority = {f"{host}..{port}": target.ca_pem.decode()}
    shell.run("oc apply -f -", stdin=documents.registry_authorities("openshift-config", "registry-config", authority))
    shell.run(PATCH_IMAGE + """'{"spec": {"additionalTrustedCA": {"name": "registry-config"}}}'""")
    login = base64.b64encode(json.dumps(target.auths).encode()).decode()
    await openshift.patch(r.SECRETS, "demo-pull-secret", home, {"data": {".dockerconfigjson": login}})
    cluster = await openshift.get(r.HOSTEDCLUSTERS, "demo", home)
    for file, image in files.items():
        shell.run(f"oc apply -f {file}")
        informers = Informers(openshift)
        releases = Releases(Cache(openshift, informers), Registries(list))
        try:
            await informers.start()
            found = await eventually(partial(_read, releases, cluster, image), "the release is read")
            assert found.version == "1.36.2"
        finally:
            await releases.close()
            await informers.stop()
            shell.run(f"oc delete -f {file}")


CATALOGS = ("certified-operators", "community-operators", "redhat-marketplace", "redhat-operators")


async def test_catalog_annotations_are_kept(owner: Client, shell: Shell, home: str) -> None:
    words = [f"hypershift.openshift.io/{name}-catalog-image=registry.lab/{name}:v1" for name in CATALOGS]
    words.append("hypershift.openshift.io/olm-catalogs-is-registry-overrides=quay.io=registry.lab")
    shell.run(f"oc -n {home} annotate hostedcluster demo {' '.join(words)}")
    kept = (await owner.get(r.HOSTEDCLUSTERS, "demo", home))["metadata"]["annotations"]
    assert {word.partition("=")[0] for word in words} <= set(kept)


# Ingress, load balancers, storage


async def test_the_load_balancer_of_a_base_domain(owner: Client, shell: Shell, home: str) -> None:
    hosted = f"{home}-demo"
    shell.run("oc apply -f -", stdin=documents.text(documents.apps_service("demo", hosted, 30443, 30080)))
    service = await owner.get(r.SERVICES, "demo-apps", hosted)
    assert {port["port"]: port["targetPort"] for port in service["spec"]["ports"]} == {443: 30443, 80: 30080}
    body = {"status": {"loadBalancer": {"ingress": [{"ip": "192.168.20.30"}]}}}
    await owner.patch(r.SERVICES, "demo-apps", hosted, body, subresource="status")
    query = "{.status.loadBalancer.ingress[0].ip}"
    assert shell.run(f"oc -n {hosted} get service demo-apps -o jsonpath='{query}'") == "192.168.20.30"


async def test_wildcard_routes_are_allowed_by_the_patch(owner: Client, shell: Shell) -> None:
    from hcp.router.crd import route_crd

    await crds_support.install(owner, [open_crd(INGRESS_CONTROLLERS), route_crd()])
    namespace = "openshift-ingress-operator"
    await owner.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    await owner.apply(
        {
            "apiVersion": "operator.openshift.io/v1",
            "kind": "IngressController",
            "metadata": {"name": "default", "namespace": namespace},
            "spec": {"replicas": 2},
        }
    )
    assert "WildcardsAllowed" in doctor(shell)["Routes"]["hint"]
    shell.run(
        f"oc patch ingresscontroller -n {namespace} default --type=json -p "
        """'[{ "op": "add", "path": "/spec/routeAdmission", "value": {wildcardPolicy: "WildcardsAllowed"}}]'"""
    )
    assert "wildcards are admitted" in doctor(shell)["Routes"]["message"]
    # The patch that doctor itself prints does the same.
    shell.run(f"oc -n {namespace} patch ingresscontroller default --type=json -p '{_REMOVE}'")
    shell.run(doctor(shell)["Routes"]["hint"])
    assert "wildcards are admitted" in doctor(shell)["Routes"]["message"]


_REMOVE = '[{"op": "remove", "path": "/spec/routeAdmission"}]'


async def test_a_default_storage_class_is_chosen_by_the_patch(owner: Client, shell: Shell) -> None:
    name = "ocs-storagecluster-ceph-rbd"
    made = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}, "provisioner": "x/y"}
    await owner.apply(made)
    assert doctor(shell)["Default StorageClass"]["state"] == "failed"
    shell.run(
        f"oc patch storageclass {name} -p "
        """'{"metadata": {"annotations":{"storageclass.kubernetes.io/is-default-class":"true"}}}'"""
    )
    assert "(default)" in shell.run(f"oc get sc | grep {name}")
    assert doctor(shell)["Default StorageClass"] == {
        **doctor(shell)["Default StorageClass"],
        "state": "ok",
        "message": name,
    }


async def test_load_balancer_addresses_of_metallb_are_noticed(owner: Client, shell: Shell) -> None:
    await crds_support.install(owner, [open_crd(METALLB), *metallb()])
    await owner.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "metallb-system"}})
    for document in documents.metallb():
        shell.run("oc create -f -", stdin=documents.text(document))
    assert doctor(shell)["LoadBalancer addresses"]["state"] == "ok"


# Looking


async def test_lists_have_the_columns_of_the_guides(owner: Client, shell: Shell, home: str) -> None:
    now = "2026-01-01T00:00:00Z"
    message = "The hosted control plane is available"
    base = {"reason": "AsExpected", "lastTransitionTime": now}
    entry = {"state": "Completed", "version": "1.36.3", "image": "r.test/r:1", "startedTime": now, "verified": False}
    conditions = [
        {**base, "type": "Available", "status": "True", "message": message},
        {**base, "type": "Progressing", "status": "False", "message": ""},
    ]
    status = {
        "kubeconfig": {"name": "demo-admin-kubeconfig"},
        "version": {"desired": {"image": "r.test/r:1"}, "history": [{**entry, "completionTime": now}]},
        "conditions": conditions,
    }
    await owner.patch(r.HOSTEDCLUSTERS, "demo", home, {"status": status}, subresource="status")
    header, row = shell.run(f"oc get --namespace {home} hostedclusters").splitlines()
    columns = ["NAME", "VERSION", "KUBECONFIG", "PROGRESS", "AVAILABLE", "PROGRESSING", "MESSAGE"]
    assert header.split() == columns
    assert row.split(maxsplit=6) == ["demo", "1.36.3", "demo-admin-kubeconfig", "Completed", "True", "False", message]
    everywhere = shell.run("oc get hc -A").splitlines()
    assert everywhere[0].split() == ["NAMESPACE", *columns]
    assert any(line.split()[:2] == [home, "demo"] for line in everywhere)
    shell.run("oc apply -f -", stdin=documents.text(documents.node_pool("demo", home)))
    assert any(line.split()[:3] == [home, "demo", "demo"] for line in shell.run("oc get nodepool -A").splitlines())


async def test_an_unknown_device_is_said(owner: Client, server: ApiServer, shell: Shell, home: str) -> None:
    await crds_support.install(owner, real(r.KUBEVIRTS))
    pool = documents.node_pool("demo", home, devices=[("nvidia-a100", 1)])
    shell.run("oc apply -f -", stdin=documents.text(pool))
    async with running_operator(server.kubeconfig):

        async def told() -> bool:
            found = condition(await owner.get(r.NODEPOOLS, "demo", home), "ValidPlatformConfig")
            return found["status"] == "False" and "nvidia-a100" in found["message"]

        assert await eventually(told)
