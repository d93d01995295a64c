"""The node's part of the release's own pod network: a bridge with the range that Kubernetes gave to this node.

The kubelet tells containerd the node's range, and containerd fills it into a template. So a node is Ready and starts
pods as soon as it is registered; flannel, itself a pod, joins the nodes' ranges when it runs. Waiting for flannel to
write this file took an emulated CPU three quarters of a minute.

Pods may thus be there before kube-proxy. What they send to a Service then would get lost, and be sent again the same
way until it times out; a rule refuses it, so that they try anew and get through once kube-proxy has the Service.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from hcp.ignition.document import Document, document, file, unit

NAME = "25-pod-network"
_CONFIG = "/etc/containerd/conf.d/20-pod-network.toml"
_SOURCE = "/etc/cni/pod-network.json"
_TEMPLATE = "/etc/cni/pod-network.template"
_REFUSALS = "/etc/cni/services.nft"
_MTU, _RANGES, _ROUTES = "@MTU@", "@RANGES@", "@ROUTES@"


def pod_network_document(networks: Sequence[str], services: Sequence[str] = ()) -> Document:
    """Files and the unit that fits the template to this node; nothing where somebody else brings the network."""
    if not networks:
        return document()
    # VXLAN's headers: 50 bytes around IPv4, 70 around IPv6.
    overhead = 70 if any(":" in cidr for cidr in networks) else 50
    return document(
        files=[file(_CONFIG, _containerd()), file(_SOURCE, template()), file(_REFUSALS, refusals(services))],
        units=[unit("pod-network.service", _unit(overhead))],
    )


def template() -> str:
    """A CNI configuration in which containerd fills in ranges and routes, and the unit the MTU."""
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "mtu": _MTU,
        "isGateway": True,
        "ipMasq": False,
        "hairpinMode": True,
        "forceAddress": True,
        "ipam": {"type": "host-local", "ranges": _RANGES, "routes": _ROUTES},
    }
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
    text = json.dumps({"cniVersion": "1.0.0", "name": "cbr0", "plugins": [bridge, portmap]}, indent=1)
    loops = {
        _MTU: _MTU,
        _RANGES: _loop("PodCIDRRanges", '[{"subnet": "{{$one}}"}]'),
        _ROUTES: _loop("Routes", '{"dst": "{{$one}}"}'),
    }
    for mark, loop in loops.items():
        text = text.replace(f'"{mark}"', loop)
    return text + "\n"


def refusals(services: Sequence[str]) -> str:
    """Rules behind kube-proxy's: what still goes to a Service's own address there is known to nobody."""
    rules = "\n".join(f"  ip{'6' if ':' in cidr else ''} daddr {cidr} reject" for cidr in services)
    hooks = ("forward", "output")
    chains = [f" chain {hook} {{\n  type filter hook {hook} priority 10;\n{rules}\n }}\n" for hook in hooks]
    return f"table inet hcp-services {{\n{''.join(chains)}}}\n"


def _loop(values: str, item: str) -> str:
    """A list in the language of Go's templates."""
    return "[{{range $i, $one := .%s}}{{if $i}}, {{end}}%s{{end}}]" % (values, item)  # noqa: UP031 braces are the text


def _containerd() -> str:
    return f"version = 3\n\n[plugins.'io.containerd.cri.v1.runtime'.cni]\nconf_template = '{_TEMPLATE}'\n"


def _unit(overhead: int) -> str:
    fit = f"mtu=$$(($$(cat /sys/class/net/eth0/mtu) - {overhead})); sed s/{_MTU}/$$mtu/ {_SOURCE} >{_TEMPLATE}"
    return f"""\
[Unit]
Description=The pod network's configuration with the packet size of this node's network
After=network-online.target
Wants=network-online.target
Before=kubelet.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=sh -c '{fit}'
ExecStart=nft -f {_REFUSALS}

[Install]
WantedBy=multi-user.target
"""
