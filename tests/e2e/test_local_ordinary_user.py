"""Profile api needs no rights: an ordinary user brings a cluster up, uses it and takes it down."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest
from tests.support.person import HCP, USER, Person, somebody

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture(scope="module")
def person() -> Iterator[Person]:
    with somebody() as made:
        yield made
        made.run(*HCP, "local", "down", "--name", "mine", "--purge")


def test_a_cluster_without_nodes_comes_up_answers_and_goes(person: Person) -> None:
    person.hcp("local", "up", "--name", "mine", "--profile", "api")
    config = person.home / "kubeconfig"
    config.write_text(person.hcp("local", "kubeconfig", "--name", "mine"))
    kubectl = next((person.home / ".cache").glob("hcp/artifacts/kubernetes-1.36/*/bin/kubectl"))
    asked = person.run(str(kubectl), f"--kubeconfig={config}", "get", "namespaces", "-o", "name")
    assert "namespace/kube-system" in asked.stdout, asked.stderr
    assert "mine" in person.hcp("local", "list")
    owners = {path.stat().st_uid for path in (person.home / ".local" / "state" / "hcp" / "local" / "mine").iterdir()}
    assert owners == {int(USER)}
    person.hcp("local", "down", "--name", "mine", "--purge")
    assert "mine" not in person.hcp("local", "list")
    left = subprocess.run(["pgrep", "-u", USER, "-f", str(person.home)], capture_output=True, text=True, check=False)
    assert left.stdout == ""


def test_a_node_is_refused_with_a_way_out(person: Person) -> None:
    done = person.run(*HCP, "local", "up", "--name", "mine", "--profile", "cluster")
    assert done.returncode != 0
    assert "needs root" in done.stderr and "--profile api" in done.stderr
    assert "Traceback" not in done.stderr
