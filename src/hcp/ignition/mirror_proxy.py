"""The node's own way to mirrors: a small server between containerd and them, where a cluster has rules for mirrors.

containerd can prefix a path, not change it, and shows a mirror the login of the source. So it asks this server, which
asks each mirror for the path that an image has there, with the login that the pull secret has for that mirror.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from hcp.ignition.document import Document, document, file, unit
from hcp.ignition.mirrors import CERTS_DIR, MIRROR_PROXY, MirrorRule, authority_file

PROGRAM = "/usr/lib/hcp/mirror-proxy"
CONFIG = "/etc/containerd/mirrors.json"
UNIT = "mirror-proxy.service"
PULL_SECRET = "/var/lib/kubelet/config.json"


def mirror_proxy_config(rules: Sequence[MirrorRule], authorities: Mapping[str, str], folder: str = CERTS_DIR) -> str:
    """What the server reads; `authorities` are CAs of single registries, which lie beside containerd's in `folder`."""
    return json.dumps(
        {
            "listen": MIRROR_PROXY,
            "rules": [{"source": rule.source, "mirrors": list(rule.mirrors)} for rule in rules],
            "authorities": {host: authority_file(host, folder) for host in sorted(authorities)},
        },
        indent=1,
        sort_keys=True,
    )


def mirror_proxy_document(rules: Sequence[MirrorRule], authorities: Mapping[str, str], *, login: bool) -> Document:
    """Nothing for a cluster without rules."""
    if not rules:
        return document()
    credential = f"LoadCredential=pull-secret:{PULL_SECRET}\n" if login else ""
    text = f"""\
[Unit]
Description=Mirrors of registries, by the rules of the cluster
ConditionPathExists={PROGRAM}
After=network.target cluster-trust.service
Before=containerd.service kubelet.service

[Service]
Type=exec
ExecStart={PROGRAM} {CONFIG}
{credential}DynamicUser=yes
CapabilityBoundingSet=
ProtectHome=yes
Restart=always
RestartSec=1

[Install]
WantedBy=multi-user.target
"""
    return document(files=[file(CONFIG, mirror_proxy_config(rules, authorities))], units=[unit(UNIT, text)])
