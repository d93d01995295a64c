"""`local up`: bring an embedded management cluster up, or back."""

from __future__ import annotations

from hcp.cli.engine.command import Call, Command, Flag
from hcp.cli.local.common import NAME
from hcp.cli.shared.payload_source import SOURCE_FLAGS, build_only

COMMAND = Command(
    "local up",
    "Bring an embedded management cluster up",
    long=(
        "Makes a real Kubernetes cluster on this machine, in namespaces of its own, or brings a stopped one back with "
        "its data. On a running cluster it changes nothing. Stop it at any moment; the next run continues.\n"
        "Profiles: api is etcd and kube-apiserver only and needs no root; cluster is a node that runs pods, with "
        "storage, a registry, load balancer addresses and Routes; kubevirt adds KubeVirt and CDI."
    ),
    examples=(
        ("A management cluster with KubeVirt", "sudo {prog} local up"),
        ("One with snapshots and shared volumes", "sudo {prog} local up --with storage"),
        ("One with IPv4 and IPv6", "sudo {prog} local up --ip-family dual"),
        ("Only an API server, for tests", "{prog} local up --name test --profile api"),
    ),
    flags=(
        NAME,
        Flag(
            "profile",
            "string",
            "kubevirt",
            "how much to bring up (default of an existing cluster: its own)",
            choices=("api", "cluster", "kubevirt"),
        ),
        Flag(
            "release",
            "stringSlice",
            None,
            "Kubernetes minors whose releases go into the cluster's registry (default with profile kubevirt: 1.36)",
        ),
        Flag(
            "volumes",
            "string",
            "",
            "how much all volumes together may hold, such as 40Gi (default: three quarters of the free disk)",
            metavar="size",
        ),
        Flag(
            "with",
            "stringSlice",
            [],
            "what to add; storage: a class with shared, block and growing volumes, snapshots and clones; olm: "
            "operators out of catalogs; mirrors: OpenShift's mirror sets, which the node follows; metallb: "
            "addresses of load balancers out of pools",
            choices=("storage", "olm", "mirrors", "metallb"),
            metavar="extra",
        ),
        Flag(
            "ip-family",
            "string",
            "ipv4",
            "addresses of pods, Services and nodes (default of an existing cluster: its own)",
            choices=("ipv4", "ipv6", "dual"),
        ),
        Flag(
            "kubernetes",
            "string",
            "1.36",
            "Kubernetes minor of a new cluster; one that is there moves by `{prog} local upgrade`",
            metavar="minor",
        ),
        Flag("nodes", "int", 1, "how many nodes it shall have; what joined once stays"),
        Flag(
            "until",
            "string",
            "all",
            "when to end: node, as soon as the node takes pods (DNS, volumes, Routes and all else come with the next "
            "run), or all",
            choices=("node", "all"),
        ),
        Flag("from", "string", "", "take binaries and images from this folder where it holds them", metavar="dir"),
        *SOURCE_FLAGS,
    ),
    handler="hcp.cli.local.up:run",
)


def run(call: Call) -> int:
    from pathlib import Path

    from hcp.cli.engine.terminal import end_like_an_interrupt, note
    from hcp.local.lifecycle.report import summary
    from hcp.local.lifecycle.up import up
    from hcp.local.state.request import UpRequest

    end_like_an_interrupt()
    request = UpRequest(
        call.text("name"),
        call.text("profile") if call.changed("profile") else None,
        Path(call.text("from")).resolve() if call.text("from") else None,
        build_only(call),
        tuple(filter(None, call.items("release"))) if call.changed("release") else None,
        _bytes(call.text("volumes")),
        call.number("nodes") if call.changed("nodes") else None,
        tuple(call.items("with")),
        call.text("ip-family") if call.changed("ip-family") else None,
        call.text("kubernetes") if call.changed("kubernetes") else None,
        until_node=call.text("until") == "node",
    )
    outcome = up(request, note)
    print(summary(outcome))
    return 0


def _bytes(text: str) -> int | None:
    from hcp.cli.engine import grammar, quantity

    if not text:
        return None
    try:
        return quantity.whole(text)
    except ValueError as error:
        raise grammar.refuse("volumes", text, str(error), quantity.RULE) from None
