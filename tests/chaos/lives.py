"""What users do while plugs are pulled: hosted clusters are made, edited, upgraded and deleted, by the commands."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.chaos.plan import CREATE, DELETE, EDIT, UPGRADE, Deed
from tests.support.e2e.control_planes import NS, RELEASE, create
from tests.support.e2e.local_tools import Cluster, hcp
from tests.support.eventually import eventually_sync

from hcp.api.names import ANNOTATION_RESTART_DATE

# What a user does is tried until the API takes it: that may be away.
PATIENCE = 900


class Lives:
    def __init__(self, management: Cluster, folder: Path, upgrade_to: str) -> None:
        self._management = management
        self._folder = folder
        self._upgrade_to = upgrade_to
        self._infra: dict[str, str] = {}

    def do(self, deed: Deed, mark: str) -> None:
        """Until it is taken; a deletion until it is over."""
        how: dict[str, Callable[[str], object]] = {
            CREATE: self.create,
            EDIT: lambda name: self._annotate(name, mark),
            UPGRADE: self._upgrade,
            DELETE: self._delete,
        }
        eventually_sync(lambda: how[deed.kind](deed.cluster) or True, f"{deed.kind} {deed.cluster}", PATIENCE)

    def create(self, name: str) -> None:
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        create(self._management, folder, name, publish={"type": "Route"})

    def image_of(self, *, upgraded: bool) -> str:
        return self._upgrade_to if upgraded else RELEASE

    def _annotate(self, name: str, mark: str) -> None:
        """Every pod of the control plane is asked to begin anew."""
        self._management.kubectl(
            "annotate", "hostedcluster", name, "-n", NS, "--overwrite", f"{ANNOTATION_RESTART_DATE}={mark}"
        )

    def _upgrade(self, name: str) -> None:
        patch = json.dumps({"spec": {"release": {"image": self._upgrade_to}}})
        self._management.kubectl("patch", "hostedcluster", name, "-n", NS, "--type=merge", "-p", patch)

    def _delete(self, name: str) -> None:
        if name not in self._infra:  # known beforehand, so that a second try finds what a first one left
            found = self._management.get("hostedcluster", name, "-n", NS)
            self._infra[name] = found["spec"]["infraID"]
        access = ("--kubeconfig", str(self._management.kubeconfig))
        hcp("destroy", "cluster", "kubevirt", "--name", name, "--infra-id", self._infra[name], *access)
