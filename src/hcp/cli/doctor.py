"""``hcp doctor``: can this management cluster host clusters, and if not, what is missing."""

from __future__ import annotations

from hcp.api import defaults
from hcp.cli.engine.command import Call, Command, Flag, UsageError
from hcp.cli.engine.common import CLUSTER_ACCESS

_INFRA = "External infra cluster"

COMMAND = Command(
    "doctor",
    "Check that a management cluster can host clusters",
    long="Looks at versions, KubeVirt, CDI, storage, load balancers, Routes, DNS, address ranges and the rights of\n"
    "an infra kubeconfig. It writes nothing. Exit code 1 when something has to be mended first.",
    examples=(
        ("The management cluster", "{prog} doctor"),
        ("With virtual machines elsewhere", "{prog} doctor --infra-kubeconfig-file infra.yaml --infra-namespace vms"),
    ),
    flags=(
        Flag("cluster-cidr", "stringArray", [defaults.CLUSTER_CIDR], "pod ranges a hosted cluster would have"),
        Flag("service-cidr", "stringArray", [defaults.SERVICE_CIDR], "service ranges a hosted cluster would have"),
        Flag("infra-kubeconfig-file", "string", "", "kubeconfig of the infra cluster", metavar="file", group=_INFRA),
        Flag("infra-namespace", "string", "", "namespace of the virtual machines there", group=_INFRA),
        Flag(
            "output", "string", "table", "how to print", short="o", choices=("table", "yaml", "json"), group="General"
        ),
        *CLUSTER_ACCESS,
    ),
    handler="hcp.cli.doctor:run",
)
MARKS = {"ok": "ok", "warning": "WARN", "failed": "FAIL", "unknown": "?"}


async def run(call: Call) -> int | None:
    from contextlib import AsyncExitStack

    from hcp.cli.engine.files import kubeconfig
    from hcp.cli.engine.table import show_data, table
    from hcp.cli.shared.cluster import connect
    from hcp.kube import Client, untrusted_kubeconfig
    from hcp.preflight.cidrs import parse
    from hcp.preflight.result import failed
    from hcp.preflight.run import everything

    file, namespace = call.text("infra-kubeconfig-file"), call.text("infra-namespace")
    if bool(file) != bool(namespace):
        raise UsageError("--infra-kubeconfig-file and --infra-namespace belong together: give both or none")
    for flag in ("cluster-cidr", "service-cidr"):
        for text in call.items(flag):
            if parse(text) is None:
                raise UsageError(
                    f'invalid argument "{text}" for "--{flag}" flag', cause="not a range such as 10.132.0.0/14"
                )
    async with AsyncExitStack() as stack:
        infra = None
        if file:
            data = kubeconfig("infra-kubeconfig-file", file)
            infra = await stack.enter_async_context(Client(untrusted_kubeconfig.load(data, f"The file {file}")))
        client = await stack.enter_async_context(connect(call))
        ranges = [*call.items("cluster-cidr"), *call.items("service-cidr")]
        findings = await everything(client, ranges, infra, namespace)
    if call.text("output") != "table":
        show_data(call.text("output"), {"checks": [one.as_dict() for one in findings]})
    else:
        print(table(["CHECK", "STATE", "FOUND"], [[one.check, MARKS[one.state], one.message] for one in findings]))
        hints = [one for one in findings if one.hint and one.state != "ok"]
        if hints:
            print("\nWhat to do:")
            print("\n".join(f"  {one.check}: {one.hint}" for one in hints))
    return 1 if failed(findings) else 0
