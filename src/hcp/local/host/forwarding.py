"""Whether a firewall of the machine's owner drops what nodes send outside, in words that say what to do.

A rule of ours cannot overrule it: what one table drops is gone, whatever another accepts. The exception is Docker's,
whose chain for users' rules gets ours (host/docker.py). Everything else is its owner's, and only told.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hcp.local.host import docker, programs

# What iptables writes, in nftables' words: it is asked by iptables, which knows both ways of writing.
_OF_IPTABLES = ("filter", "FORWARD")
_FIREWALLD = "firewalld"


def troubles(link: str, tools: Sequence[Path]) -> list[str]:
    """What keeps packets of a cluster's nodes from being forwarded; `link` is the cluster's on this machine."""
    said = []
    asked = docker.commands()
    for command in asked:
        name = Path(command[0]).name
        text = _output([*command, "-S"], tools)
        if not passes(text, link):
            said.append(_by_iptables(name, text, link))
    chains = _chains(tools)
    for family, table, chain in dropping(chains):
        if asked and (table, chain) == _OF_IPTABLES:
            continue
        if not names(_output(["nft", "list", "table", family, table], tools), link):
            said.append(
                f"The machine's firewall drops what it forwards (nft, chain {family} {table} {chain}), and with it "
                f'what pods send outside. Allow it there: nft add rule {family} {table} {chain} iifname "{link}*" '
                f'accept; nft add rule {family} {table} {chain} oifname "{link}*" ct state established,related accept'
            )
    if _has_firewalld(chains) and not names(_output(["nft", "list", "table", "inet", _FIREWALLD], tools), link):
        said.append(
            "firewalld looks after this machine's links and may reject what pods send outside. If they do not get "
            f"there: firewall-cmd --zone=trusted --add-interface={link} (with --permanent it outlives a reload)"
        )
    return said


def passes(listing: str, link: str) -> bool:
    """Whether the filter table of iptables (`iptables -S`) lets what the link sends through, or tries to."""
    lines = listing.splitlines()
    if "-P FORWARD DROP" not in lines:
        return True
    chain = docker.chain_of(link)
    theirs = [line for line in lines if not line.startswith(f"-A {chain} ")]
    return any(line.endswith(f"-j {chain}") for line in theirs) or names("\n".join(theirs), link)


def names(text: str, link: str) -> bool:
    """Whether rules name the cluster's links: all of ours, those of the cluster, or its first node's."""
    return re.search(rf"\b(hcp|{link}n?)[+*]|\b{link}\b", text) is not None


def dropping(chains: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """(family, table, chain) of those that see forwarded packets and drop what they do not name."""
    return [
        (str(chain["family"]), str(chain["table"]), str(chain["name"]))
        for chain in chains
        if chain.get("hook") == "forward"
        and chain.get("policy") == "drop"
        and chain.get("family") in ("ip", "ip6", "inet")
    ]


def _by_iptables(command: str, listing: str, link: str) -> str:
    way = f"{command} -I FORWARD -i {link}+ -j ACCEPT; {command} -I FORWARD -o {link}+ -m conntrack --ctstate "
    way += "RELATED,ESTABLISHED -j ACCEPT"
    if "-N ufw-user-forward" in listing or "-N ufw6-user-forward" in listing:
        way = f"ufw route allow in on {link}"
    elif f"-N {docker.USERS_CHAIN}" in listing:
        way = "run hcp local up again, which tells Docker's chain for such rules"
    return (
        f"The machine's firewall drops what it forwards ({command}, chain FORWARD), and with it what pods send "
        f"outside. Allow it: {way}"
    )


def _has_firewalld(chains: Sequence[Mapping[str, Any]]) -> bool:
    return any(chain.get("table") == _FIREWALLD for chain in chains)


def _chains(tools: Sequence[Path]) -> list[Mapping[str, Any]]:
    text = _output(["nft", "-j", "list", "chains"], tools)
    return [one["chain"] for one in json.loads(text)["nftables"] if "chain" in one] if text else []


def _output(argv: Sequence[str], tools: Sequence[Path]) -> str:
    """Nothing where the program is missing or may not look."""
    try:
        done = subprocess.run(argv, check=False, capture_output=True, text=True, env=programs.environment(tools))
    except FileNotFoundError:
        return ""
    return done.stdout if done.returncode == 0 else ""
