"""Hosted control planes are backed up from one management cluster, which is then lost, and come back on another.

The kubelet, the API server's tunnels into pods and the operator's own image are real here; no machines are needed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.e2e.control_planes import NS, available, condition, create, guest_of
from tests.support.e2e.hosted_tools import Guest
from tests.support.e2e.local_tools import Cluster, hcp
from tests.support.eventually import eventually_sync
from tests.support.s3_server import elsewhere

ONE, TWO = "backup-one", "backup-two"
pytestmark = pytest.mark.timeout(5400)
HOSTED = f"{NS}-kept"
WIDE = "wide"
IN_BUCKET = "s3://backups/deep"
S3_KEYS = {"AWS_ACCESS_KEY_ID": "access", "AWS_SECRET_ACCESS_KEY": "a/secret+with=signs"}
AUTHORITIES = ("root-ca", "system-admin-signer", "sa-signing-key", "cluster-signer-ca")


def up(name: str, folder: Path) -> Cluster:
    hcp("local", "up", "--name", name, "--profile", "cluster")
    hcp("local", "push", "--name", name, "image-hcp", "release-1.36")
    found = Cluster(name, folder)
    hcp("install", "--kubeconfig", str(found.kubeconfig), "--wait-until-available")
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("backup")
    (found / "passphrase").write_text("a passphrase for tests\n")
    return found


@pytest.fixture(scope="module")
def first(folder: Path) -> Iterator[Cluster]:
    try:
        found = up(ONE, folder)
        found.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}})
        create(found, folder, "kept")
        available(found, "kept")
        yield found
    finally:
        hcp("local", "down", "--name", ONE, "--purge", check=False)


@pytest.fixture(scope="module")
def run(folder: Path) -> Callable[..., str]:
    """A backup command with the store and the passphrase of these tests."""

    def call(*words: str, management: Cluster | None = None, check: bool = True) -> str:
        flag = "--from" if words[0] == "restore" else "--store"
        where = (flag, str(folder / "store"))
        lock = () if words[1] in ("list", "delete") else ("--passphrase-file", str(folder / "passphrase"))
        access = ("--kubeconfig", str(management.kubeconfig)) if management else ()
        done = hcp(*words, *where, *lock, *access, check=check)
        return done.stdout.strip() if check else done.stdout + done.stderr

    return call


@pytest.fixture(scope="module")
def bucket(folder: Path) -> Iterator[tuple[str, ...]]:
    """The flags of an object store that pods reach too."""
    home = folder / "s3"
    (home / "backups").mkdir(parents=True)
    with elsewhere(home, S3_KEYS["AWS_ACCESS_KEY_ID"], S3_KEYS["AWS_SECRET_ACCESS_KEY"]) as url:
        yield ("--s3-endpoint", url)


def keys(management: Cluster) -> dict[str, Any]:
    return {name: management.get("secret", name, "-n", HOSTED)["data"] for name in AUTHORITIES}


def token(guest: Guest) -> str:
    return guest.kubectl("create", "token", "robot", "--duration=24h").strip()


def rows(guest: Guest) -> set[str]:
    return {one["metadata"]["name"] for one in guest.get("configmaps", "-n", "default")["items"]}


def test_a_running_cluster_is_backed_up_listed_and_verified(
    first: Cluster, folder: Path, run: Callable[..., str]
) -> None:
    guest = guest_of(first, folder, "kept")
    guest.kubectl("create", "serviceaccount", "robot")
    guest.kubectl("create", "secret", "generic", "word", "--from-literal=word=of-the-tenant")
    for number in range(5):
        guest.kubectl("create", "configmap", f"row-{number}", f"--from-literal=n={number}")
    (folder / "token").write_text(token(guest))
    (folder / "keys").write_text(json.dumps(keys(first)))
    name = run("backup", "create", "kept", management=first)
    assert name.startswith("clusters_kept_")
    [file] = (folder / "store").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert b"of-the-tenant" not in file.read_bytes()
    [entry] = json.loads(run("backup", "list", "-o", "json"))
    assert (entry["name"], entry["encryption"]) == (name, "passphrase")
    assert "restored and compared" in run("backup", "verify", name)


def test_old_backups_go_and_wrong_passphrases_are_told(first: Cluster, folder: Path, run: Callable[..., str]) -> None:
    before = run("backup", "list", "-o", "name")
    name = run("backup", "create", "kept", "--keep", "1", management=first)
    assert run("backup", "list", "-o", "name") == name != before
    wrong = folder / "wrong"
    wrong.write_text("another passphrase\n")
    said = hcp(
        *("backup", "verify", name, "--store", str(folder / "store"), "--passphrase-file", str(wrong)), check=False
    )
    assert said.returncode == 1
    assert "the passphrase or key is another one" in said.stderr
    assert "hosted cluster clusters/kept exists" in run("restore", "kept", management=first, check=False)


def test_a_schedule_makes_backups_with_few_rights_and_ends_with_its_cluster(first: Cluster, folder: Path) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "backups", "namespace": "hypershift"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    first.apply(claim)
    first.kubectl("create", "secret", "generic", "backup", "-n", "hypershift", f"--from-file={folder / 'passphrase'}")
    words = ("backup", "schedule", "kept", "--kubeconfig", str(first.kubeconfig))
    hcp(*words, "--cron", "0 2 * * *", "--store", "claim:backups", "--secret", "backup", "--keep", "2")
    job = f"backup-{HOSTED}"
    first.kubectl("create", "job", "-n", "hypershift", f"--from=cronjob/{job}", "now")
    first.kubectl("wait", "-n", "hypershift", "--for=condition=Complete", "job/now", "--timeout=300s")
    assert "clusters_kept_" in first.kubectl("logs", "-n", "hypershift", "job/now")
    account = f"--as=system:serviceaccount:hypershift:{job}"
    for verb, kind, ns in (("get", "secrets", "hypershift"), ("list", "secrets", HOSTED), ("create", "pods", NS)):
        assert first.kubectl("auth", "can-i", verb, kind, "-n", ns, account, check=False).strip() == "no"


def test_three_members_are_backed_up_into_an_object_store_and_by_schedule_too(
    first: Cluster, folder: Path, bucket: tuple[str, ...]
) -> None:
    create(first, folder, WIDE, "--control-plane-availability-policy", "HighlyAvailable")
    available(first, WIDE)
    guest = guest_of(first, folder, WIDE)
    for number in range(5):
        guest.kubectl("create", "configmap", f"row-{number}", f"--from-literal=n={number}")
    store, lock = ("--store", IN_BUCKET, *bucket), ("--passphrase-file", str(folder / "passphrase"))
    access = ("--kubeconfig", str(first.kubeconfig))
    name = hcp("backup", "create", WIDE, *store, *lock, *access, env=S3_KEYS).stdout.strip()
    assert "restored and compared" in hcp("backup", "verify", name, *store, *lock, env=S3_KEYS).stdout
    words = (f"--from-file={folder / 'passphrase'}", *(f"--from-literal={key}={S3_KEYS[key]}" for key in S3_KEYS))
    first.kubectl("create", "secret", "generic", "bucket", "-n", "hypershift", *words)
    hcp("backup", "schedule", WIDE, *access, *store, "--cron", "0 2 * * *", "--secret", "bucket", "--keep", "2")
    first.kubectl("create", "job", "-n", "hypershift", f"--from=cronjob/backup-{NS}-{WIDE}", "into-bucket")
    first.kubectl("wait", "-n", "hypershift", "--for=condition=Complete", "job/into-bucket", "--timeout=300s")
    listed = json.loads(hcp("backup", "list", *store, "-o", "json", env=S3_KEYS).stdout)
    assert len(listed) == 2
    assert {one["encryption"] for one in listed} == {"passphrase"}


def test_the_same_management_cluster_takes_it_back(first: Cluster, folder: Path, run: Callable[..., str]) -> None:
    hcp("destroy", "cluster", "kubevirt", "--name", "kept", "--kubeconfig", str(first.kubeconfig))
    first.kubectl("create", "job", "-n", "hypershift", f"--from=cronjob/backup-{HOSTED}", "last")
    eventually_sync(
        lambda: f"backup-{HOSTED}" not in first.kubectl("get", "cronjobs", "-n", "hypershift", "-o", "name"),
        "the schedule ended with its cluster",
        300,
    )
    said = run("restore", "kept", management=first)
    assert "is back" in said
    _is_the_same(first, folder)


def test_another_management_cluster_takes_both_when_the_first_is_lost(
    folder: Path, run: Callable[..., str], bucket: tuple[str, ...]
) -> None:
    hcp("local", "down", "--name", ONE, "--purge")
    try:
        second = up(TWO, folder)
        said = run("restore", "kept", management=second)
        assert "is back" in said
        _is_the_same(second, folder)
        words = ("--from", IN_BUCKET, *bucket, "--passphrase-file", str(folder / "passphrase"))
        hcp("restore", WIDE, *words, "--kubeconfig", str(second.kubeconfig), env=S3_KEYS)
        available(second, WIDE)
        eventually_sync(lambda: condition(second, WIDE, "Degraded").get("status") == "False", "all replicas", 1200)
        assert {f"row-{number}" for number in range(5)} <= rows(guest_of(second, folder, WIDE))
    finally:
        hcp("local", "down", "--name", TWO, "--purge", check=False)


def _is_the_same(management: Cluster, folder: Path) -> None:
    """Data, authorities, and what tenants hold: the kubeconfig of before with another address, and a token."""
    available(management, "kept")
    for kind in ("EtcdSnapshotRestored", "HostedClusterRestoredFromBackup"):
        eventually_sync(lambda kind=kind: condition(management, "kept", kind).get("status") == "True", kind, 300)  # type: ignore[misc]
    assert keys(management) == json.loads((folder / "keys").read_text())
    old = yaml.safe_load((folder / "kept.kubeconfig").read_text())
    fresh = folder / "fresh"
    fresh.mkdir(exist_ok=True)
    now = guest_of(management, fresh, "kept")
    address = yaml.safe_load((fresh / "kept.kubeconfig").read_text())["clusters"][0]["cluster"]["server"]
    old["clusters"][0]["cluster"]["server"] = address
    moved = folder / "moved.kubeconfig"
    moved.write_text(yaml.safe_dump(old))
    guest = Guest(management, moved)
    assert {f"row-{number}" for number in range(5)} <= rows(guest)
    assert guest.get("secret", "word")["data"] == {"word": "b2YtdGhlLXRlbmFudA=="}
    held = (folder / "token").read_text()
    said = now.kubectl("create", "-f", "-", "-o", "json", stdin=json.dumps(_review(held)))
    assert json.loads(said)["status"]["user"]["username"] == "system:serviceaccount:default:robot"


def _review(held: str) -> dict[str, Any]:
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": held}}
