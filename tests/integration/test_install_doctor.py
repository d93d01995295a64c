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
from tests.support.api_server import ApiServer, account_token
from tests.support.eventually import eventually

from hcp.kube import Client, load_config
from hcp.preflight.infra import rights

HCP = Path(sys.executable).parent / "hcp"


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
    code, found = doctor(own_server.kubeconfig, f"--infra-kubeconfig-file={kubeconfig}", "--infra-namespace=vms")
    assert code == 1
    assert found["Rights on the infra cluster"]["state"] == "ok"
    assert found["Rights for volumes on the infra cluster"]["state"] == "ok"
    assert "KubeVirt" not in found
    assert found["Infra KubeVirt"]["state"] == "failed"


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
