"""An app inside a hosted cluster answers under its default name, from outside, through both routers."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.e2e.hosted_tools import Guest, with_one_node
from tests.support.e2e.local_tools import Cluster
from tests.support.eventually import eventually_sync

NAME = "ingress"
CLUSTER = "demo"
CONTROL_PLANE = f"clusters-{CLUSTER}"
RELEASE = "release-1.36-ingress"

pytestmark = pytest.mark.timeout(3000)


@pytest.fixture(scope="module")
def management(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with with_one_node(NAME, CLUSTER, tmp_path_factory.mktemp("ingress"), RELEASE) as made:
        yield made


@pytest.fixture(scope="module")
def guest(management: Cluster) -> Guest:
    return Guest.of(management, CLUSTER)


def test_the_router_is_a_part_that_is_well(guest: Guest) -> None:
    found = {one["metadata"]["name"]: one["status"]["conditions"] for one in guest.get("co")["items"]}
    assert {one["type"]: one["status"] for one in found["ingress"]}["Available"] == "True"
    assert guest.get("clusterversion", "version")["status"]["history"][0]["state"] == "Completed"


def test_an_app_answers_below_the_default_domain_from_outside(
    guest: Guest, management: Cluster, tmp_path: Path
) -> None:
    guest.run_web("hello", replicas=1)
    domain = guest.get("ingresses.config.openshift.io", "cluster")["spec"]["domain"]
    route = {
        "apiVersion": "route.openshift.io/v1",
        "kind": "Route",
        "metadata": {"name": "hello", "namespace": "default"},
        "spec": {
            "host": f"hello.{domain}",
            "to": {"kind": "Service", "name": "hello"},
            "port": {"targetPort": 8080},
            "tls": {"termination": "edge"},
        },
    }
    guest.kubectl("apply", "-f", "-", stdin=json.dumps(route))
    # The router of the management cluster leads every name below the domain to the machines, TLS untouched.
    front = management.get("service", "router-default", "-n", "openshift-ingress")
    address = front["status"]["loadBalancer"]["ingress"][0]["ip"]
    trust = tmp_path / "ca.crt"
    root = management.get("secret", "root-ca", "-n", CONTROL_PLANE)
    trust.write_bytes(base64.b64decode(root["data"]["ca.crt"]))

    def answered() -> str:
        command = ["curl", "--silent", "--show-error", "--max-time", "20", "--cacert", str(trust)]
        command += ["--resolve", f"hello.{domain}:443:{address}", f"https://hello.{domain}/hostname"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    said = eventually_sync(
        lambda: answered().startswith("hello-") and answered(), "an answer through both routers", 300
    )
    assert said.startswith("hello-")
