"""``hcp operator run``: the operator, in its pod or on a developer's machine."""

from __future__ import annotations

from hcp.cli.engine.command import Call, Command, Flag
from hcp.cli.engine.common import CONTEXT, KUBECONFIG, VERBOSE

COMMAND = Command(
    "operator run",
    "Run the operator (what its Deployment starts)",
    long="Makes and keeps hosted clusters and their node pools. One process leads, others wait.\n"
    "From a laptop it works on the cluster of the kubeconfig and reaches hosted clusters by their published\n"
    "addresses; scale the operator's Deployment to 0 first, or this process waits for its lease.",
    examples=(("Develop against the embedded cluster", "{prog} operator run --kubeconfig kubeconfig.yaml -v"),),
    flags=(
        Flag("namespace", "string", "hypershift", "namespace of the operator", short="n"),
        Flag("metrics-port", "int", 9000, "port for health and metrics; -1 serves none"),
        Flag("log-format", "string", "auto", "how log lines look", choices=("auto", "json", "text")),
        Flag(
            "internal-registries", "stringSlice", [], "registries (host or host:port) that may be inside this cluster"
        ),
        Flag("insecure-registries", "stringSlice", [], "registries (host or host:port) that are served without TLS"),
        Flag("registry-overrides", "stringSlice", [], "source=mirror: images of releases are named there"),
        Flag(
            "named-route-port", "int", 0, "port of our router where a host is named in front of a connection; 0: none"
        ),
        Flag("hosted-quota", "stringToString", {}, "limits of each hosted cluster: loadbalancers, claims, pods"),
        Flag(
            "shards",
            "int",
            1,
            "parts that hosted clusters are shared out in between operator processes; all of them "
            "must be given the same number",
        ),
        KUBECONFIG,
        CONTEXT,
        VERBOSE,
    ),
    handler="hcp.cli.operator.run:run",
)


async def run(call: Call) -> int | None:
    """Work until the process is told to stop."""
    import os

    from hcp.cli.engine.serving import until_stopped
    from hcp.kube import load_config
    from hcp.operator import support
    from hcp.operator.process import Operator, Options, inside_cluster
    from hcp.runtime import setup_logging

    setup_logging("debug" if call.number("verbose") else "info", form=call.text("log-format"))
    given = call.text("kubeconfig")
    options = Options(
        load_config(given or None, call.text("context") or None),
        namespace=call.text("namespace"),
        health_port=call.number("metrics-port"),
        inside=inside_cluster() and not given,
        own_image=os.environ.get("HCP_IMAGE", ""),
        internal_registries=frozenset(call.items("internal-registries")),
        insecure_registries=frozenset(call.items("insecure-registries")),
        registry_overrides=dict(one.partition("=")[::2] for one in call.items("registry-overrides")),
        hosted_quota=call.pairs("hosted-quota"),
        named_route_port=call.number("named-route-port"),
        shards=_shards(call),
        support=support.load(),
    )
    return await until_stopped(Operator(options).run())


def _shards(call: Call) -> int:
    from hcp.cli.engine.command import UsageError
    from hcp.runtime.shards import shards_problem

    given = call.number("shards")
    if problem := shards_problem(given):
        raise UsageError(f"--shards {given} is not possible", hint=problem)
    return given
