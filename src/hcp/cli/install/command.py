"""``hcp install``: the operator and its parts on any cluster."""

from __future__ import annotations

from hcp.cli.engine.command import Command, Flag
from hcp.cli.engine.common import CLUSTER_ACCESS
from hcp.cli.install.flags import FLAGS

COMMAND = Command(
    "install",
    "Install the operator on a management cluster",
    long="Applies the definitions, rights, priority classes and the operator with its ignition server. Running it\n"
    "again with another image upgrades, without --image it keeps what is installed. The router for Routes is\n"
    "installed only where the cluster serves no Routes itself. An embedded cluster has the image that was built\n"
    "here; any other cluster needs --image once, in a registry that it can pull from: {prog} release push puts it\n"
    "there and prints the line to use.",
    examples=(
        ("On your own cluster", "{prog} install --image registry.example.com/hcp:1.0 --wait-until-available"),
        ("On an embedded cluster", "{prog} install --wait-until-available"),
        ("See what would be applied", "{prog} install render"),
    ),
    flags=(
        *FLAGS,
        Flag("install-scope", "string", "all", "what to apply", choices=("all", "crds", "resources")),
        Flag("wait-until-crds-established", "bool", False, "wait until the API server serves the definitions"),
        Flag("wait-until-available", "bool", False, "wait until the operator runs"),
        Flag("timeout", "duration", 300 * 10**9, "how long to wait for it"),
        *CLUSTER_ACCESS,
    ),
    exclusive=(("image", "hypershift-image"),),
    handler="hcp.cli.install.run:install",
)
