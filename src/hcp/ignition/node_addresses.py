"""Which addresses a node is known by, in clusters with IPv6: the kubelet itself would find that of IPv4 alone.

Nothing of it is in the document of a node with IPv4 alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from hcp.ignition.document import Document, document, file, unit

FILE = "/run/node-addresses.env"
SCRIPT = "/etc/kubernetes/node-addresses.sh"
_WAIT = "/usr/lib/systemd/systemd-networkd-wait-online --interface=eth0 --timeout=60"


def node_addresses_document(networks: Sequence[str]) -> Document:
    """`networks`: of pods and Services."""
    families = families_of(networks)
    if "6" not in families:
        return document()
    return document(
        files=[file(SCRIPT, script(families), 0o755)], units=[unit("node-addresses.service", _unit(families))]
    )


def families_of(networks: Sequence[str]) -> list[str]:
    """The families of these networks in their order."""
    return list(dict.fromkeys("6" if ":" in cidr else "4" for cidr in networks))


def script(families: Sequence[str]) -> str:
    """The first address of each family that is there; what is missing is not named, and the kubelet goes on."""
    return f"""\
#!/bin/sh
found=
for family in {" ".join(families)}; do
  set -- $(ip -o -"$family" address show dev "${{LINK:-eth0}}" scope global -tentative -deprecated | head -n 1)
  if [ -n "$4" ]; then
    found="$found,${{4%%/*}}"
  fi
done
if [ -n "$found" ]; then
  echo "NODE_ADDRESSES=--node-ip=${{found#,}}"
fi
"""


def _unit(families: Sequence[str]) -> str:
    waits = "".join(f"ExecStart=-{_WAIT} --ipv{family}\n" for family in families)
    return f"""\
[Unit]
Description=Find the addresses of this node, one of each IP family of its cluster
After=network-online.target
Wants=network-online.target
Before=kubelet.service

[Service]
Type=oneshot
RemainAfterExit=yes
{waits}ExecStart=sh -c '{SCRIPT} >{FILE}'

[Install]
WantedBy=multi-user.target
"""
