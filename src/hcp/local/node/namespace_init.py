"""`python -m hcp.local.node.namespace_init STATE_FOLDER`: makes the namespaces and becomes the supervisor in them.

Started by `up`, which holds two pipes: on one we tell the pid of the new process 1, on the other we wait until the
network link is in place. When `up` dies in between, the pipe closes and nothing stays.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

from hcp.linux import syscalls
from hcp.local.node import cgroups, mounts
from hcp.local.state.layout import Layout

_SYSCTLS = {
    "net/ipv4/ip_forward": "1",
    "net/ipv4/conf/all/rp_filter": "0",
    "net/ipv4/conf/default/rp_filter": "0",
    # A machine in a pod takes the whole pod network for its own wire: the node answers for the others, at once.
    "net/ipv4/conf/default/proxy_arp": "1",
    "net/ipv4/neigh/default/proxy_delay": "0",
    "net/ipv4/conf/all/send_redirects": "0",
    "net/ipv4/conf/default/send_redirects": "0",
    "net/ipv4/conf/all/accept_redirects": "0",
    "net/ipv4/conf/default/accept_redirects": "0",
    "net/ipv4/conf/all/route_localnet": "1",
    "net/ipv4/ip_unprivileged_port_start": "0",
    "net/bridge/bridge-nf-call-iptables": "1",
    "net/netfilter/nf_conntrack_tcp_be_liberal": "1",
}
_SIX = {
    "net/ipv6/conf/all/forwarding": "1",
    "net/ipv6/conf/default/forwarding": "1",
    # Links of pods have one pod on them: nobody has to be asked whether an address is free, and nobody is a router.
    "net/ipv6/conf/default/accept_dad": "0",
    "net/ipv6/conf/all/accept_ra": "0",
    "net/ipv6/conf/default/accept_ra": "0",
    "net/ipv6/conf/all/accept_redirects": "0",
    "net/ipv6/conf/default/accept_redirects": "0",
    "net/bridge/bridge-nf-call-ip6tables": "1",
}
_NO_SIX = {"net/ipv6/conf/all/disable_ipv6": "1"}


def main() -> None:
    os.umask(0o022)
    layout = Layout(Path(sys.argv[1]))
    tell, wait = int(sys.argv[2]), int(sys.argv[3])
    facts = json.loads((layout.run / "inside.json").read_text())
    cgroups.join(facts["hostname"])
    syscalls.unshare(
        syscalls.CLONE_NEWNS
        | syscalls.CLONE_NEWPID
        | syscalls.CLONE_NEWNET
        | syscalls.CLONE_NEWUTS
        | syscalls.CLONE_NEWIPC
    )
    child = os.fork()
    if child:
        os.write(tell, f"{child}\n".encode())
        os._exit(0)
    os.close(tell)
    if os.read(wait, 1) != b"1":
        os._exit(1)
    os.close(wait)
    syscalls.set_hostname(facts["hostname"])
    mounts.build(layout, [Path(path) for path in facts["keep"]], Path(facts["pool"]), kvm=facts["kvm"])
    os.environ.update(facts["env"])
    _network(facts)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))  # a terminal's 1024 files are too few for a node
    os.chdir("/")
    os.umask(0o022)
    os.execve(facts["argv"][0], facts["argv"], os.environ)  # noqa: S606


def _network(facts: dict[str, Any]) -> None:
    for arguments in facts["network"]:
        _run([facts["ip"], *arguments])
    for name, value in {**_SYSCTLS, **(_SIX if facts["six"] else _NO_SIX)}.items():
        path = Path("/proc/sys") / name
        if path.exists():
            path.write_text(value)
    _run(["nft", "-f", "-"], facts["rules"])


def _run(argv: list[str], given: str = "") -> None:
    done = subprocess.run(argv, input=given, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{' '.join(argv)}: {done.stderr.strip()}", file=sys.stderr, flush=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
