"""Turning the table of certificates into Secrets: what exists and is still good stays byte for byte."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from hcp.controlplane import certs, rotation, validity
from hcp.controlplane.meta import secret_data
from hcp.controlplane.params import Manifest, Params
from hcp.controlplane.rotation import Authority
from hcp.pki import KeyPair, Leaf, issue_leaf, needs_renewal, new_ca


@dataclass(frozen=True, slots=True)
class Issued:
    """Secrets by name as they shall be, and which of them are new or changed."""

    secrets: dict[str, Manifest]
    fresh: frozenset[str]


def authorities(p: Params, existing: Mapping[str, Mapping[str, Any]]) -> Issued:
    """Every CA; one that exists is never replaced here."""
    secrets: dict[str, Manifest] = {}
    fresh = set()
    for name, cn in certs.AUTHORITIES.items():
        found = rotation.read(existing[name]) if name in existing else None
        if found is None:
            found = Authority(new_ca(cn, validity.of_authorities(p)))
            fresh.add(name)
        secrets[name] = rotation.manifest(p, name, found)
    return Issued(secrets, frozenset(fresh))


def leaves(
    p: Params,
    wanted: Iterable[certs.LeafSecret],
    existing: Mapping[str, Mapping[str, Any]],
    cas: Mapping[str, Authority],
    now: dt.datetime | None = None,
) -> Issued:
    """The wanted leaves, each with all that is to be trusted beside it; one that is still good is kept."""
    secrets: dict[str, Manifest] = {}
    fresh = set()
    days = validity.of_leaves(p)
    for spec in wanted:
        ca = cas[spec.authority]
        pair = certs.leaf_pair(spec, existing[spec.name]) if spec.name in existing else None
        moment = (now or dt.datetime.now(dt.UTC)).replace(minute=0, second=0, microsecond=0)
        if pair is None or _worn_out(pair, ca.active.cert_pem, spec.leaf, moment):
            pair = issue_leaf(ca.active, replace(spec.leaf, days=days))
            fresh.add(spec.name)
        secrets[spec.name] = certs.leaf_secret(p, spec, pair, ca.trusted)
        if spec.name in existing and secret_data(existing[spec.name]).get("ca.crt") != ca.trusted:
            fresh.add(spec.name)
    return Issued(secrets, frozenset(fresh))


@lru_cache(maxsize=8192)
def _worn_out(pair: KeyPair, ca: bytes, leaf: Leaf, hour: dt.datetime) -> bool:
    """Checking a signature is the dearest part of a pass, and its answer changes with the hour at most."""
    return needs_renewal(pair, ca, leaf, hour)


def read(issued: Mapping[str, Mapping[str, Any]]) -> dict[str, Authority]:
    """The authorities in their Secrets."""
    found = {name: rotation.read(manifest) for name, manifest in issued.items()}
    return {name: authority for name, authority in found.items() if authority is not None}
