"""Nodes on machines that are the user's own (platform None): whose they are, and which certificates they get.

No Machine says who may join, so the owner of the node pool does: names in an annotation of the pool stand for the
machines that are to come. Whoever else asks is left to a person. A node that has joined renews its own certificates,
and gets serving certificates for addresses it reports and no other node has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hcp.api.names import ANNOTATION_EXPECTED_NODES, LABEL_NODEPOOL
from hcp.api.paths import annotations_of, at, labels_of
from hcp.api.spec import is_unmanaged
from hcp.guest.csr import BOOTSTRAP_USER, CLIENT_SIGNER, SERVING_SIGNER, MachineFacts, Verdict, judge, node_name

Object = dict[str, Any]
MOST_EXPECTED = 2_000


def expected_nodes(pool: Mapping[str, Any]) -> list[str]:
    """Names of machines that the owner of a pool says will join."""
    text = annotations_of(pool).get(ANNOTATION_EXPECTED_NODES, "")
    names = (part.strip() for part in text.split(",", MOST_EXPECTED)[:MOST_EXPECTED])
    return sorted({name for name in names if name})


def pool_of(node: Mapping[str, Any], pools: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The pool a node says it is of, if there is such a pool of unmanaged machines among ``pools``."""
    name = labels_of(node).get(LABEL_NODEPOOL)
    return next((pool for pool in pools if pool["metadata"]["name"] == name and is_unmanaged(pool)), None)


def addresses(node: Mapping[str, Any]) -> set[str]:
    """Everything a node says it is reached by."""
    return {str(entry.get("address")) for entry in at(node, "status.addresses") or []} - {"None", ""}


def judge_request(
    request: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]], pools: Iterable[Mapping[str, Any]]
) -> Verdict:
    """Decide about one request of a cluster with these nodes and pools; what is nobody's here is left to a person."""
    name, spec = node_name(request), request.get("spec") or {}
    known = next((node for node in nodes if node["metadata"]["name"] == name), None)
    mine: set[str] = set()
    if known is not None and spec.get("signerName") == SERVING_SIGNER:
        others = (node for node in nodes if node is not known)
        mine = addresses(known).difference(*({*addresses(node), str(node["metadata"]["name"])} for node in others))
    pool = next((pool for pool in pools if is_unmanaged(pool) and name in expected_nodes(pool)), None)
    facts = MachineFacts(
        name=name,
        node_pool=pool["metadata"]["name"] if pool is not None else "",
        pool_exists=True,
        addresses=frozenset(mine),
        has_node=known is not None,
    )
    joins = spec.get("signerName") == CLIENT_SIGNER and spec.get("username") == BOOTSTRAP_USER
    if joins and facts.has_node:
        why = f"there is a Node {name!r} already; delete it if its machine has a new disk"
        return _left(judge(request, replace(facts, has_node=False)), why)
    verdict = judge(request, facts)
    if known is None and pool is None:
        return _left(verdict, f"machine {name!r} asks to join and no node pool expects it")
    return verdict


def _left(verdict: Verdict, why: str) -> Verdict:
    """Not ours to approve; a request that is wrong in itself is denied all the same."""
    return verdict if verdict.approve is False else Verdict(None, why, by_hand=True)
