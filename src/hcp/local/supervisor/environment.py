"""The environment of a cluster's processes: what the person had, but a proxy of theirs is for the world outside."""

from __future__ import annotations

from collections.abc import Mapping

PROXIES = ("http_proxy", "https_proxy", "all_proxy")
# Every embedded cluster's nodes, load balancers, pods and services, and their names.
LOCAL = (
    "localhost",
    "127.0.0.0/8",
    "::1",
    "10.88.0.0/16",
    "10.160.0.0/11",
    "10.192.0.0/11",
    ".hcp.test",
    ".svc",
    ".cluster.local",
)


def environment(given: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """`own` is what the process asks for. Without a proxy nothing is added."""
    made = {**given, **own}
    if any(made.get(name) or made.get(name.upper()) for name in PROXIES):
        # Programs disagree about which spelling wins.
        known = made.get("no_proxy") or made.get("NO_PROXY") or ""
        told = [entry.strip() for entry in known.split(",") if entry.strip()]
        made["no_proxy"] = made["NO_PROXY"] = ",".join([*told, *(entry for entry in LOCAL if entry not in told)])
    return made
