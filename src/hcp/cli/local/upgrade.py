"""`local upgrade`: move an embedded cluster to a newer Kubernetes."""

from __future__ import annotations

from hcp.cli.engine.command import Call, Command, Flag
from hcp.cli.local.common import NAME
from hcp.cli.shared.payload_source import SOURCE_FLAGS, build_only

COMMAND = Command(
    "local upgrade",
    "Move an embedded cluster to a newer Kubernetes",
    long=(
        "Exchanges the processes of a running cluster for newer ones: etcd and the API server first, then "
        "controllers and scheduler, then kubelet and kube-proxy of one node after the other. The API is away for some "
        "seconds; pods, hosted clusters and virtual machines go on. It goes one minor at a time and never back. On a "
        "cluster that is there already nothing is done; a run that was stopped is continued by the next.\n"
        "What lies beside it (KubeVirt, storage, the registry) is that of this hcp and comes with `{prog} local up`; "
        "hosted clusters have versions of their own: `{prog} upgrade cluster`."
    ),
    examples=(
        ("To the minor that this hcp makes clusters of", "sudo {prog} local upgrade"),
        ("To the next one, of a cluster with a name", "sudo {prog} local upgrade --name mine --kubernetes 1.37"),
    ),
    flags=(
        NAME,
        Flag("kubernetes", "string", "1.36", "minor to move to", metavar="minor"),
        Flag("from", "string", "", "take binaries from this folder where it holds them", metavar="dir"),
        *SOURCE_FLAGS,
    ),
    handler="hcp.cli.local.upgrade:run",
)


def run(call: Call) -> int:
    from pathlib import Path

    from hcp.cli.engine.terminal import end_like_an_interrupt, note
    from hcp.local.lifecycle.upgrade import upgrade

    end_like_an_interrupt()
    folder = Path(call.text("from")).resolve() if call.text("from") else None
    done = upgrade(call.text("name"), call.text("kubernetes"), note, from_dir=folder, build=build_only(call))
    at = f"Cluster '{done.spec.name}' is at Kubernetes {done.version or done.spec.kubernetes}"
    print(f"{at}; exchanged: {', '.join(done.parts)}" if done.parts else f"{at}; nothing had to be done")
    return 0
