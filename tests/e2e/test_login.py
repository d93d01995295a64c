"""People log in to a hosted cluster on an embedded one, through the router: by `hcp login`, a browser, and `oc`.

No machines: what a node starts, an identity provider or the word of a node starts too. Each test builds on the one
before.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.e2e.control_planes import NS, available, condition, create, guest_of
from tests.support.e2e.hosted_tools import Guest
from tests.support.e2e.local_tools import Cluster, hcp
from tests.support.eventually import eventually_sync
from tests.support.login import HASH, PASSWORD

NAME, CLUSTER = "login", "door"
HOSTED = f"{NS}-{CLUSTER}"
RELEASE = "release-1.36-login"

pytestmark = pytest.mark.timeout(3000)


@pytest.fixture(scope="module")
def management(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    hcp("local", "up", "--name", NAME, "--profile", "cluster")
    try:
        lines = hcp("local", "push", "--name", NAME, "image-hcp", RELEASE).stdout.splitlines()
        image = next(line.split()[1] for line in lines if line.startswith(f"{RELEASE} "))
        found = Cluster(NAME, tmp_path_factory.mktemp("login"))
        hcp("install", "--kubeconfig", str(found.kubeconfig), "--wait-until-available")
        found.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}})
        create(found, found.kubeconfig.parent, CLUSTER, "--release-image", image)
        available(found, CLUSTER)
        yield found
    finally:
        hcp("local", "down", "--name", NAME, "--purge")


@pytest.fixture(scope="module")
def guest(management: Cluster) -> Guest:
    return guest_of(management, management.kubeconfig.parent, CLUSTER)


def deployments(management: Cluster) -> dict[str, int]:
    found = management.get("deployments", "-n", HOSTED)["items"]
    return {one["metadata"]["name"]: one["metadata"]["generation"] for one in found}


def login(management: Cluster, folder: Path, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    access = ("--kubeconfig", str(management.kubeconfig), "--to", str(folder / "user.kubeconfig"))
    return hcp("login", "--name", CLUSTER, *access, *words, check=check, env={"HOME": str(folder)})


def kubectl(management: Cluster, folder: Path, *words: str) -> str:
    command = [str(management.kubectl_binary), f"--kubeconfig={folder / 'user.kubeconfig'}", *words]
    env = {**os.environ, "HOME": str(folder)}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=env).stdout.strip()


def who(management: Cluster, folder: Path) -> str:
    return kubectl(management, folder, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")


def test_kubeadmin_logs_in_through_the_router_and_the_api_server_stays(
    management: Cluster, guest: Guest, tmp_path: Path
) -> None:
    before = deployments(management)
    assert "oauth-openshift" not in before, "nobody would log in yet"
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "word-of-a-node"}}
    guest.kubectl("apply", "-f", "-", stdin=json.dumps(node))

    def told() -> bool:
        status = management.get("hostedcluster", CLUSTER, "-n", NS)["status"]
        return bool(status.get("kubeadminPassword")) and bool(status.get("oauthCallbackURLTemplate"))

    eventually_sync(told, "the status names the password", 300)
    management.kubectl("rollout", "status", "deployment/oauth-openshift", "-n", HOSTED, "--timeout=300s")
    eventually_sync(lambda: login(management, tmp_path, check=False).returncode == 0, "kubeadmin logs in", 300)
    eventually_sync(lambda: who(management, tmp_path) == "kube:admin", "its token is believed", 300)
    assert kubectl(management, tmp_path, "auth", "can-i", "*", "*", "--all-namespaces") == "yes"
    after = deployments(management)
    assert after["kube-apiserver"] == before["kube-apiserver"], "it reads whom to believe while it runs"


def test_its_rights_end_with_the_secret_inside(management: Cluster, guest: Guest, tmp_path: Path) -> None:
    login(management, tmp_path)
    eventually_sync(lambda: who(management, tmp_path) == "kube:admin", "its token is believed", 300)
    guest.kubectl("delete", "secret", "kubeadmin", "-n", "kube-system")
    eventually_sync(
        lambda: kubectl(management, tmp_path, "auth", "can-i", "get", "nodes") == "no", "the rights are gone", 60
    )

    def forgotten() -> bool:
        names = {one["metadata"]["name"] for one in management.get("secrets", "-n", NS)["items"]}
        return f"{CLUSTER}-kubeadmin-password" not in names

    eventually_sync(forgotten, "and the password", 60)


def test_users_of_a_file_log_in_and_the_condition_says_so(management: Cluster, tmp_path: Path) -> None:
    data = {"htpasswd": base64.b64encode(f"alice:{HASH}\n".encode()).decode()}
    management.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "people", "namespace": NS}, "data": data}
    )
    provider = {"name": "people", "type": "HTPasswd", "htpasswd": {"fileData": {"name": "people"}}}
    patch = {"spec": {"configuration": {"oauth": {"identityProviders": [provider]}}}}
    management.kubectl("patch", "hostedcluster", CLUSTER, "-n", NS, "--type=merge", "-p", json.dumps(patch))

    def logged_in() -> bool:
        return login(management, tmp_path, "-u", "alice", "-p", PASSWORD, check=False).returncode == 0

    eventually_sync(logged_in, "alice logs in", 300)
    eventually_sync(lambda: who(management, tmp_path) == "alice", "her token is believed", 300)
    assert condition(management, CLUSTER, "ValidIDPConfiguration")["status"] == "True"
    assert "kubeadminPassword" not in management.get("hostedcluster", CLUSTER, "-n", NS)["status"]
