"""Below which domain another infra cluster publishes Routes.

Its owner may let us read the cluster's own word. The guides' Role does not, but lets us make Routes: a Route that names
no host gets one below that domain, from the API server of OpenShift at once, from our router a moment later.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from hcp.api.names import LABEL_INFRA_ID, subdomain_problem
from hcp.api.paths import at
from hcp.errors import HcpError
from hcp.kube.errors import AlreadyExists, Forbidden, NotFound
from hcp.kube.resources import INGRESS_CONFIGS, ROUTES
from hcp.kubevirt.infra import Infra

PROBE = "hcp-apps-domain"
# A host below the domain has labels of its own before it.
LONGEST = 170
SECONDS = 10.0


class NoDomain(HcpError):
    """Nobody says below which domain Routes are, or what is said is none."""


async def apps_domain(infra: Infra, infra_id: str) -> str:
    """The domain; raises `NoDomain`, or what the API server answers."""
    try:
        config = await infra.client.get(INGRESS_CONFIGS, "cluster")
        said = str(at(config, "spec.domain") or "")
    except (NotFound, Forbidden):
        said = ""
    return usable(said or (await _given_host(infra, infra_id)).partition(".")[2])


def usable(domain: str) -> str:
    """What another cluster says becomes part of names, certificates and the HostedCluster's own spec."""
    if not domain:
        raise NoDomain("no router of the infra cluster gives a host to a Route")
    if len(domain) > LONGEST or "." not in domain or subdomain_problem(domain):
        raise NoDomain("what the infra cluster names as its apps domain is no domain")
    return domain


async def _given_host(infra: Infra, infra_id: str) -> str:
    name = f"{PROBE}-{infra_id}"[:63].rstrip("-")
    metadata = {"name": name, "namespace": infra.namespace, "labels": {LABEL_INFRA_ID: infra_id}}
    # Nothing has that name, so nothing is led anywhere.
    spec = {"to": {"kind": "Service", "name": name, "weight": 100}}
    route = {"apiVersion": ROUTES.api_version, "kind": ROUTES.kind, "metadata": metadata, "spec": spec}
    try:
        # One that is there was left by somebody who was stopped here.
        with contextlib.suppress(AlreadyExists):
            await infra.client.create(route)
        async with asyncio.timeout(SECONDS):
            return await _host(infra, name)
    except TimeoutError:
        return ""
    finally:
        await infra.client.delete(ROUTES, name, infra.namespace, missing_ok=True)


async def _host(infra: Infra, name: str) -> str:
    """As soon as the Route has one."""
    fields = f"metadata.name={name}"
    found, version = await infra.client.list_with_version(ROUTES, infra.namespace, fields=fields)
    if host := _of(found[0] if found else None):
        return host
    async for _, live in infra.client.watch(ROUTES, infra.namespace, fields=fields, resource_version=version):
        if host := _of(live):
            return host
    return ""


def _of(route: dict[str, Any] | None) -> str:
    return str(at(route, "spec.host") or "")
