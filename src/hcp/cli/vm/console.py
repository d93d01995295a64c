"""`vm console`: the serial console of the virtual machine a node runs in."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command, Flag
from hcp.cli.engine.common import CLUSTER_ACCESS, NAMESPACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from hcp.kube import Client
    from hcp.kubevirt.infra import Infra, InfraClients

NOT_FOUND = 4
ESCAPE = "Ctrl-]"
PATH = "/apis/subresources.kubevirt.io/v1/namespaces/{namespace}/virtualmachineinstances/{name}/console"
PROTOCOL = "plain.kubevirt.io"

COMMAND = Command(
    "vm console",
    "Open the serial console of a node's virtual machine",
    long="Finds the virtual machine of that name among all node pools of the namespace and connects the terminal to "
    "its serial console, through KubeVirt. " + ESCAPE + " ends it. What boots shows here before there is a network: it "
    "is the place to look when a node does not appear. Only one person at a time has the console; a second one takes "
    "it over.\n"
    "Without a terminal what comes on stdin is typed, what the machine says goes to stdout, and it ends when the "
    "machine has been silent for --idle after the end of the input.",
    examples=(
        ("The console of a node", "{prog} vm console demo-x7k2p-abcde"),
        ("Which names there are", "{prog} vm console"),
        ("What a machine answers to Enter", "echo | {prog} vm console demo-x7k2p-abcde"),
    ),
    args=(Arg("NAME", "node, which is also the name of its virtual machine", optional=True),),
    flags=(
        Flag("cluster-name", "string", "", "look only at the node pools of this hosted cluster"),
        Flag("idle", "duration", 5_000_000_000, "without a terminal: end after this much silence"),
        Flag(
            "infra-kubeconfig",
            "string",
            "",
            "kubeconfig of an external infra cluster (default: the one the hosted cluster was given)",
            metavar="file",
        ),
        NAMESPACE,
        *CLUSTER_ACCESS,
    ),
    handler="hcp.cli.vm.console:run",
)


async def run(call: Call) -> int:
    from hcp.cli.shared.cluster import connect
    from hcp.cli.vm.serial import attach
    from hcp.kubevirt.infra import InfraClients

    async with connect(call) as client:
        infras = InfraClients(client)
        try:
            infra, name = await find(call, client, infras)
            await need_running(infra, name, call.prog)
            path = PATH.format(namespace=infra.namespace, name=name)
            async with infra.client.websocket(path, PROTOCOL) as connection:
                return await attach(connection, name, call.seconds("idle"))
        finally:
            await infras.close()


async def find(call: Call, client: Client, infras: InfraClients) -> tuple[Infra, str]:
    """The machine, in whichever infra cluster its pool has its machines."""
    from hcp.cli.shared.listing import known_kinds
    from hcp.errors import HcpError
    from hcp.kube.resources import HOSTEDCLUSTERS

    namespace, wanted = call.text("namespace"), call.text("cluster-name")
    clusters = await known_kinds(call, client.list(HOSTEDCLUSTERS, namespace))
    clusters = [item for item in clusters if wanted in ("", item["metadata"]["name"])]
    if wanted and not clusters:
        raise HcpError(
            f"there is no hosted cluster {namespace}/{wanted}",
            hint=f"{call.prog} get clusters -A lists all",
            exit_code=NOT_FOUND,
        )
    names: list[str] = []
    for cluster in clusters:
        infra = await infra_of(call, cluster, infras)
        here = await machines(infra, str(cluster["spec"].get("infraID") or ""))
        if call.arg("NAME") in here:
            return infra, call.arg("NAME")
        names += here
    known = f"there are: {', '.join(sorted(names))}" if names else "there are no virtual machines yet"
    if not call.arg("NAME"):
        raise HcpError("whose console?", hint=known)
    raise HcpError(
        f"no node pool in namespace {namespace} has a virtual machine {call.arg('NAME')}",
        hint=known,
        exit_code=NOT_FOUND,
    )


async def infra_of(call: Call, cluster: dict[str, Any], infras: InfraClients) -> Infra:
    from hcp.api.names import control_plane_namespace
    from hcp.kube import load_config
    from hcp.kubevirt.infra import Infra, credentials

    metadata = cluster["metadata"]
    hosted = control_plane_namespace(metadata["namespace"], metadata["name"])
    given = credentials(cluster["spec"].get("platform") or {})
    if given and call.text("infra-kubeconfig"):
        own = infras.given(hosted, load_config(call.text("infra-kubeconfig")))
        return Infra(own, given.get("infraNamespace") or hosted, external=True)
    return await infras.get(hosted, given)


async def machines(infra: Infra, infra_id: str) -> list[str]:
    from hcp.api.names import LABEL_INFRA_ID
    from hcp.kube.errors import NotFound
    from hcp.kube.resources import VIRTUALMACHINES

    try:
        found = await infra.client.list(VIRTUALMACHINES, infra.namespace, labels=f"{LABEL_INFRA_ID}={infra_id}")
    except NotFound:  # no KubeVirt there
        return []
    return [item["metadata"]["name"] for item in found]


async def need_running(infra: Infra, name: str, prog: str) -> None:
    """A machine that does not run has no console, and the reason is what a person wants to hear."""
    from hcp.errors import HcpError
    from hcp.kube.resources import VIRTUALMACHINES, VMIS

    instance = await infra.client.get_or_none(VMIS, name, infra.namespace)
    phase = ((instance or {}).get("status") or {}).get("phase")
    if phase == "Running":
        return
    machine = await infra.client.get_or_none(VIRTUALMACHINES, name, infra.namespace) or {}
    status = machine.get("status") or {}
    why = [item.get("message") for item in status.get("conditions") or [] if item.get("status") == "False"]
    raise HcpError(
        f"virtual machine {name} is not running, so it has no console",
        cause="; ".join(filter(None, [str(status.get("printableStatus") or phase or "unknown"), *why])),
        hint=f"{prog} status shows what its node pool waits for; try again when the machine is Running",
    )
