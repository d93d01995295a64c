"""Node pools by their hosted cluster, and what was made for a pool by its key.

Asked for with every event of a fleet: looked up, never searched for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hcp.api.names import ANNOTATION_NODEPOOL
from hcp.api.paths import annotations_of, at
from hcp.runtime.informer import Informer

Object = dict[str, Any]
_INDEX = "hosted cluster"


def cluster_of_pool(pool: Object) -> Iterable[str]:
    """The key of the hosted cluster that a pool names."""
    name = at(pool, "spec.clusterName")
    return (f"{pool['metadata']['namespace']}/{name}",) if name else ()


def pool_of_made(item: Object) -> Iterable[str]:
    """The key of the pool that an object was made for: the index `pool` of everything that is."""
    key = annotations_of(item).get(ANNOTATION_NODEPOOL)
    return (key,) if key else ()


def pools_of(pools: Informer, namespace: str, name: str) -> list[Object]:
    """The pools of one hosted cluster."""
    pools.add_index(_INDEX, cluster_of_pool)
    return pools.by_index(_INDEX, f"{namespace}/{name}")
