"""Profile kubevirt on the real thing: a virtual machine boots from an image and answers over the network."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.e2e.local_tools import Cluster, hcp, namespace, server, well
from tests.support.eventually import eventually_sync

NAME = "e2e-kubevirt"
NS = "machines"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    hcp("local", "up", "--name", NAME, "--profile", "kubevirt", "--release", "")
    try:
        yield Cluster(NAME, tmp_path_factory.mktemp("kubeconfig"))
    finally:
        hcp("local", "down", "--name", NAME, "--purge")


def first_boot() -> str:
    """What the guest finds on its config drive: a service that answers every connection."""
    script = "#!/bin/sh\nprintf 'HTTP/1.0 200 OK\\r\\n\\r\\nI am a virtual machine'\n"
    unit = """\
[Service]
ExecStart=/usr/bin/socat TCP-LISTEN:8080,reuseaddr,fork EXEC:/usr/local/bin/answer
Restart=always
[Install]
WantedBy=multi-user.target
"""
    source = "data:;base64," + base64.b64encode(script.encode()).decode()
    document = {
        "ignition": {"version": "3.2.0"},
        "storage": {"files": [{"path": "/usr/local/bin/answer", "mode": 0o755, "contents": {"source": source}}]},
        "systemd": {"units": [{"name": "answer.service", "enabled": True, "contents": unit}]},
    }
    return json.dumps(document)


def machine(image: str) -> dict[str, Any]:
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": "guest", "namespace": NS},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "domain": {
                "cpu": {"cores": 1},
                "memory": {"guest": "1Gi"},
                "devices": {
                    "disks": [
                        {"name": "root", "disk": {"bus": "virtio"}},
                        {"name": "config", "disk": {"bus": "virtio"}},
                    ],
                    "interfaces": [{"name": "default", "bridge": {}}],
                },
            },
            "networks": [{"name": "default", "pod": {}}],
            "volumes": [
                {"name": "root", "containerDisk": {"image": image}},
                {"name": "config", "cloudInitConfigDrive": {"userData": first_boot()}},
            ],
        },
    }


def test_kubevirt_and_cdi_are_deployed(cluster: Cluster) -> None:
    assert cluster.get("kubevirt", "kubevirt", "-n", "kubevirt")["status"]["phase"] == "Deployed"
    assert cluster.get("cdi", "cdi")["status"]["phase"] == "Deployed"
    status = well(NAME)
    assert any(note.startswith("Virtual machines") for note in status["notes"])


def test_storage_class_is_known_to_cdi(cluster: Cluster) -> None:
    profile = cluster.get("storageprofile", "local-path")
    assert profile["status"]["claimPropertySets"] == [{"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem"}]


def test_virtual_machine_boots_and_is_reachable(cluster: Cluster) -> None:
    pushed = hcp("local", "push", "--name", NAME, "node-disk-1.36").stdout.split()
    image = next(word for word in pushed if "@sha256:" in word)
    cluster.apply(namespace(NS), server(NS, "client", cluster.image()), machine(image))
    cluster.wait_pods(NS, "client")

    def address() -> str:
        status = cluster.get("vmi", "guest", "-n", NS)["status"]
        assert status["phase"] == "Running", status["phase"]
        found: str = status["interfaces"][0]["ipAddress"]
        return found

    where = eventually_sync(address, "the machine running", 180)
    eventually_sync(
        lambda: cluster.ask(NS, "client", f"http://{where}:8080") == "I am a virtual machine",
        "the guest answering",
        300,
    )


def test_second_up_changes_nothing(cluster: Cluster) -> None:
    assert "nothing had to be done" in hcp("local", "up", "--name", NAME, "--release", "").stdout
