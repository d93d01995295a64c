"""``hcp install render``: print what install applies, without a cluster."""

from __future__ import annotations

from hcp.cli.engine.command import Command, Flag
from hcp.cli.install.flags import FLAGS

COMMAND = Command(
    "install render",
    "Print what install would apply",
    long="Needs neither a cluster nor anything built. The router is printed with --router only, since whether a\n"
    "cluster needs it cannot be known here.",
    examples=(
        ("Everything for a plain Kubernetes", "{prog} install render --router | kubectl apply --server-side -f -"),
        ("Only the definitions", "{prog} install render --outputs crds"),
    ),
    flags=(
        *FLAGS,
        Flag("outputs", "string", "all", "what to print", choices=("all", "crds", "resources")),
        Flag("format", "string", "yaml", "how to print", choices=("yaml", "json")),
        Flag("output-file", "string", "", "file to write to instead of stdout", metavar="file"),
        Flag("render-sensitive", "bool", False, "print Secrets too"),
        Flag("template", "bool", False, "print an OpenShift Template with a parameter for the image"),
    ),
    exclusive=(("image", "hypershift-image"), ("template", "outputs")),
    handler="hcp.cli.install.run:render",
)
