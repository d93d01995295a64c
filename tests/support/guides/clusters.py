"""The clusters the guides talk about: a management cluster, and their `example`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.e2e.local_tools import Cluster, hcp

# The guides give larger numbers; these fit a small machine.
SIZE = "--memory 2Gi --cores 1 --root-volume-size 16 --control-plane-availability-policy SingleReplica"


class Given(Cluster):
    """A management cluster that somebody else keeps running."""

    def __init__(self, kubeconfig: Path) -> None:
        from hcp import payload

        self.name = ""
        self.kubeconfig = kubeconfig
        self.kubectl_binary = payload.ensure(["kubernetes-1.36"])["kubernetes-1.36"] / "bin" / "kubectl"


@dataclass(frozen=True)
class Hosted:
    """A hosted cluster of a guide."""

    name: str
    namespace: str
    workers: int

    @property
    def control_plane(self) -> str:
        return f"{self.namespace}-{self.name}"

    @property
    def words(self) -> str:
        return f"--name {self.name} --namespace {self.namespace}"


@contextlib.contextmanager
def embedded(name: str, folder: Path) -> Iterator[Cluster]:
    """A cluster with KubeVirt and a release in its registry, gone afterwards."""
    hcp("local", "up", "--name", name, "--profile", "kubevirt")
    try:
        hcp("local", "push", "--name", name, "image-hcp", "release-1.36")
        yield Cluster(name, folder)
    finally:
        hcp("local", "down", "--name", name, "--purge")
