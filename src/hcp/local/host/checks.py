"""What the machine must offer, checked before anything is changed; each gap is one sentence with what to do."""

from __future__ import annotations

import ipaddress
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hcp.errors import HcpError
from hcp.local.host import programs
from hcp.local.network.addresses import MAX_NODES, Addresses
from hcp.local.network.ports import is_free, listener
from hcp.local.state.layout import Layout
from hcp.local.state.spec import Spec

MIN_FREE_BYTES = {"api": 300 << 20, "cluster": 4 << 30, "kubevirt": 12 << 30}
# Broader routes (a VPN for all of 10/8) are not in the way: ours are more precise.
_TELLING_PREFIX = 16


def check_ports(spec: Spec) -> None:
    for port in (spec.api_port, spec.etcd_port, spec.etcd_peer_port):
        if not is_free(port):
            raise HcpError(
                f"Port {port} of cluster '{spec.name}' is taken by {listener(port)}",
                hint=f"Stop that, or let the cluster choose other ports: hcp local down --name {spec.name} --purge",
            )


def check_disk(layout: Layout, spec: Spec) -> None:
    need = MIN_FREE_BYTES[spec.profile]
    free = shutil.disk_usage(layout.root).free
    if free < need:
        raise HcpError(
            f"{layout.root} has {free / (1 << 30):.1f} GiB free, profile {spec.profile} needs {need / (1 << 30):.0f}",
            hint="Free some space (hcp payload clean, hcp local down --purge of clusters you no longer need), "
            "or point XDG_STATE_HOME to a larger disk.",
        )


def check_host(layout: Layout, spec: Spec) -> None:
    """Everything a cluster with a node needs of this machine."""
    check_disk(layout, spec)
    _kernel_features()
    if spec.addresses.six:
        _six_features()
    number = spec.addresses.number
    owner = range_owner(number)
    if owner is not None:
        raise HcpError(
            f"The addresses of cluster '{spec.name}' ({spec.addresses.link_range}) are taken by {owner}",
            hint=f"Free them, or give the cluster others: hcp local down --name {spec.name} --purge",
        )


def _kernel_features() -> None:
    for module, proof in (("overlay", None), ("br_netfilter", Path("/proc/sys/net/bridge")), ("nf_tables", None)):
        if shutil.which("modprobe"):
            subprocess.run(["modprobe", "-q", module], check=False, capture_output=True)
        if proof is not None and not proof.exists():
            raise HcpError(
                f"The kernel lacks {module}, without which NetworkPolicies cannot see traffic between pods",
                hint=f"Load or enable it: modprobe {module}",
            )
    if "overlay" not in Path("/proc/filesystems").read_text():
        raise HcpError("The kernel lacks the overlay file system, which containers need", hint="modprobe overlay")
    probe = subprocess.run(
        ["unshare", "--net", programs.ip(), "link", "add", "hcpt0", "type", "veth", "peer", "name", "hcpt1"],
        check=False,
        capture_output=True,
        text=True,
    )
    if probe.returncode != 0:
        raise HcpError(
            "This machine does not allow network namespaces with veth links",
            cause=probe.stderr.strip(),
            hint="Run as root outside a restricted container; the kernel needs CONFIG_VETH and CONFIG_NET_NS.",
        )
    if not cgroup_controllers():
        raise HcpError("No cgroup hierarchy is mounted in /sys/fs/cgroup", hint="mount -t cgroup2 none /sys/fs/cgroup")


def _six_features() -> None:
    """Before anything is made: a kernel that was told to have no IPv6 has none of its settings."""
    if not Path("/proc/sys/net/ipv6/conf/all/forwarding").exists():
        raise HcpError(
            "The kernel of this machine has no IPv6",
            hint="Use --ip-family ipv4, or start the kernel without ipv6.disable=1.",
        )


def cgroup_controllers() -> list[Path]:
    """The places where a cgroup of ours has to be made: one for v2, one per controller for v1."""
    root = Path("/sys/fs/cgroup")
    if (root / "cgroup.controllers").exists():
        return [root]
    if not root.is_dir():
        return []
    return [path for path in sorted(root.iterdir()) if (path / "cgroup.procs").exists() and not path.is_symlink()]


def range_owner(number: int) -> str | None:
    """Who on this machine already uses addresses of cluster `number`, or nobody."""
    plan = Addresses(number)
    ours = ipaddress.ip_network(plan.link_range)
    mine = {plan.link_of(index) for index in range(2, MAX_NODES + 1)}  # of nodes that outlived the first
    for link in _ip("-4", "address", "show"):
        if link.get("ifname") in mine:
            continue
        for entry in link.get("addr_info", []):
            if ipaddress.ip_address(entry["local"]) in ours:
                return f"network link {link['ifname']} ({entry['local']})"
    for route in _ip("-4", "route", "show"):
        if route.get("dst", "default") == "default" or route.get("dev") in mine:
            continue
        network = ipaddress.ip_network(route["dst"], strict=False)
        if network.prefixlen >= _TELLING_PREFIX and network.overlaps(ours):
            return f"the route {route['dst']} through {route.get('dev', 'nowhere')}"
    if Path(f"/sys/class/net/{plan.link}").exists():
        return f"network link {plan.link}"
    return None


def _ip(*arguments: str) -> list[dict[str, Any]]:
    done = subprocess.run([programs.ip(), "-j", *arguments], check=False, capture_output=True, text=True)
    if done.returncode != 0 or not done.stdout.strip():
        return []
    parsed = json.loads(done.stdout)
    return parsed if isinstance(parsed, list) else []


def kvm() -> tuple[bool, str]:
    """Whether virtual machines can use the processor's own virtualization here, and why (not)."""
    from hcp.local.host.kvm import probe

    return probe()


def has_dummy_links() -> bool:
    """Whether the kernel can make links of type dummy, tried in a network namespace of its own."""
    trial = ["unshare", "--net", programs.ip(), "link", "add", "hcpt0", "type", "dummy"]
    return subprocess.run(trial, check=False, capture_output=True).returncode == 0


def inotify_limits() -> list[tuple[Path, int]]:
    """Kernel limits that a node with hundreds of pods runs into."""
    base = Path("/proc/sys/fs/inotify")
    wanted = ((base / "max_user_instances", 8192), (base / "max_user_watches", 1048576))
    return [(path, value) for path, value in wanted if path.exists() and int(path.read_text()) < value]
