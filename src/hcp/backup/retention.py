"""Which backups are no longer kept. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from hcp.backup.naming import Name


def surplus(found: Iterable[Name], namespace: str, cluster: str, keep: int) -> list[Name]:
    """All but the newest `keep` of one cluster, oldest first; 0 keeps all. Those of others are never named."""
    mine = sorted(name for name in found if name.of(namespace, cluster))
    return mine[:-keep] if keep > 0 else []
