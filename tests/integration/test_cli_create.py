"""`create` and `destroy` through the installed executable on a real API server."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import yaml
from tests.support.cli_runner import IMAGE, Runner, api_server, hcp_cli
from tests.support.crds import install
from tests.support.eventually import eventually

from hcp.build_info import identity
from hcp.kube import Client
from hcp.kube.resources import CONFIGMAPS, CRDS, HOSTEDCLUSTERS, NAMESPACES, NODEPOOLS, NODES, SECRETS, STORAGECLASSES
from hcp.operator.announce import tell_version

__all__ = ["api_server", "hcp_cli"]
INFRA_LABEL = "hypershift.openshift.io/auto-created-for-infra"
PEM = "-----BEGIN CERTIFICATE-----\nMIIB{}\n-----END CERTIFICATE-----\n"


async def names(client: Client, namespace: str) -> set[str]:
    return {secret["metadata"]["name"] for secret in await client.list(SECRETS, namespace)}


async def test_create_makes_all_objects(hcp_cli: Runner, client: Client, namespace: str) -> None:
    result = hcp_cli.create("demo", namespace, "--ssh-key", str(_key(hcp_cli)), "--annotations", "a=b")
    assert result.out == ""
    cluster = await client.get(HOSTEDCLUSTERS, "demo", namespace)
    infra_id = cluster["spec"]["infraID"]
    assert cluster["spec"]["release"]["image"] == IMAGE
    assert cluster["metadata"]["annotations"]["a"] == "b"
    assert cluster["metadata"]["labels"] == {INFRA_LABEL: infra_id}
    pool = await client.get(NODEPOOLS, "demo", namespace)
    assert pool["spec"]["replicas"] == 2
    assert pool["metadata"]["labels"] == {INFRA_LABEL: infra_id}
    assert await names(client, namespace) == {"demo-pull-secret", "demo-ssh-key", "demo-etcd-encryption-key"}
    secret = await client.get(SECRETS, "demo-etcd-encryption-key", namespace)
    assert len(base64.b64decode(secret["data"]["key"])) == 32
    assert secret["metadata"]["labels"] == {
        INFRA_LABEL: infra_id,
        "hypershift.openshift.io/safe-to-delete-with-cluster": "true",
    }
    managers = {entry["manager"]: entry["operation"] for entry in cluster["metadata"]["managedFields"]}
    assert managers == {"hypershift-cli": "Apply"}


def _key(runner: Runner) -> Path:
    key = runner.folder / "key.pub"
    key.write_text("ssh-ed25519 AAAA me\n")
    return key


async def test_a_new_namespace_is_made_and_a_known_one_is_left_alone(
    hcp_cli: Runner, client: Client, namespace: str
) -> None:
    hcp_cli.create("one", f"{namespace}-new")
    made = await client.get(NAMESPACES, f"{namespace}-new")
    label = made["metadata"]["labels"][INFRA_LABEL]
    hcp_cli.create("two", f"{namespace}-new")
    again = await client.get(NAMESPACES, f"{namespace}-new")
    assert again["metadata"]["labels"][INFRA_LABEL] == label
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_everything_rendered_can_be_applied(hcp_cli: Runner, client: Client, namespace: str) -> None:
    words = [
        *hcp_cli.create_words("demo", namespace),
        "--render",
        "--render-sensitive",
        "--network-multiqueue=Disable",
        "--host-device-name=gpu",
        "--qos-class=Guaranteed",
        "--additional-network=name:ns/nad",
        "--root-volume-access-modes=ReadWriteMany,ReadOnly",
        "--root-volume-volume-mode=Block",
        "--root-volume-cache-strategy=PVC",
        "--infra-storage-class-mapping=a/b,group=g",
        "--infra-volumesnapshot-class-mapping=a/b,group=g",
        "--disable-cluster-capabilities=Console,Ingress",
        "--olm-catalog-placement=guest",
        "--etcd-storage-class=fast",
        "--toleration=key=a,operator=exists,effect=noschedule",
        "--node-selector=a=b",
        "--pausedUntil=true",
        "--kas-dns-name=api.example.com",
        "--ovn-kubernetes-mtu=9000",
        "--olm-disable-default-sources",
    ]
    for document in yaml.safe_load_all(hcp_cli.ok(*words).out):
        if document is not None:
            await client.apply(document)
    pool = await client.get(NODEPOOLS, "demo", namespace)
    kubevirt = pool["spec"]["platform"]["kubevirt"]
    assert kubevirt["networkInterfaceMultiqueue"] == "Disable"
    assert kubevirt["hostDevices"] == [{"deviceName": "gpu", "count": 1}]
    cluster = await client.get(HOSTEDCLUSTERS, "demo", namespace)
    assert cluster["spec"]["pausedUntil"] == pool["spec"]["pausedUntil"] == "true"


async def test_a_run_that_failed_before_the_cluster_is_finished_by_the_next(
    hcp_cli: Runner, client: Client, namespace: str
) -> None:
    policy, binding = _deny("hostedclusters", namespace)
    await client.apply(policy)
    await client.apply(binding)
    await _until_denied(hcp_cli, namespace)
    first = await client.get(SECRETS, "demo-etcd-encryption-key", namespace)
    await client.delete((await client.resource_for(binding)), binding["metadata"]["name"])
    result = await _until_created(hcp_cli, namespace)
    assert "going on with the unfinished cluster" in result
    after = await client.get(SECRETS, "demo-etcd-encryption-key", namespace)
    assert after["data"] == first["data"]
    cluster = await client.get(HOSTEDCLUSTERS, "demo", namespace)
    assert cluster["spec"]["infraID"] == first["metadata"]["labels"][INFRA_LABEL]
    assert (await client.get(NODEPOOLS, "demo", namespace))["spec"]["replicas"] == 2


def _deny(plural: str, namespace: str) -> tuple[dict[str, Any], dict[str, Any]]:
    name = f"deny-{plural}-{namespace}"
    # Trial runs pass: what is to be seen is a failure after other objects are written.
    allowed = f"(has(request.dryRun) && request.dryRun) || object.metadata.namespace != '{namespace}'"
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": ["hypershift.openshift.io"],
                        "apiVersions": ["v1beta1"],
                        "operations": ["CREATE"],
                        "resources": [plural],
                    }
                ]
            },
            "validations": [{"expression": allowed, "message": "not today"}],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    return policy, binding


async def _until_denied(runner: Runner, namespace: str) -> None:
    """Policies act a moment after they are written; a probe with a dry run would not see the same server state."""
    for _ in range(100):
        result = runner.run(*runner.create_words("demo", namespace))
        if result.code:
            assert "not today" in result.err
            assert "run the same command again" in result.err
            return
        runner.ok("destroy", "cluster", "kubevirt", "--name", "demo", "--namespace", namespace)
        await asyncio.sleep(0.1)
    raise AssertionError("the policy never acted")


async def _until_created(runner: Runner, namespace: str) -> str:
    for _ in range(100):
        result = runner.run(*runner.create_words("demo", namespace))
        if result.code == 0:
            return result.err
        await asyncio.sleep(0.1)
    raise AssertionError("the policy never went away")


async def test_a_run_that_failed_before_the_node_pool_is_finished_by_the_next(
    hcp_cli: Runner, client: Client, namespace: str
) -> None:
    hcp_cli.create("demo", namespace)
    before = await client.get(HOSTEDCLUSTERS, "demo", namespace)
    await client.delete(NODEPOOLS, "demo", namespace)
    assert "going on with the unfinished hosted cluster" in hcp_cli.create("demo", namespace).err
    after = await client.get(HOSTEDCLUSTERS, "demo", namespace)
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    pool = await client.get(NODEPOOLS, "demo", namespace)
    assert pool["metadata"]["labels"] == {INFRA_LABEL: before["spec"]["infraID"]}
    assert "already exists" in hcp_cli.fails(*hcp_cli.create_words("demo", namespace))


async def test_a_name_is_used_once_in_the_whole_cluster(hcp_cli: Runner, client: Client, namespace: str) -> None:
    hcp_cli.create("demo", namespace)
    other = hcp_cli.create_words("demo", f"{namespace}-b")
    assert f"already used by hosted cluster {namespace}/demo" in hcp_cli.fails(*other)
    assert await client.get_or_none(NAMESPACES, f"{namespace}-b") is None


async def test_namespaces_of_managed_clusters_are_refused(hcp_cli: Runner, client: Client, namespace: str) -> None:
    label = {"metadata": {"labels": {"cluster.open-cluster-management.io/managedCluster": namespace}}}
    await client.patch(NAMESPACES, namespace, None, label)
    assert "ManagedCluster" in hcp_cli.fails(*hcp_cli.create_words("demo", namespace))
    assert await names(client, namespace) == set()


async def test_the_namespace_a_managed_cluster_is_named_after_is_refused(
    hcp_cli: Runner, client: Client, namespace: str
) -> None:
    group, kind = "cluster.open-cluster-management.io", "ManagedCluster"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"managedclusters.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"plural": "managedclusters", "singular": "managedcluster", "kind": kind},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    await install(client, [crd])
    owner = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": namespace}}
    await eventually(lambda: client.raw("POST", f"/apis/{group}/v1/managedclusters", body=owner), "the kind is served")
    text = hcp_cli.fails(*hcp_cli.create_words("demo", namespace))
    assert f"namespace {namespace} belongs to the ManagedCluster of that name" in text
    assert "choose another --namespace" in text
    await client.delete(CRDS, f"managedclusters.{group}")


async def test_the_ca_bundle_of_another_cluster_is_not_touched(hcp_cli: Runner, client: Client, namespace: str) -> None:
    first, second = hcp_cli.folder / "a.pem", hcp_cli.folder / "b.pem"
    first.write_text(PEM.format("a"))
    second.write_text(PEM.format("b"))
    hcp_cli.create("one", namespace, "--additional-trust-bundle", str(first))
    words = [*hcp_cli.create_words("two", namespace), "--additional-trust-bundle", str(second)]
    text = hcp_cli.fails(*words)
    assert "user-ca-bundle" in text
    assert "--namespace" in text
    assert "two-pull-secret" not in await names(client, namespace)
    hcp_cli.create("two", namespace, "--additional-trust-bundle", str(first))
    hcp_cli.ok("destroy", "cluster", "kubevirt", "--name", "one", "--namespace", namespace)
    assert (await client.get(CONFIGMAPS, "user-ca-bundle", namespace))["data"] == {"ca-bundle.crt": first.read_text()}


async def test_default_release(hcp_cli: Runner, client: Client, namespace: str) -> None:
    words = ["create", "cluster", "kubevirt", "--name=demo", f"--namespace={namespace}", "--pull-secret"]
    words.append(str(hcp_cli.pull_secret))
    text = hcp_cli.fails(*words)
    assert "--release-image" in text
    assert "supported-versions" in text
    await client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "hypershift"}})
    versions = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "supported-versions", "namespace": "hypershift"},
        "data": {
            "default-release": IMAGE,
            "server-version": "another",
            "supported-versions": '{"versions": ["1.36", "1.35"]}',
        },
    }
    await client.apply(versions)
    try:
        assert "version mismatch" in hcp_cli.fails(*words, "--version-check")
        hcp_cli.ok(*words)
        assert (await client.get(HOSTEDCLUSTERS, "demo", namespace))["spec"]["release"]["image"] == IMAGE
        assert (await client.get(NODEPOOLS, "demo", namespace))["spec"]["release"]["image"] == IMAGE
        shown = hcp_cli.ok("version").out.splitlines()
        assert shown[1:] == ["Server Version: another", "Server Supports Versions: 1.36, 1.35"]
        await tell_version(client, "hypershift")
        assert hcp_cli.ok("version").out.splitlines()[1] == f"Server Version: {identity()}"
        hcp_cli.ok(*words, "--name=second", "--version-check")
    finally:
        await client.delete(CONFIGMAPS, "supported-versions", "hypershift")


async def test_missing_storage_classes_are_warned_about(hcp_cli: Runner, client: Client, namespace: str) -> None:
    storage = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "there", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "none",
    }
    await client.apply(storage)
    try:
        err = hcp_cli.create("demo", namespace, "--etcd-storage-class=nope").err
        assert "--etcd-storage-class nope: there is no such StorageClass yet (there are: there)" in err
        assert "root-volume" not in err
    finally:
        await client.delete(STORAGECLASSES, "there")


async def test_destroy_removes_what_was_made(hcp_cli: Runner, client: Client, namespace: str) -> None:
    hcp_cli.create("demo", namespace)
    hcp_cli.create("other", namespace)
    destroy = ("destroy", "cluster", "kubevirt", "--name", "demo", "--namespace", namespace)
    hcp_cli.ok(*destroy)
    assert await client.get_or_none(HOSTEDCLUSTERS, "demo", namespace) is None
    assert await names(client, namespace) == {"other-pull-secret", "other-etcd-encryption-key"}
    assert "infrastructure ID is required" in hcp_cli.fails(*destroy, code=4)
    hcp_cli.ok(*destroy, "--infra-id", "demo-abcde")


async def test_destroy_cleans_up_after_rendered_manifests(hcp_cli: Runner, client: Client, namespace: str) -> None:
    rendered = hcp_cli.ok(*hcp_cli.create_words("demo", namespace), "--render", "--render-sensitive").out
    for document in yaml.safe_load_all(rendered):
        if document is not None:
            await client.apply(document)
    hcp_cli.ok("destroy", "cluster", "kubevirt", "--name", "demo", "--namespace", namespace)
    assert await names(client, namespace) == set()


async def test_destroy_marks_cloud_resources_and_waits(hcp_cli: Runner, client: Client, namespace: str) -> None:
    hcp_cli.create("demo", namespace)
    held = {"metadata": {"finalizers": ["hypershift.openshift.io/finalizer"]}}
    await client.patch(HOSTEDCLUSTERS, "demo", namespace, held)
    destroy = ("destroy", "cluster", "kubevirt", "--name", "demo", "--namespace", namespace)
    text = hcp_cli.fails(*destroy, "--cluster-grace-period", "8s", code=3)
    assert "held by hypershift.openshift.io/finalizer" in text
    cluster = await client.get(HOSTEDCLUSTERS, "demo", namespace)
    assert cluster["metadata"]["annotations"]["hypershift.openshift.io/cleanup-cloud-resources"] == "true"
    assert "demo-etcd-encryption-key" in await names(client, namespace)
    await client.patch(HOSTEDCLUSTERS, "demo", namespace, {"metadata": {"finalizers": None}})
    hcp_cli.ok(*destroy, "--infra-id", cluster["spec"]["infraID"])
    assert await names(client, namespace) == set()


async def test_what_the_api_refuses_is_shown_before_anything_is_written(
    hcp_cli: Runner, client: Client, namespace: str
) -> None:
    sources = hcp_cli.folder / "sources.yaml"
    sources.write_text(yaml.safe_dump([{"source": f"quay.io/{number}", "mirrors": ["m"]} for number in range(300)]))
    text = hcp_cli.fails(*hcp_cli.create_words("demo", namespace), f"--image-content-sources={sources}")
    assert f'failed to apply object "{namespace}/demo"' in text
    assert "imageContentSources" in text
    assert await names(client, namespace) == set()


async def test_node_ports_take_the_address_of_a_node(hcp_cli: Runner, client: Client, namespace: str) -> None:
    words = [*hcp_cli.create_words("demo", namespace), "--service-publishing-strategy=NodePort"]
    assert "--api-server-address" in hcp_cli.run(*words, prog="hypershift").err
    labels = {"kubernetes.io/arch": "amd64"}
    await client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "one", "labels": labels}})
    try:
        addresses = [{"type": "Hostname", "address": "one"}, {"type": "InternalIP", "address": "10.0.0.9"}]
        await client.patch(NODES, "one", None, {"status": {"addresses": addresses}}, subresource="status")
        text = hcp_cli.fails(*hcp_cli.create_words("demo", namespace), "--arch=s390x")
        assert "--arch s390x cannot run on the management cluster, whose nodes have amd64" in text
        hcp_cli.ok(*words, prog="hypershift")
    finally:
        await client.delete(NODES, "one")
    cluster = await client.get(HOSTEDCLUSTERS, "demo", namespace)
    for service in cluster["spec"]["services"]:
        assert service["servicePublishingStrategy"] == {"type": "NodePort", "nodePort": {"address": "10.0.0.9"}}


async def test_a_stream_that_cannot_be_looked_up(hcp_cli: Runner, namespace: str) -> None:
    words = ["create", "cluster", "kubevirt", "--name=demo", f"--namespace={namespace}", "--release-stream=4-stable"]
    text = hcp_cli.fails(*words, f"--pull-secret={hcp_cli.pull_secret}", "--render")
    assert "the release stream '4-stable' cannot be looked up" in text
    assert "--release-image" in text
