"""Answering the certificate requests of one hosted cluster's nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hcp.api.names import ANNOTATION_NODEPOOL, LABEL_CAPI_CLUSTER_NAME
from hcp.api.paths import at
from hcp.guest.csr import MachineFacts, Verdict, addresses_of, approval, concerns_us, judge, node_name
from hcp.guest.unmanaged import judge_request
from hcp.kube.errors import NotFound
from hcp.kube.resources import CSRS, VIRTUALMACHINES
from hcp.kubevirt.session import Session
from hcp.runtime import Informer, is_true
from hcp.runtime.conditions import now
from hcp.runtime.pools import pools_of

Object = dict[str, Any]


def machine_facts(session: Session, machines: Informer, pools: Informer, name: str) -> MachineFacts | None:
    """What is known of the machine called ``name``; None when this cluster has none."""
    machine = machines.get(name, session.hosted_namespace) if name else None
    if machine is None:
        return None
    metadata = machine["metadata"]
    if (metadata.get("labels") or {}).get(LABEL_CAPI_CLUSTER_NAME) != session.infra_id:
        return None
    key = (metadata.get("annotations") or {}).get(ANNOTATION_NODEPOOL, "")
    return MachineFacts(
        name=name,
        node_pool=key,
        pool_exists=_is_our_pool(session.cluster, pools.get_key(key) if key else None),
        addresses=addresses_of(machine, session.caches.instances.get(name, session.infra.namespace)),
        has_node=session.nodes.get(name) is not None,
    )


def _is_our_pool(cluster: Mapping[str, Any], pool: Mapping[str, Any] | None) -> bool:
    if pool is None:
        return False
    same_namespace = pool["metadata"]["namespace"] == cluster["metadata"]["namespace"]
    return bool(same_namespace and at(pool, "spec.clusterName") == cluster["metadata"]["name"])


async def _is_reborn(session: Session, name: str) -> bool:
    """Whether the node's VM was made anew after the node had joined: a new disk, which has to join again.

    A VM that only restarts keeps its disk and certificate. As long as the node is alive nobody may take its name.
    """
    node = session.nodes.get(name)
    if node is None or is_true(at(node, "status.conditions"), "Ready"):
        return False
    vm = await session.infra.client.get_or_none(VIRTUALMACHINES, name, session.infra.namespace)
    return vm is not None and vm["metadata"]["creationTimestamp"] > node["metadata"]["creationTimestamp"]


async def answer(session: Session, machines: Informer, pools: Informer, name: str) -> Verdict | None:
    """Approve or deny one request; None when there is nothing to say, an open verdict when it is too early."""
    request = session.requests.get(name)
    if request is None or not concerns_us(request):
        return None
    if session.unmanaged:
        meta = session.cluster["metadata"]
        own = pools_of(pools, meta["namespace"], meta["name"])
        verdict = judge_request(request, session.nodes.list(), own)
    else:
        facts = machine_facts(session, machines, pools, node_name(request))
        if facts is not None and facts.has_node and await _is_reborn(session, facts.name):
            facts = replace(facts, has_node=False)
        verdict = judge(request, facts)
    if verdict.approve is None:
        return verdict
    conditions = [*(at(request, "status.conditions") or []), approval(verdict, now())]
    # A patch: the server takes the metadata of a whole object too, and one without labels would lose the request's.
    version = request["metadata"]["resourceVersion"]
    body = {"metadata": {"resourceVersion": version}, "status": {"conditions": conditions}}
    try:
        await session.guest.patch(CSRS, name, None, body, subresource="approval")
    except NotFound:
        return None
    return verdict
