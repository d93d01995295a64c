"""Claims, pods with them and snapshots inside a hosted cluster, as tests with virtual machines use them."""

from __future__ import annotations

import json
from typing import Any

from tests.support.e2e.hosted_tools import Guest
from tests.support.eventually import eventually_sync


def claim(guest: Guest, name: str, size: str = "256Mi", **more: Any) -> None:
    """In the class that is the default one, unless another is named."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **more}
    metadata = {"name": name, "namespace": "default"}
    apply(guest, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})


def pod_spec(guest: Guest, volume: str, line: str, node: str = "", *, block: bool = False) -> dict[str, Any]:
    """A line of shell with the claim at /data, and then rest."""
    place = {"volumeDevices": [{"name": "data", "devicePath": "/data"}]}
    container = {
        "name": "one",
        "image": guest.image(),
        "command": ["sh", "-c", f"{line} && sync && sleep 100000"],
        "readinessProbe": {"exec": {"command": ["test", "-e", "/data"]}},
        **(place if block else {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}),
    }
    spec: dict[str, Any] = {
        "containers": [container],
        "terminationGracePeriodSeconds": 0,
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": volume}}],
    }
    return spec | ({"nodeSelector": {"kubernetes.io/hostname": node}} if node else {})


def pod(guest: Guest, name: str, volume: str, line: str, node: str = "", *, block: bool = False) -> None:
    spec = pod_spec(guest, volume, line, node, block=block)
    apply(guest, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec})
    eventually_sync(lambda: phase(guest, name) == "Running", f"pod {name} runs", 900)


def apply(guest: Guest, obj: dict[str, Any]) -> None:
    guest.kubectl("apply", "-f", "-", stdin=json.dumps(obj))


def cut(guest: Guest, name: str, volume: str, snapshot_class: str) -> None:
    spec = {"volumeSnapshotClassName": snapshot_class, "source": {"persistentVolumeClaimName": volume}}
    metadata = {"name": name, "namespace": "default"}
    apply(
        guest,
        {"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot", "metadata": metadata, "spec": spec},
    )


def cut_status(guest: Guest, name: str) -> dict[str, Any]:
    found: dict[str, Any] = guest.get("volumesnapshot", name).get("status") or {}
    return found


def phase(guest: Guest, name: str) -> str:
    found: str = guest.get("pod", name)["status"]["phase"]
    return found


def read(guest: Guest, name: str, path: str) -> str:
    return guest.kubectl("exec", name, "--", "cat", path).strip()


def end(guest: Guest, name: str) -> None:
    guest.kubectl("delete", "pod", name, "--wait=true", "--ignore-not-found", seconds=600)
