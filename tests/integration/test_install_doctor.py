"""doctor and rbac external-infra as a user types them."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import crds as crds_support
from tests.support.api_server import ApiServer, account_token
from tests.support.definitions import open_crd
from tests.support.eventually import eventually

from hcp.controlplane.storage_plan import DEFAULT_CLASS, DEFAULT_SNAPSHOT_CLASS
from hcp.kube import Client, load_config
from hcp.kube import resources as k
from hcp.preflight.infra import rights

HCP = Path(sys.executable).parent / "hcp"
OF_VOLUMES = ("Default StorageClass", "Default VolumeSnapshotClass", "Volumes for running machines")


def hcp(*words: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([HCP, *words], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def doctor(kubeconfig: Path, *words: str) -> tuple[int, dict[str, dict[str, str]]]:
    done = hcp("doctor", "-o", "json", f"--kubeconfig={kubeconfig}", *words)
    assert done.stdout, done.stderr
    return done.returncode, {one["check"]: one for one in json.loads(done.stdout)["checks"]}


def as_account(server: ApiServer, directory: Path, namespace: str) -> Path:
    """A kubeconfig of the ServiceAccount that `rbac external-infra` makes, by impersonation."""
    config = yaml.safe_load(server.kubeconfig.read_text())
    config["users"][0]["user"]["as"] = f"system:serviceaccount:{namespace}:hcp-infra"
    path = directory / "infra.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


def openshift(kind: str, plural: str, group: str, *, namespaced: bool) -> dict[str, Any]:
    """A definition for a configuration kind, so that a server looks like an OpenShift cluster."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "scope": "Namespaced" if namespaced else "Cluster",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


async def test_an_empty_cluster_fails_with_what_to_do(own_server: ApiServer) -> None:
    code, found = doctor(own_server.kubeconfig)
    assert code == 1
    assert found["Kubernetes"]["state"] == "ok"
    for check in ("Operator", "KubeVirt", "CDI", "Default StorageClass", "Routes"):
        assert found[check]["state"] == "failed", check
        assert found[check]["hint"], check


async def test_what_it_sees_on_a_cluster(own_server: ApiServer) -> None:
    async with Client(load_config(own_server.kubeconfig)) as client:
        await client.create(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
                "provisioner": "example.com/fast",
            }
        )
        service = await client.create(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "lb", "namespace": "default"},
                "spec": {"type": "LoadBalancer", "ports": [{"port": 1}]},
            }
        )
        code, found = doctor(own_server.kubeconfig, "--cluster-cidr=10.250.0.0/16")
        assert code == 1
        assert found["Default StorageClass"]["message"] == "fast"
        assert found["LoadBalancer addresses"]["state"] == "failed"
        assert found["Address ranges"]["state"] == "failed"
        assert "10.250.0.0/16" in found["Address ranges"]["message"]
        service["status"] = {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}
        await client.replace(service, subresource="status")
        _, found = doctor(own_server.kubeconfig)
        assert found["LoadBalancer addresses"]["state"] == "ok"
        assert found["Address ranges"]["state"] == "ok"


def storage_kinds() -> list[dict[str, Any]]:
    """KubeVirt's own configuration, and classes of snapshots."""
    classes = open_crd(k.VOLUMESNAPSHOTCLASSES)
    classes["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, for a test"}
    classes["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["driver"] = {"type": "string"}
    return [open_crd(k.KUBEVIRTS), classes]


def storage_class(name: str, provisioner: str, *, default: bool) -> dict[str, Any]:
    metadata = {"name": name, "annotations": {DEFAULT_CLASS: str(default).lower()}}
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata}
    return {**kind, "provisioner": provisioner}


def snapshot_class(name: str, driver: str, *, default: bool) -> dict[str, Any]:
    metadata = {"name": name, "annotations": {DEFAULT_SNAPSHOT_CLASS: str(default).lower()}}
    kind = {"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass", "metadata": metadata}
    return {**kind, "driver": driver}


def with_gates(*gates: str) -> dict[str, Any]:
    metadata = {"name": "kubevirt", "namespace": "default"}
    spec = {"configuration": {"developerConfiguration": {"featureGates": list(gates)}}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": metadata, "spec": spec}


async def test_what_hosted_clusters_get_of_the_storage_is_told(own_server: ApiServer) -> None:
    attach, cut = "Volumes for running machines", "Default VolumeSnapshotClass"

    def seen(check: str) -> tuple[str, str]:
        found = doctor(own_server.kubeconfig)[1][check]
        assert found["hint"] or found["state"] == "ok" or "no object" in found["message"], found
        return found["state"], found["message"]

    state, said = seen(attach)
    assert state == "unknown" and "no object of kind KubeVirt" in said
    state, said = seen(cut)
    assert state == "warning" and "no snapshots" in said
    async with Client(load_config(own_server.kubeconfig)) as client:
        await crds_support.install(client, storage_kinds())
        await client.apply(storage_class("fast", "fast.example.com", default=True))
        assert seen(cut) == ("warning", "there is none")
        for gates, wanted, words in (
            ((), "warning", "HotplugVolumes is off: hosted clusters have no volumes"),
            (("ExpandDisks",), "warning", "HotplugVolumes is off"),
            (("HotplugVolumes",), "warning", "ExpandDisks is off: volumes of hosted clusters cannot be made larger"),
            (("HotplugVolumes", "ExpandDisks"), "ok", "attached"),
        ):
            await client.apply(with_gates(*gates))
            state, said = seen(attach)
            assert state == wanted and words in said
        await client.apply(snapshot_class("cut", "fast.example.com", default=False))
        assert seen(cut) == ("warning", "none of 1 classes is the default")
        await client.apply(snapshot_class("other", "other.example.com", default=True))
        state, said = seen(cut)
        assert state == "warning" and "other is not of fast.example.com" in said
        await client.apply(snapshot_class("cut", "fast.example.com", default=True))
        assert seen(cut) == ("ok", "cut, other")


async def test_wildcard_policy_of_an_openshift_router(own_server: ApiServer) -> None:
    from tests.support import crds as support

    from hcp.router.crd import route_crd

    async with Client(load_config(own_server.kubeconfig)) as client:
        group = "operator.openshift.io"
        definitions = [
            openshift("IngressController", "ingresscontrollers", group, namespaced=True),
            openshift("Ingress", "ingresses", "config.openshift.io", namespaced=False),
            route_crd(),
        ]
        await support.install(client, definitions)
        ns = "openshift-ingress-operator"
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ns}})
        await client.apply(
            {
                "apiVersion": "config.openshift.io/v1",
                "kind": "Ingress",
                "metadata": {"name": "cluster"},
                "spec": {"domain": "apps.localhost"},
            }
        )
        controller: dict[str, Any] = {
            "apiVersion": f"{group}/v1",
            "kind": "IngressController",
            "metadata": {"name": "default", "namespace": ns},
            "spec": {},
        }
        await client.apply(controller)
        _, found = doctor(own_server.kubeconfig)
        assert found["Routes"]["state"] == "failed"
        assert "WildcardsAllowed" in found["Routes"]["hint"]
        allowed = copy.deepcopy(controller)
        allowed["spec"]["routeAdmission"] = {"wildcardPolicy": "WildcardsAllowed"}
        await client.apply(allowed)
        _, found = doctor(own_server.kubeconfig)
        assert found["Routes"]["state"] == "ok"
        assert "apps.localhost" in found["Routes"]["message"]


async def test_the_printed_rights_are_exactly_enough(own_server: ApiServer, tmp_path: Path) -> None:
    kubeconfig = as_account(own_server, tmp_path, "vms")
    async with Client(load_config(own_server.kubeconfig)) as owner, Client(load_config(kubeconfig)) as client:
        await owner.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "vms"}})
        before = await rights(client, "vms")
        assert before[0].state == "failed"
        assert "hcp rbac external-infra --infra-namespace vms" in before[0].hint
        printed = hcp("rbac", "external-infra", "--infra-namespace=vms")
        assert printed.returncode == 0
        for obj in yaml.safe_load_all(printed.stdout):
            if obj:
                await owner.apply(obj)

        async def enough() -> bool:
            # The authorizer reads rights from a cache that follows.
            after = await rights(client, "vms")
            assert {one.state for one in after} == {"ok"}, after
            return True

        await eventually(enough, "the printed rights are enough")
        elsewhere = await rights(client, "default")
        assert elsewhere[0].state == "failed"
        # What is handed over for a Secret carries a token, and impersonates nobody.
        config = yaml.safe_load(own_server.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": await account_token(owner, "hcp-infra", "vms")}
        kubeconfig.write_text(yaml.safe_dump(config))
    infra = (f"--infra-kubeconfig-file={kubeconfig}", "--infra-namespace=vms")
    code, found = doctor(own_server.kubeconfig, *infra)
    assert code == 1
    assert found["Rights on the infra cluster"]["state"] == "ok"
    assert found["Rights for volumes on the infra cluster"]["state"] == "ok"
    assert "KubeVirt" not in found
    assert found["Infra KubeVirt"]["state"] == "failed"
    # What is printed lets doctor look at all that volumes are made of.
    classes, cut, attach = (found[f"Infra {check}"] for check in OF_VOLUMES)
    assert (classes["state"], classes["message"]) == ("warning", "there is none")
    assert "--infra-storage-class-mapping" in classes["hint"]
    assert cut["state"] == "warning" and "no snapshots" in cut["message"]
    assert attach["state"] == "unknown" and "no object of kind KubeVirt" in attach["message"]
    async with Client(load_config(own_server.kubeconfig)) as owner:
        await crds_support.install(owner, storage_kinds())
        await owner.apply(storage_class("fast", "fast.example.com", default=True))
        await owner.apply(snapshot_class("cut", "fast.example.com", default=True))
        await owner.apply(with_gates("HotplugVolumes", "ExpandDisks"))
        told = doctor(own_server.kubeconfig, *infra)[1]
        assert [told[f"Infra {check}"]["state"] for check in OF_VOLUMES] == ["ok", "ok", "ok"]
        # Whoever grants less is told what could not be looked at, and why.
        await owner.delete(k.CLUSTERROLEBINDINGS, "hcp-infra-vms")

        async def unseen() -> bool:
            told = doctor(own_server.kubeconfig, *infra)[1]
            return all(told[f"Infra {check}"]["state"] == "unknown" for check in OF_VOLUMES)

        await eventually(unseen, "nothing of it can be read")
        for check in OF_VOLUMES:
            one = doctor(own_server.kubeconfig, *infra)[1][f"Infra {check}"]
            assert "not allowed to look" in one["message"]
            assert "hcp rbac external-infra --infra-namespace vms" in one["hint"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("doctor", "--infra-namespace=x"), "belong together"),
        (("doctor", "--cluster-cidr=x"), "--cluster-cidr"),
        (("doctor", "--infra-kubeconfig-file=/none", "--infra-namespace=x"), "--infra-kubeconfig-file"),
        (("rbac", "external-infra"), "infra-namespace"),
        (("rbac", "external-infra", "--infra-namespace=A_b"), "RFC1123"),
        (("rbac", "external-infra", "--infra-namespace=a", "--user=u", "--group=g"), "none of the others"),
    ],
)
def test_bad_command_lines(words: tuple[str, ...], said: str) -> None:
    done = hcp(*words)
    assert done.returncode == 1
    assert said in done.stderr
