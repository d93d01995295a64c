"""`create kubeconfig`: the kubeconfig of one hosted cluster, or one file with all of them."""

from __future__ import annotations

from hcp.cli.engine.command import Call, Command, Flag
from hcp.cli.engine.common import CLUSTER_ACCESS, NAMESPACE

COMMAND = Command(
    "create kubeconfig",
    "Print the kubeconfig of one or all hosted clusters",
    long="With --name the kubeconfig of that hosted cluster. Without, one kubeconfig with a "
    "context NAMESPACE-NAME for every hosted cluster of the namespace.",
    examples=(
        ("One cluster", "{prog} create kubeconfig --name demo > demo.kubeconfig"),
        ("All clusters of all namespaces", "{prog} create kubeconfig -A > all.kubeconfig"),
    ),
    flags=(
        Flag("name", "string", "", "hosted cluster (default: all)"),
        Flag("all-namespaces", "bool", False, "merge the clusters of every namespace", short="A"),
        Flag("port-forward", "bool", False, "for private clusters", unused="a KubeVirt cluster's API is never private"),
        NAMESPACE,
        *CLUSTER_ACCESS,
    ),
    exclusive=(("name", "all-namespaces"),),
    handler="hcp.cli.create.kubeconfig:run",
)


async def run(call: Call) -> int:
    import sys

    from hcp.cli.shared.cluster import connect
    from hcp.cli.shared.kubeconfigs import merged, single

    async with connect(call) as client:
        if call.text("name"):
            data = await single(client, call.prog, call.text("namespace"), call.text("name"))
            sys.stdout.buffer.write(data)
            return 0
        namespace = None if call.switch("all-namespaces") else call.text("namespace")
        from hcp.cli.engine.yaml_output import dump

        sys.stdout.write(dump(await merged(client, namespace)))
    return 0
