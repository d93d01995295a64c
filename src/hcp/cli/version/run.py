"""`version`: print it."""

from __future__ import annotations

from hcp.build_info import commit, identity
from hcp.cli.engine.command import Call

LATEST = "1.36"


async def run(call: Call) -> int:
    from hcp.api import names
    from hcp.cli.shared.release_default import supported
    from hcp.errors import HcpError

    if call.switch("commit-only"):
        print(commit())
        return 0
    print(f"Client Version: {identity()} (commit {commit()}). Latest supported Kubernetes: {LATEST}", flush=True)
    if call.switch("client-only"):
        return 0
    from hcp.cli.shared.cluster import connect
    from hcp.kube.resources import CONFIGMAPS

    async with connect(call) as client:
        where = f"{call.text('namespace')}/{names.SUPPORTED_VERSIONS}"
        found = await client.get_or_none(CONFIGMAPS, names.SUPPORTED_VERSIONS, call.text("namespace"))
        if found is None:
            raise HcpError(
                f"the server's version is not known: there is no ConfigMap {where}",
                hint=f"{call.prog} install writes it; --client-only does not ask for it",
            )
        server = (found.get("data") or {}).get(names.SERVER_VERSION_KEY)
        if not server:
            raise HcpError(
                "the operator has not told its version yet",
                cause=f"the ConfigMap {where} has no key {names.SERVER_VERSION_KEY}",
                hint=f"it does when it starts: kubectl get pods -n {call.text('namespace')}",
            )
        print(f"Server Version: {server}")
        print(f"Server Supports Versions: {', '.join(supported(found))}")
    return 0
