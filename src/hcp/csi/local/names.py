"""Names that the driver and whoever deploys it share. Imports nothing: builders of manifests read it."""

from __future__ import annotations

DRIVER = "local.csi.hcp.dev"
CLASS = "hcp-local"
SNAPSHOT_CLASS = "hcp-local"
# The node's folder of volumes, which is a btrfs; ours lie in a folder of it.
POOL = "/var/lib/storage"
FOLDER = f"{POOL}/csi"


def loop_label(node: str) -> str:
    """By this the loop devices of a node's block volumes are found, also when the node is gone."""
    return f"{DRIVER}/{node}"
