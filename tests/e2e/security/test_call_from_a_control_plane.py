"""A tenant is administrator of its cluster and has its API server call addresses of the management cluster by URL.

Every target is first shown to answer a pod of the management cluster that no policy holds.
"""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.e2e.control_planes import NS, available, create, guest_of
from tests.support.e2e.hosted_tools import Guest
from tests.support.e2e.local_tools import Cluster, hcp, namespace, server, service
from tests.support.e2e.packets import METADATA, answers, metadata_listener
from tests.support.e2e.world import ADDRESS, PORT, World, world
from tests.support.eventually import eventually_sync

NAME = "e2e-calls"
PRIVATE = "private"
Target = tuple[str, int]

pytestmark = pytest.mark.timeout(3000)


@pytest.fixture(scope="module")
def management(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    hcp("local", "up", "--name", NAME, "--profile", "cluster")
    try:
        hcp("local", "push", "--name", NAME, "image-hcp", "release-1.36")
        found = Cluster(NAME, tmp_path_factory.mktemp("calls"))
        hcp("install", "--kubeconfig", str(found.kubeconfig), "--wait-until-available")
        image = found.image()
        found.apply(
            namespace(NS), namespace(PRIVATE), server(PRIVATE, "victim", image), server(PRIVATE, "friend", image)
        )
        found.apply(service(PRIVATE, "victim"), metadata_listener(PRIVATE, image))
        found.wait_pods(PRIVATE, "victim", "friend", "metadata")
        yield found
    finally:
        hcp("local", "down", "--name", NAME, "--purge")


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("world")) as found:
        yield found


@pytest.fixture(scope="module")
def guest(management: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Guest:
    folder = tmp_path_factory.mktemp("guest")
    for name in ("mine", "other"):
        create(management, folder, name)
    for name in ("mine", "other"):
        available(management, name)
    return guest_of(management, folder, "mine")


def pod_address(management: Cluster, ns: str, selector: str) -> str:
    found: str = management.get("pods", "-n", ns, "-l", selector)["items"][0]["status"]["podIP"]
    return found


def node_address(management: Cluster) -> str:
    [node] = management.get("nodes")["items"]
    found: str = next(a["address"] for a in node["status"]["addresses"] if a["type"] == "InternalIP")
    return found


def targets(management: Cluster) -> dict[str, Target]:
    address = node_address(management)
    other = f"{NS}-other"
    component = "hypershift.openshift.io/control-plane-component="
    balancer = management.get("service", "kube-apiserver", "-n", other)["status"]["loadBalancer"]["ingress"][0]["ip"]
    return {
        "a pod": (pod_address(management, PRIVATE, "app=victim"), 8080),
        "a Service": (management.get("service", "victim", "-n", PRIVATE)["spec"]["clusterIP"], 80),
        "the management API": (address, 6443),
        "its Service": (management.get("service", "kubernetes")["spec"]["clusterIP"], 443),
        "a kubelet": (address, 10250),
        "metadata": (METADATA, 80),
        "etcd of others": (pod_address(management, other, f"{component}etcd"), 2379),
        "the API of others": (pod_address(management, other, f"{component}kube-apiserver"), 6443),
        "the published API of others": (balancer, 6443),
        "the operator": (pod_address(management, "hypershift", "name=operator"), 9000),
    }


def webhook(url: str, ca: bytes) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "calls"},
        "webhooks": [
            {
                "name": "calls.example.com",
                "clientConfig": {"url": url, "caBundle": base64.b64encode(ca).decode()},
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["configmaps"],
                        "scope": "Namespaced",
                    }
                ],
                "namespaceSelector": {"matchLabels": {"calls": "yes"}},
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "timeoutSeconds": 3,
            }
        ],
    }


def call(guest: Guest, url: str, ca: bytes) -> str:
    """What the API server says after it was made to call a URL; empty when the call was answered well."""
    guest.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(webhook(url, ca)))
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "call-", "namespace": "calls"}}

    def asked() -> str | None:
        """A webhook is known a moment after it was made: until then nothing is called."""
        try:
            guest.kubectl("create", "-f", "-", stdin=yaml.safe_dump(made))
        except AssertionError as error:
            return str(error) if "calls.example.com" in str(error) and url in str(error) else None
        return ""

    [said] = eventually_sync(lambda: [answer for answer in (asked(),) if answer is not None], f"a call of {url}")
    return str(said)


def test_targets_in_the_management_cluster_are_not_reached(management: Cluster, guest: Guest, outside: World) -> None:
    labels = {"metadata": {"name": "calls", "labels": {"calls": "yes"}}}
    guest.kubectl("apply", "-f", "-", stdin=yaml.safe_dump({**namespace("calls"), **labels}))
    for what, (host, port) in targets(management).items():
        # These two let no pod in, which is another border; the node is held by none.
        asker = "metadata" if what in ("the operator", "etcd of others") else "friend"
        assert answers(management, PRIVATE, asker, host, port), f"{what} does not answer at all"
        url = f"https://{host}:{port}/"
        said = eventually_sync(functools.partial(call, guest, url, outside.ca_pem), f"the webhook for {what}")
        assert any(word in said for word in ("refused", "timeout", "deadline", "unreachable")), f"{what}: {said}"
        assert "x509" not in said and "HTTP response" not in said, f"{what}: {said}"


def test_a_webhook_outside_is_called(guest: Guest, outside: World) -> None:
    url = f"https://{ADDRESS}:{PORT}/"
    eventually_sync(lambda: call(guest, url, outside.ca_pem) == "" and outside.calls > 0, "a call to the world", 60)
    guest.kubectl("delete", "validatingwebhookconfiguration", "calls")


def test_a_conversion_by_url_does_not_reach_the_management_cluster(
    management: Cluster, guest: Guest, outside: World, tmp_path: Path
) -> None:
    host = pod_address(management, PRIVATE, "app=victim")
    url = f"https://{host}:8080/"
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == "v1",
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        }
        for name in ("v1", "v2")
    ]
    kind = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.calls.example.com"},
        "spec": {
            "group": "calls.example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": versions,
            "conversion": {
                "strategy": "Webhook",
                "webhook": {
                    "conversionReviewVersions": ["v1"],
                    "clientConfig": {"url": url, "caBundle": base64.b64encode(outside.ca_pem).decode()},
                },
            },
        },
    }
    thing = {"apiVersion": "calls.example.com/v1", "kind": "Thing", "metadata": {"name": "one", "namespace": "default"}}
    guest.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(kind))
    eventually_sync(lambda: guest.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(thing)), "a thing")
    with pytest.raises(AssertionError) as said:
        guest.kubectl("get", "things.v2.calls.example.com", "one")
    assert url in str(said.value), said.value
    assert any(word in str(said.value) for word in ("refused", "timeout", "deadline")), said.value


def issue_by(management: Cluster, url: str) -> None:
    """The hosted API server takes tokens of an issuer, as its flags say it; the operator is paused meanwhile.

    Setting an issuer in the HostedCluster has no effect yet. Where the API server may dial is the same whoever wrote
    the flags, and that is what counts here.
    """
    ns = f"{NS}-mine"
    [container] = [
        (index, found)
        for index, found in enumerate(api_server(management)["spec"]["template"]["spec"]["containers"])
        if found["name"] == "kube-apiserver"
    ]
    field = "args" if container[1].get("args") else "command"
    kept = [word for word in container[1][field] if not word.startswith("--oidc-")]
    words = [*kept, f"--oidc-issuer-url={url}", "--oidc-client-id=tests"]
    path = f"/spec/template/spec/containers/{container[0]}/{field}"
    patch = json.dumps([{"op": "replace", "path": path, "value": words}])
    management.kubectl("patch", "deployment", "kube-apiserver", "-n", ns, "--type=json", "-p", patch)
    management.kubectl("rollout", "status", "deployment/kube-apiserver", "-n", ns, "--timeout=300s", seconds=320)


def api_server(management: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = management.get("deployment", "kube-apiserver", "-n", f"{NS}-mine")
    return found


def said_of_issuer(management: Cluster, url: str) -> str:
    """What the API server logs about asking its issuer; it tries again every few seconds."""
    words = ("logs", "deployment/kube-apiserver", "-n", f"{NS}-mine", "-c", "kube-apiserver", "--tail=-1")
    lines = [line for line in management.kubectl(*words).splitlines() if f"{url}/.well-known" in line]
    return lines[-1] if lines else ""


def test_an_issuer_of_tokens_in_the_management_cluster_is_not_dialled(
    management: Cluster, guest: Guest, outside: World
) -> None:
    pause = json.dumps({"spec": {"pausedUntil": "true"}})
    management.kubectl("patch", "hostedcluster", "mine", "-n", NS, "--type=merge", "-p", pause)
    for host, port in ((pod_address(management, PRIVATE, "app=victim"), 8080), (node_address(management), 6443)):
        assert answers(management, PRIVATE, "friend", host, port)
        url = f"https://{host}:{port}"
        issue_by(management, url)
        said = eventually_sync(functools.partial(said_of_issuer, management, url), f"the API server asks {url}", 120)
        assert any(word in said for word in ("refused", "timeout", "deadline", "unreachable")), said
        assert "x509" not in said and "HTTP response" not in said, said


def test_an_issuer_of_tokens_outside_is_dialled(management: Cluster, guest: Guest, outside: World) -> None:
    """It does not trust the certificate there, but it has seen it."""
    url = f"https://{ADDRESS}:{PORT}"
    issue_by(management, url)
    said = eventually_sync(functools.partial(said_of_issuer, management, url), f"the API server asks {url}", 120)
    assert "x509" in said, said
    back = json.dumps({"spec": {"pausedUntil": None}})
    management.kubectl("patch", "hostedcluster", "mine", "-n", NS, "--type=merge", "-p", back)

    def as_before() -> bool:
        return "--oidc-" not in json.dumps(api_server(management)["spec"]["template"])

    eventually_sync(as_before, "the operator takes its API server back", 120)
