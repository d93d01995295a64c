"""Docker drops what other programs' links forward, and has a chain for rules of whoever owns the machine: DOCKER-USER.

There ours go, at its end, in a chain of their own: what nodes send may leave by links that lead out of the machine,
and answers come back. Docker's own networks are not among those links: tenants' machines have no business there.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Sequence
from typing import Any

from hcp.errors import HcpError
from hcp.local.host import programs

USERS_CHAIN = "DOCKER-USER"
_INSIDE_KINDS = ("bridge", "veth", "dummy", "ifb", "vxlan", "nlmon")
# Older versions of Docker end its chain with this rule: what comes after it is never looked at.
_END = f"-A {USERS_CHAIN} -j RETURN"


def chain_of(link: str) -> str:
    return link.upper().replace("HCP", "HCP-", 1)


def let_through(link: str) -> None:
    """Safe to be done again: links that lead out may be others by now."""
    outwards: list[str] | None = None
    for command in commands():
        there = _run([*command, "-S", USERS_CHAIN])
        if there.returncode == 0:
            if outwards is None:
                outwards = links_outwards()
            _restore(command, rules(link, outwards, there.stdout.splitlines()))


def take_back(link: str) -> None:
    """Safe when there is nothing."""
    chain = chain_of(link)
    for command in commands():
        if _run([*command, "-S", chain]).returncode == 0:
            _run([*command, "-D", USERS_CHAIN, "-j", chain])
            _run([*command, "-F", chain])
            _run([*command, "-X", chain])


def rules(link: str, outwards: Iterable[str], there: Sequence[str]) -> str:
    """For iptables-restore, which does it in one step. `there` is DOCKER-USER as it is now."""
    chain = chain_of(link)
    ours = (link, f"{link}n+")
    lines = [
        *(f"-A {chain} -i {one} -o {way} -j ACCEPT" for way in [*outwards, "hcp+"] for one in ours),
        *(f"-A {chain} -o {one} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT" for one in ours),
    ]
    users = [line for line in there if line.startswith("-A ")]
    if f"-A {USERS_CHAIN} -j {chain}" not in users:
        ends = bool(users) and users[-1] == _END
        lines.append(f"-I {USERS_CHAIN} {len(users)} -j {chain}" if ends else f"-A {USERS_CHAIN} -j {chain}")
    return "\n".join(["*filter", f":{chain} - [0:0]", *lines, "COMMIT", ""])


def links_outwards() -> list[str]:
    """Links by which packets leave the machine: those of default routes, and whatever is not made of software."""
    ways = {
        str(route["dev"]) for six in ("-4", "-6") for route in _ip(six, "route", "show", "default") if "dev" in route
    }
    links = _ip("-d", "link", "show")
    return sorted(ways | {str(link["ifname"]) for link in links if _leads_out(link)})


def _leads_out(link: dict[str, Any]) -> bool:
    kind = (link.get("linkinfo") or {}).get("info_kind", "")
    return link.get("link_type") != "loopback" and "master" not in link and kind not in _INSIDE_KINDS


def commands() -> list[list[str]]:
    """The machine's own: Docker has both, and only they know in which of the kernel's two ways it writes."""
    found = (programs.find(name) for name in ("iptables", "ip6tables"))
    return [[path, "-w", "10"] for path in found if path is not None]


def _restore(command: Sequence[str], text: str) -> None:
    done = _run([f"{command[0]}-restore", *command[1:], "--noflush"], text)
    if done.returncode != 0:
        raise HcpError(
            "Docker drops what this machine forwards, and its chain for exceptions takes none",
            cause=done.stderr.strip(),
            hint=f"Look at it: iptables -S {USERS_CHAIN}",
        )


def _run(argv: Sequence[str], text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, input=text, check=False, capture_output=True, text=True)


def _ip(*words: str) -> list[dict[str, Any]]:
    done = _run([programs.ip(), "-j", *words])
    found = json.loads(done.stdout) if done.returncode == 0 and done.stdout.strip() else []
    return found if isinstance(found, list) else []
