"""Everything but `create cluster`, through the installed executable on a real API server."""

from __future__ import annotations

import base64
import tarfile
from pathlib import Path
from typing import Any

import yaml
from tests.support.api_server import ApiServer
from tests.support.cli_runner import IMAGE, Runner, api_server, hcp_cli
from tests.support.cli_status import KUBECONFIG, make_ready
from tests.support.eventually import eventually

from hcp import pki
from hcp.kube import Client
from hcp.kube.resources import HOSTEDCLUSTERS, NODEPOOLS, SECRETS

__all__ = ["api_server", "hcp_cli"]
COLUMNS = ["NAME", "VERSION", "KUBECONFIG", "PROGRESS", "AVAILABLE", "PROGRESSING", "MESSAGE"]
NEWER = "registry.example.com/release:1.36.4"


async def test_node_pools(hcp_cli: Runner, client: Client, namespace: str) -> None:
    hcp_cli.create("demo", namespace)
    add = ["create", "nodepool", "kubevirt", "--name", "big", "--namespace", namespace]
    text = hcp_cli.fails(*add, "--cluster-name", "nope", code=4)
    assert f"failed to get HostedCluster {namespace}/nope" in text
    result = hcp_cli.ok(*add, "--cluster-name", "demo", "--replicas", "3", "--memory", "16Gi")
    assert result.out == "NodePool big created\n"
    pool = await client.get(NODEPOOLS, "big", namespace)
    assert pool["spec"]["release"]["image"] == IMAGE
    assert pool["spec"]["replicas"] == 3
    assert "already exists" in hcp_cli.fails(*add, "--cluster-name", "demo")
    assert (
        hcp_cli.ok("scale", "nodepool", "big", "--replicas=1", "-n", namespace).out
        == "NodePool big scaled from 3 to 1\n"
    )
    assert (await client.get(NODEPOOLS, "big", namespace))["spec"]["replicas"] == 1
    assert "there are: big, demo" in hcp_cli.fails("scale", "nodepool", "x", "--replicas=1", "-n", namespace, code=4)
    assert "--replicas" in hcp_cli.fails("scale", "nodepool", "big", "--replicas=-1", "-n", namespace)
    table = hcp_cli.ok("get", "nodepools", "-n", namespace).out.splitlines()
    assert table[0].split() == [
        "NAME",
        "CLUSTER",
        "DESIRED",
        "NODES",
        "CURRENT",
        "NODES",
        "VERSION",
        "READY",
        "MESSAGE",
    ]
    assert [line.split()[:3] for line in table[1:]] == [["big", "demo", "1"], ["demo", "demo", "2"]]
    hcp_cli.ok("destroy", "nodepool", "--name", "big", "--namespace", namespace, "--wait")
    assert await client.get_or_none(NODEPOOLS, "big", namespace) is None
    assert "is not there" in hcp_cli.ok("destroy", "nodepool", "--name", "big", "--namespace", namespace).err


async def test_a_pool_has_to_fit_its_cluster(hcp_cli: Runner, client: Client, namespace: str) -> None:
    hcp_cli.create("demo", namespace)
    status = {"status": {"payloadArch": "S390X"}}
    await client.patch(HOSTEDCLUSTERS, "demo", namespace, status, subresource="status")
    add = ("create", "nodepool", "kubevirt", "--name", "big", "--cluster-name", "demo", "-n", namespace)
    text = hcp_cli.fails(*add)
    assert "amd64" in text
    assert "S390X" in text
    assert "created" in hcp_cli.ok(*add, "--arch", "s390x").out


async def test_status_and_lists(hcp_cli: Runner, client: Client, namespace: str) -> None:
    assert f"no hosted clusters in namespace {namespace}" in hcp_cli.ok("get", "clusters", "-n", namespace).err
    hcp_cli.create("demo", namespace)
    waiting = hcp_cli.ok("status", "demo", "-n", namespace).out
    assert "not available yet" in waiting
    assert "Waiting for" in waiting
    await make_ready(client, namespace, "demo")
    ready = hcp_cli.ok("status", "demo", "-n", namespace).out
    assert f"hosted cluster {namespace}/demo: ready" in ready
    assert "https://demo.example.com:6443" in ready
    assert "2 of 2" in ready
    data = hcp_cli.json("status", "demo", "-n", namespace)
    assert data["version"] == "1.36.3"
    assert data["waitingFor"] == []
    lines = hcp_cli.ok("get", "clusters", "-A").out.splitlines()
    assert lines[0].split() == ["NAMESPACE", *COLUMNS]
    assert lines[1].split()[:6] == [namespace, "demo", "1.36.3", "demo-admin-kubeconfig", "Completed", "True"]
    assert hcp_cli.json("get", "clusters", "demo", "-n", namespace)["kind"] == "HostedCluster"
    assert hcp_cli.ok("get", "clusters", "-n", namespace, "-o", "name").out.endswith("/demo\n")
    assert (
        yaml.safe_load(hcp_cli.ok("get", "nodepools", "-n", namespace, "-oyaml").out)["items"][0]["kind"] == "NodePool"
    )
    text = hcp_cli.fails("status", "nope", "-n", namespace, code=4)
    assert f"there are: {namespace}/demo" in text


async def test_kubeconfigs(hcp_cli: Runner, client: Client, namespace: str) -> None:
    hcp_cli.create("one", namespace)
    hcp_cli.create("two", namespace)
    text = hcp_cli.fails("create", "kubeconfig", "--name", "one", "-n", namespace)
    assert "doesn't report a kubeconfig" in text
    await make_ready(client, namespace, "one")
    single = hcp_cli.ok("create", "kubeconfig", "--name", "one", "--namespace", namespace)
    assert yaml.safe_load(single.out)["users"] == yaml.safe_load(KUBECONFIG.format("one"))["users"]
    result = hcp_cli.ok("create", "kubeconfig", "--namespace", namespace)
    merged = yaml.safe_load(result.out)
    assert f"left out {namespace}/two" in result.err
    assert merged["current-context"] == f"{namespace}-one"
    assert merged["contexts"] == [
        {
            "name": f"{namespace}-one",
            "context": {"cluster": f"{namespace}-one", "user": f"{namespace}-one-admin", "namespace": "default"},
        }
    ]
    await make_ready(client, namespace, "two")
    everywhere = yaml.safe_load(hcp_cli.ok("create", "kubeconfig", "-A").out)
    assert {entry["name"] for entry in everywhere["clusters"]} == {f"{namespace}-one", f"{namespace}-two"}
    broken = {"data": {"kubeconfig": base64.b64encode(b"clusters: 1").decode()}}
    await client.patch(SECRETS, "two-admin-kubeconfig", namespace, broken)
    assert f"left out {namespace}/two" in hcp_cli.ok("create", "kubeconfig", "-n", namespace).err


async def test_upgrades(hcp_cli: Runner, client: Client, namespace: str) -> None:
    hcp_cli.create("demo", namespace)
    await make_ready(client, namespace, "demo")
    up = hcp_cli.start(
        "upgrade", "cluster", "demo", "-n", namespace, "--release-image", NEWER, "--wait", "--timeout=300s"
    )

    async def asked_for() -> bool:
        live = await client.get(HOSTEDCLUSTERS, "demo", namespace)
        return bool(live["spec"]["release"]["image"] == NEWER)

    await eventually(asked_for, "the other release is asked for")
    assert up.poll() is None
    await make_ready(client, namespace, "demo", image=NEWER)
    out, err = up.communicate(timeout=300)
    assert up.returncode == 0, err
    assert out == f"HostedCluster demo moves from {IMAGE} to {NEWER}\n"
    assert (await client.get(NODEPOOLS, "demo", namespace))["spec"]["release"]["image"] == IMAGE
    assert hcp_cli.ok("upgrade", "nodepool", "demo", "-n", namespace, "--wait").out.startswith("NodePool demo moves")
    assert (await client.get(NODEPOOLS, "demo", namespace))["spec"]["release"]["image"] == NEWER
    again = hcp_cli.ok("upgrade", "cluster", "demo", "-n", namespace, "--release-image", NEWER)
    assert again.out == f"HostedCluster demo is on {NEWER} already\n"


def with_user(server: ApiServer, folder: Path, name: str, user: dict[str, Any]) -> str:
    """The server's kubeconfig with another user in it."""
    config = yaml.safe_load(server.kubeconfig.read_text())
    config["users"] = [{"name": entry["name"], "user": user} for entry in config["users"]]
    (folder / name).write_text(yaml.safe_dump(config))
    return str(folder / name)


def test_bad_clusters_are_told_apart(own_server: ApiServer, tmp_path: Path) -> None:
    runner = Runner(own_server.kubeconfig, tmp_path)
    get = ("get", "clusters")
    assert "hcp install" in runner.fails(*get)
    assert "hcp install" in runner.fails(*runner.create_words("demo", "clusters"))
    wrong = with_user(own_server, tmp_path, "wrong", {"token": "wrong"})
    assert "does not accept these credentials" in runner.fails(*get, "--kubeconfig", wrong)
    nobody = with_user(own_server, tmp_path, "nobody", {"token": "nobody-token"})
    text = runner.fails(*get, "--kubeconfig", nobody)
    assert "Not allowed to list hostedclusters" in text
    assert "Hint: Ask for a role" in text
    folder = own_server.directory
    ca = pki.KeyPair((folder / "ca.crt").read_bytes(), (folder / "ca.key").read_bytes())
    old = pki.issue(ca, "admin", orgs=("system:masters",), usage="client", days=0)
    pair = {"client-certificate-data": _b64(old.cert_pem), "client-key-data": _b64(old.key_pem)}
    text = runner.fails(*get, "--kubeconfig", with_user(own_server, tmp_path, "old", pair))
    assert "expired" in text
    assert "Hint: " in text
    assert "does not exist" in runner.fails(*get, "--kubeconfig", str(tmp_path / "none"))
    (tmp_path / "broken").write_text("{")
    assert "not valid YAML" in runner.fails(*get, "--kubeconfig", str(tmp_path / "broken"))
    assert str(tmp_path) in runner.fails(*get, "--kubeconfig", str(tmp_path))
    assert 'no context named "nope"' in runner.fails(*get, "--context", "nope")
    own_server.stop()
    text = runner.fails(*get)
    assert "cannot be reached" in text
    assert "Hint: " in text


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def test_dumps(hcp_cli: Runner, client: Client, namespace: str) -> None:
    hcp_cli.create("demo", namespace)
    folder = hcp_cli.folder / "dump"
    result = hcp_cli.ok("dump", "cluster", "--name=demo", "-n", namespace, f"--artifact-dir={folder}")
    assert result.out == f"{folder}\n"
    secrets = folder / "namespaces" / namespace / "core" / "secrets.yaml"
    found = yaml.safe_load(secrets.read_text())
    assert {item["metadata"]["name"] for item in found["items"]} == {"demo-pull-secret", "demo-etcd-encryption-key"}
    key = await client.get(SECRETS, "demo-etcd-encryption-key", namespace)
    assert key["data"]["key"] not in secrets.read_text()
    kinds = folder / "namespaces" / namespace / "hypershift.openshift.io"
    assert {file.name for file in kinds.iterdir()} == {"hostedclusters.yaml", "nodepools.yaml"}
    with tarfile.open(folder / "hypershift-dump.tar.gz") as archive:
        assert f"namespaces/{namespace}/core/secrets.yaml" in archive.getnames()
    text = hcp_cli.fails("dump", "cluster", "--name=demo", "-n", namespace, f"--artifact-dir={folder}", "--as=nobody")
    assert "Not allowed" in text
    text = hcp_cli.fails("dump", "cluster", "--name=demo", "-n", namespace)
    assert 'required flag(s) "artifact-dir" not set' in text
    hcp_cli.fails("dump", "cluster", "--name=nope", "-n", namespace, f"--artifact-dir={folder}", code=4)
