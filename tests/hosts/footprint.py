"""What a machine looks like from outside of a cluster, before it and after it."""

from __future__ import annotations

from tests.hosts.machine import Machine

# What it shows → how it is asked. Counters and times are left out; modules of the kernel stay loaded, as always.
_LOOKS = {
    "links": "ip -o link | cut -d: -f2 | sort",
    "addresses": "ip -o address | awk '{print $2, $4}' | sort",
    "routes": "ip route; ip -6 route",
    "nftables": "nft list ruleset | sed 's/counter packets [0-9]* bytes [0-9]*/counter/'",
    "mounts": "findmnt -rno TARGET,FSTYPE | sort",
    "cgroups": "find /sys/fs/cgroup -mindepth 1 -maxdepth 1 -type d | sort",
    "settings": "sysctl net.ipv4.ip_forward net.ipv6.conf.all.forwarding fs.inotify",
    "processes": "pgrep -fa '/hcp/|etcd|kube|containerd|hcp.local' | grep -v pgrep || true",
    "state": "ls -A /var/lib/hcp /run/hcp* /root/.kube 2>/dev/null || true",
    "network namespaces": "lsns -t net -no NS | sort",
    "loop devices": "losetup -ln -O BACK-FILE",
}


def take(machine: Machine) -> dict[str, str]:
    return {name: machine.run(line) for name, line in _LOOKS.items()}


def differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """One line for each thing that came or went."""
    found = []
    for name, text in before.items():
        was, now = text.splitlines(), after[name].splitlines()
        found += [f"{name}: gone: {line}" for line in was if line not in now]
        found += [f"{name}: left: {line}" for line in now if line not in was]
    return found
