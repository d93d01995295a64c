"""The way to the etcd of a hosted cluster: through the API server into the pod, with the cluster's own certificate.

From inside the management cluster and from a person's machine alike, whatever network policies say: whoever may forward
ports of that pod and read its client certificate.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from hcp.controlplane.meta import secret_data
from hcp.errors import HcpError
from hcp.etcd.client import Etcd, Identity
from hcp.kube import Client
from hcp.kube.errors import NotFound
from hcp.kube.resources import PODS, SECRETS
from hcp.kube.streams import forwarded

CLIENT_TLS = "etcd-client-tls"
PORT = 2379
_MOST_MEMBERS = 3


async def ready_member(client: Client, hosted: str) -> str:
    """A pod of etcd that answers, asked for by name."""
    for index in range(_MOST_MEMBERS):
        pod = await client.get_or_none(PODS, f"etcd-{index}", hosted)
        states = ((pod or {}).get("status") or {}).get("conditions") or []
        if any(one.get("type") == "Ready" and one.get("status") == "True" for one in states):
            return f"etcd-{index}"
    raise HcpError(
        f"no member of etcd in namespace {hosted} is ready",
        hint="hcp status shows what the control plane waits for; without etcd there is nothing to take a snapshot of",
    )


@contextlib.asynccontextmanager
async def etcd_of(client: Client, hosted: str) -> AsyncIterator[Etcd]:
    try:
        data = secret_data(await client.get(SECRETS, CLIENT_TLS, hosted))
        identity = Identity(data["ca.crt"], data["etcd-client.crt"], data["etcd-client.key"])
    except (NotFound, KeyError):
        raise HcpError(f"etcd in namespace {hosted} has no client certificate", hint="is the cluster up?") from None
    pod = await ready_member(client, hosted)
    async with forwarded(client, hosted, pod, PORT) as port, Etcd(f"https://localhost:{port}", identity) as member:
        yield member
