"""Turning the table of certificates into Secrets: what exists and is still good stays byte for byte."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hcp.controlplane import certs
from hcp.controlplane.params import Manifest, Params
from hcp.pki import KeyPair, Leaf, issue_leaf, needs_renewal, new_ca


@dataclass(frozen=True, slots=True)
class Issued:
    """Secrets by name as they shall be, and which of them are new or changed."""

    secrets: dict[str, Manifest]
    fresh: frozenset[str]


def authorities(p: Params, existing: Mapping[str, Mapping[str, Any]]) -> Issued:
    """Every CA; one that exists is never replaced."""
    secrets: dict[str, Manifest] = {}
    fresh = set()
    for name, cn in certs.AUTHORITIES.items():
        pair = certs.authority_pair(existing[name]) if name in existing else None
        if pair is None:
            pair = new_ca(cn)
            fresh.add(name)
        secrets[name] = certs.authority_secret(p, name, pair)
    return Issued(secrets, frozenset(fresh))


def leaves(
    p: Params,
    wanted: Iterable[certs.LeafSecret],
    existing: Mapping[str, Mapping[str, Any]],
    cas: Mapping[str, KeyPair],
    now: dt.datetime | None = None,
) -> Issued:
    """The wanted leaves; one that says the same and is far from its end is kept."""
    secrets: dict[str, Manifest] = {}
    fresh = set()
    for spec in wanted:
        ca = cas[spec.authority]
        pair = certs.leaf_pair(spec, existing[spec.name]) if spec.name in existing else None
        if pair is None or _worn_out(pair, ca.cert_pem, spec.leaf, (now or dt.datetime.now(dt.UTC)).date()):
            pair = issue_leaf(ca, spec.leaf)
            fresh.add(spec.name)
        secrets[spec.name] = certs.leaf_secret(p, spec, pair, ca.cert_pem)
    return Issued(secrets, frozenset(fresh))


@lru_cache(maxsize=8192)
def _worn_out(pair: KeyPair, ca: bytes, leaf: Leaf, day: dt.date) -> bool:
    """Checking a signature is the dearest part of a pass, and its answer changes with the day at most."""
    return needs_renewal(pair, ca, leaf, dt.datetime.combine(day, dt.time(), dt.UTC))


def pairs(issued: Mapping[str, Mapping[str, Any]]) -> dict[str, KeyPair]:
    """The key pairs of CA Secrets."""
    found = {}
    for name, manifest in issued.items():
        pair = certs.authority_pair(manifest)
        if pair is not None:
            found[name] = pair
    return found
