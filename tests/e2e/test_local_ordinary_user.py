"""Profile api needs no rights: an ordinary user brings a cluster up, uses it and takes it down."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.e2e.local_tools import HCP, hcp

USER = "65534"
# It may read everything, as the interpreter may be in the home of the one who runs the tests, and nothing else.
RIGHT = "-all,+dac_read_search"
PARTS = ("etcd", "kubernetes-1.36")

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


class Person:
    """Somebody without rights, with a home and a cache of their own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        rights = ("--inh-caps", RIGHT, "--ambient-caps", RIGHT, "--bounding-set", RIGHT)
        who = ("setpriv", "--reuid", USER, "--regid", USER, "--clear-groups", *rights)
        return subprocess.run(
            [*who, *words], capture_output=True, text=True, env=self.env, cwd=self.home, timeout=300, check=False
        )

    def hcp(self, *words: str) -> str:
        done = self.run(str(HCP), *words)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def person() -> Iterator[Person]:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are closed to others
        home = Path(folder)
        os.chown(home, int(USER), int(USER))
        parts = home / "parts.tar"
        hcp("payload", "export", str(parts), *PARTS)
        made = Person(home)
        made.hcp("payload", "import", str(parts))
        parts.unlink()
        yield made
        made.run(str(HCP), "local", "down", "--name", "mine", "--purge")


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
    done = person.run(str(HCP), "local", "up", "--name", "mine", "--profile", "cluster")
    assert done.returncode != 0
    assert "needs root" in done.stderr and "--profile api" in done.stderr
    assert "Traceback" not in done.stderr
