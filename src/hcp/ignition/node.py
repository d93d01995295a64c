"""The whole document of a worker node of a Kubernetes release."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hcp.errors import HcpError
from hcp.ignition.apiproxy import NAME as API_PROXY_NAME
from hcp.ignition.containerd import containerd_document
from hcp.ignition.disk_images import disk_images_document
from hcp.ignition.document import Document, document, file, merge, unit
from hcp.ignition.kernel_arguments import kernel_arguments_document
from hcp.ignition.kubelet import kubelet_configuration, kubelet_document
from hcp.ignition.machineconfig import NodeConfig, interpret
from hcp.ignition.mirror_proxy import PULL_SECRET, mirror_proxy_document
from hcp.ignition.mirrors import MirrorRule, registry_files
from hcp.ignition.node_addresses import FILE as NODE_ADDRESSES
from hcp.ignition.node_addresses import families_of, node_addresses_document
from hcp.ignition.node_proxy import proxy_document
from hcp.ignition.podnetwork import NAME as POD_NETWORK_NAME
from hcp.ignition.pointer import Proxy
from hcp.ignition.reserved import FOLDER as RESERVED
from hcp.ignition.reserved import RESOURCES, reserved_document
from hcp.ignition.runtime_config import runtime_document
from hcp.ignition.settling import settled

USER = "core"
SSH_NAME, FIPS_NAME = "99-worker-ssh", "30-fips"
# MachineConfigs that are part of every pool's configuration; they are made for a disk that runs already.
_OURS = (API_PROXY_NAME, POD_NETWORK_NAME, SSH_NAME, FIPS_NAME)

_TRUST_UNIT = """\
[Unit]
Description=Trust the certificate authorities of the cluster's trust bundle
After=local-fs.target
Before=containerd.service kubelet.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=update-ca-certificates

[Install]
WantedBy=multi-user.target
"""


@dataclass(frozen=True)
class NodeInput:
    """Everything cluster-specific a node needs; nothing of it is on the disk."""

    raw_config: str
    bootstrap_kubeconfig: str
    kubelet_client_ca: str
    service_network: Sequence[str]
    pause_image: str
    # Of pods, by whoever makes it.
    cluster_network: Sequence[str] = ()
    pull_secret: str = ""
    trust_bundle: str = ""
    registry_authorities: Mapping[str, str] = field(default_factory=dict)
    mirrors: Sequence[MirrorRule] = ()
    # Every image of the release; the disk may have some of them.
    release_images: Sequence[str] = ()
    # What a Node says of itself, where nobody here knows its machine.
    labels: Mapping[str, str] = field(default_factory=dict)
    proxy: Proxy = field(default_factory=Proxy)


def cluster_dns(service_network: Sequence[str]) -> list[str]:
    """The tenth address of each service network, where the hosted cluster's DNS answers."""
    try:
        return [str(ipaddress.ip_network(cidr)[10]) for cidr in service_network]
    except (ValueError, IndexError) as error:
        raise HcpError("the service network cannot hold a DNS address", cause=str(error)) from error


def ssh_document(public_keys: str) -> Document:
    """The user people log in as on a node, with their keys."""
    keys = [line.strip() for line in public_keys.splitlines() if line.strip() and not line.startswith("#")]
    user = {"name": USER, "groups": ["sudo"], "shell": "/bin/bash", "sshAuthorizedKeys": keys}
    sudo = file(f"/etc/sudoers.d/90-{USER}", f"{USER} ALL=(ALL) NOPASSWD: ALL\n", 0o440)
    return document(files=[sudo], users=[user]) if keys else document()


def node_document(given: NodeInput, asked: NodeConfig | None = None) -> Document:
    """The document; user configuration comes last and wins. `asked`: the raw configuration, if it was read before."""
    asked = interpret(given.raw_config) if asked is None else asked
    pairs = list(zip(asked.names, asked.documents, strict=True))
    own, steps = settled(part for name, part in pairs if name not in _OURS)
    changed = iter(own)
    rules = [*given.mirrors, *asked.mirrors]
    extra = registry_files(rules, given.registry_authorities)
    if given.pull_secret:
        extra.append(file(PULL_SECRET, given.pull_secret, 0o600))
    units = []
    trusted = {"cluster-trust-bundle": given.trust_bundle, "cluster-proxy-ca": given.proxy.authority}
    for name, pem in trusted.items():
        if pem:
            extra.append(file(f"/usr/local/share/ca-certificates/{name}.crt", pem))
    if any(trusted.values()):
        units.append(unit("cluster-trust.service", _TRUST_UNIT))
    networks = [*given.service_network, *given.cluster_network]
    addresses = NODE_ADDRESSES if "6" in families_of(networks) else ""
    kubelet = kubelet_configuration(cluster_dns(given.service_network), changes=asked.kubelet)
    computed = [name for name in RESOURCES if asked.sized and name not in (kubelet.get("systemReserved") or {})]
    return merge(
        [
            containerd_document(given.pause_image),
            disk_images_document(given.release_images),
            kubelet_document(
                kubelet,
                given.bootstrap_kubeconfig,
                given.kubelet_client_ca,
                given.labels,
                asked.kubelet_verbosity,
                addresses,
                RESERVED if computed else "",
            ),
            reserved_document(computed),
            node_addresses_document(networks),
            runtime_document(asked.log_level),
            kernel_arguments_document(asked.kernel_arguments),
            steps,
            proxy_document(given.proxy, mirrors=bool(rules)),
            mirror_proxy_document(rules, given.registry_authorities, login=bool(given.pull_secret)),
            document(files=extra, units=units),
            *(part if name in _OURS else next(changed) for name, part in pairs),
        ]
    )


def rendered(given: NodeInput, asked: NodeConfig | None = None) -> bytes:
    """The document as the bytes that are stored and served; equal input gives equal bytes."""
    return json.dumps(node_document(given, asked), separators=(",", ":"), sort_keys=True).encode()
