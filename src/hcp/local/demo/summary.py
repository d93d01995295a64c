"""The last words of the tour: what it took, what runs, what to try, how to stop. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from hcp.local.demo.plan import Tour


def report(tour: Tour, laps: Sequence[tuple[str, float]], node: str = "", later: str = "") -> str:
    """`node` is the name of one of the virtual machines, if there are any; `later` is what volumes wait for."""
    width = max((len(title) for title, _ in laps), default=0)
    took = [f"  {title:<{width}}  {seconds:7.1f} s" for title, seconds in laps]
    name = "" if tour.name == "default" else f" --name {tour.name}"
    return "\n".join(
        [
            "\n== What was done, and how long it took",
            *took,
            "\n== Five commands to try",
            *(f"  {what:<28} {command}" for what, command in tries(tour, node)),
            *_not_shown(tour, later),
            "\n== How to stop",
            f"  {'remove the hosted cluster':<28} hcp destroy cluster kubevirt --name {tour.cluster} {_access(tour)}",
            f"  {'end everything, with its data':<28} hcp local down{name} --purge",
        ]
    )


def _not_shown(tour: Tour, later: str) -> list[str]:
    if not tour.nodes or not later:
        return []
    return [
        "\n== Not shown: volumes in the hosted cluster",
        f"  {'build their parts':<28} {later}",
        f"  {'then':<28} remove the hosted cluster and run the tour again: its workload has claims",
    ]


def tries(tour: Tour, node: str) -> list[tuple[str, str]]:
    guest, access = shlex.quote(str(tour.guest)), _access(tour)
    found = [
        ("how the cluster is", f"hcp status {tour.cluster} {access}"),
        ("look inside it", f"kubectl --kubeconfig {guest} get nodes,pods -A"),
        ("another number of nodes", f"hcp scale nodepool {tour.cluster} --replicas {tour.nodes + 1} {access}"),
        (
            "a second tenant",
            f"hcp create cluster kubevirt --name {tour.cluster}-2 --pull-secret {_secret(tour)} {access}",
        ),
    ]
    if node:
        return [*found, ("the console of a VM (Ctrl-] ends)", f"hcp vm console {node} {access}")]
    return [*found, ("what the machine runs", f"hcp local status{_name(tour)}")]


def stopped(tour: Tour, number: int, of: int, title: str) -> str:
    """After Ctrl-C: where it was, and how to go on or clean up."""
    again = ["hcp", "demo", "--nodes", str(tour.nodes)]
    again += ["--cluster", tour.cluster] if tour.cluster != "demo" else []
    return (
        f"\nStopped in step {number} of {of}, '{title}'. What was done stays.\n"
        f"  go on here     {' '.join(again)}{_name(tour)}\n"
        f"  remove it all  hcp local down{_name(tour)} --purge"
    )


def _name(tour: Tour) -> str:
    return "" if tour.name == "default" else f" --name {tour.name}"


def _access(tour: Tour) -> str:
    return f"--kubeconfig {shlex.quote(str(tour.management))}"


def _secret(tour: Tour) -> str:
    return shlex.quote(str(tour.pull_secret))
