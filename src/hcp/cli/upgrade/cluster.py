"""`upgrade cluster`: move a control plane to another release."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Command, Flag
from hcp.cli.engine.common import CLUSTER_ACCESS, NAMESPACE, TIMEOUT, WAIT

COMMAND = Command(
    "upgrade cluster",
    "Move a hosted cluster's control plane to another release",
    long="Changes the release of the HostedCluster; the operator rolls the control plane. Node pools stay on their "
    "release until they are upgraded: first the cluster, then its pools.\n"
    "A cluster with spec.channel lists what it may move to in status.version.availableUpdates; --to takes it from\n"
    "there.",
    examples=(
        ("To the operator's default release", "{prog} upgrade cluster demo --wait"),
        ("To the newest that its channel offers", "{prog} upgrade cluster demo --to latest --wait"),
        ("To a release of your own", "{prog} upgrade cluster demo --release-image registry.example.com/release:1.36.3"),
        ("Nodes as well", "{prog} upgrade cluster demo --node-pools --wait"),
    ),
    args=(Arg("NAME", "hosted cluster"),),
    flags=(
        Flag("release-image", "string", "", "release to move to (default: the operator's default)"),
        Flag(
            "to",
            "string",
            "",
            "version to move to, of those that the cluster's channel offers, or latest",
            metavar="version",
        ),
        Flag("allow-not-recommended", "bool", False, "with --to: also to a version with known risks"),
        Flag("node-pools", "bool", False, "then move all its node pools too"),
        WAIT,
        TIMEOUT,
        NAMESPACE,
        *CLUSTER_ACCESS,
    ),
    handler="hcp.cli.upgrade.run:cluster",
)
