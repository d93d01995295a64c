"""containerd of a node: its configuration and unit. The binaries are on the disk, everything else comes from here."""

from __future__ import annotations

from hcp.ignition.document import Document, document, file, unit
from hcp.ignition.mirrors import CERTS_DIR

CONFIG = "/etc/containerd/config.toml"

_UNIT = """\
[Unit]
Description=containerd container runtime
After=network.target local-fs.target node-prepare.service

[Service]
ExecStart=containerd --config /etc/containerd/config.toml
Type=notify
Delegate=yes
KillMode=process
Restart=always
RestartSec=2
LimitNPROC=infinity
LimitCORE=infinity
LimitNOFILE=1048576
TasksMax=infinity
OOMScoreAdjust=-999

[Install]
WantedBy=multi-user.target
"""


def containerd_config(pause_image: str) -> str:
    """Configuration version 3 (containerd 2.x)."""
    return f"""\
version = 3

[plugins.'io.containerd.cri.v1.images']
  snapshotter = 'overlayfs'

[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = '{pause_image}'

[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = '{CERTS_DIR}'

[plugins.'io.containerd.cri.v1.runtime'.containerd]
  default_runtime_name = 'runc'

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  SystemdCgroup = true

[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['/opt/cni/bin', '/usr/lib/cni']
  conf_dir = '/etc/cni/net.d'
"""


def containerd_document(pause_image: str) -> Document:
    """The runtime's configuration and unit."""
    return document(files=[file(CONFIG, containerd_config(pause_image))], units=[unit("containerd.service", _UNIT)])
