"""What containerd on a node is told: the release's sandbox image. Everything general is on the disk already."""

from __future__ import annotations

from hcp.ignition.document import Document, document, file
from hcp.ignition.mirrors import CERTS_DIR

# The disk's own configuration imports every file of this directory.
CONFIG = "/etc/containerd/conf.d/10-release.toml"


def containerd_config(pause_image: str) -> str:
    """Configuration version 3 (containerd 2.x); a whole plugin section, since imports may replace sections."""
    return f"""\
version = 3

[plugins.'io.containerd.cri.v1.images']
  snapshotter = 'overlayfs'

[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = '{pause_image}'

[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = '{CERTS_DIR}'
"""


def containerd_document(pause_image: str) -> Document:
    """The part of containerd's configuration that follows the release."""
    return document(files=[file(CONFIG, containerd_config(pause_image))])
