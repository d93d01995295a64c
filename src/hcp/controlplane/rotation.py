"""Changing a certificate authority without anybody noticing. Pure: what is, what is asked, what comes next.

All state lies in the Secret of the authority, so that whoever comes next goes on from there:

- Distributing: a second authority exists beside the first. Everybody gets both to trust; the first still signs.
- Reissuing: the second signs. Every certificate is made anew; both are still trusted.
- Finishing: the first is trusted by nobody any more; everybody gets the shorter bundle.

The administrator's signer can also be replaced at once (Revoking): nobody else uses it, what it signed ends with it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hcp.api import names
from hcp.controlplane import certs, validity
from hcp.controlplane.meta import secret, secret_data
from hcp.controlplane.params import Manifest, Params
from hcp.errors import HcpError
from hcp.pki import KeyPair, new_ca

DISTRIBUTING, REISSUING, FINISHING, REVOKING = "Distributing", "Reissuing", "Finishing", "Revoking"
ALL = "all"
ROOT = "root-ca"
ADMIN = "system-admin-signer"
# Kubelets renew what this one signed by themselves, when most of its life is over.
KUBELETS = "cluster-signer-ca"
# What nodes keep files of.
ON_NODES = (ROOT, "kube-apiserver-to-kubelet-signer", KUBELETS)
DEFAULT_OVERLAP = dt.timedelta(hours=1)
_STAMP = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True, slots=True)
class Authority:
    """What the Secret of one authority says."""

    active: KeyPair
    coming: KeyPair | None = None
    former: bytes = b""
    stage: str = ""
    since: str = ""
    # The requests that were taken up last.
    rotated: str = ""
    revoked: str = ""

    @property
    def trusted(self) -> bytes:
        """Every certificate to trust; the order does not tell which one signs, so nothing changes when that changes."""
        found = [self.active.cert_pem, self.former, self.coming.cert_pem if self.coming else b""]
        return b"".join(sorted(pem for pem in found if pem))

    @property
    def touched(self) -> bool:
        """Whether it was ever changed: until then everything stays as it was first made."""
        return bool(self.rotated or self.revoked)


@dataclass(frozen=True, slots=True)
class Request:
    """What a HostedCluster asks for by annotation: `root-ca,etcd-signer@<any text that makes it a new request>`."""

    authorities: tuple[str, ...] = ()
    mark: str = ""
    revoke: str = ""
    overlap: dt.timedelta = DEFAULT_OVERLAP


def request(annotations: Mapping[str, str]) -> Request:
    """Read the annotations; raises for what cannot be meant."""
    text = annotations.get(names.ANNOTATION_ROTATE, "").strip()
    overlap = annotations.get(names.ANNOTATION_ROTATION_OVERLAP, "").strip()
    revoke = annotations.get(names.ANNOTATION_REVOKE_ADMIN, "").strip()
    wanted, at, mark = text.partition("@")
    chosen = tuple(dict.fromkeys(part.strip() for part in wanted.split(",") if part.strip()))
    if text and not (at and mark.strip() and chosen):
        raise HcpError(f"annotation {names.ANNOTATION_ROTATE}: {text!r} is not NAME[,NAME…]@MARK")
    if ALL in chosen:
        chosen = tuple(certs.AUTHORITIES)
    if unknown := [name for name in chosen if name not in certs.AUTHORITIES]:
        known = ", ".join((*certs.AUTHORITIES, ALL))
        raise HcpError(f"annotation {names.ANNOTATION_ROTATE}: there is no {', '.join(unknown)}; there are {known}")
    waiting = validity.duration(overlap, names.ANNOTATION_ROTATION_OVERLAP) if overlap else DEFAULT_OVERLAP
    return Request(chosen, mark.strip(), revoke, waiting)


def read(manifest: Mapping[str, Any]) -> Authority | None:
    """The authority in a Secret, None when the Secret holds none."""
    active = certs.authority_pair(manifest)
    if active is None:
        return None
    data, notes = secret_data(manifest), (manifest.get("metadata") or {}).get("annotations") or {}
    coming = KeyPair(data["next.crt"], data["next.key"]) if data.get("next.crt") and data.get("next.key") else None
    return Authority(
        active,
        coming,
        data.get("former.crt", b""),
        notes.get(names.ANNOTATION_ROTATION_STAGE, ""),
        notes.get(names.ANNOTATION_ROTATION_SINCE, ""),
        notes.get(names.ANNOTATION_ROTATED, ""),
        notes.get(names.ANNOTATION_REVOKED, ""),
    )


def manifest(p: Params, name: str, authority: Authority) -> Manifest:
    """The Secret of an authority in the middle of something, or after it."""
    data = {"ca.crt": authority.active.cert_pem, "ca.key": authority.active.key_pem}
    if authority.coming:
        data |= {"next.crt": authority.coming.cert_pem, "next.key": authority.coming.key_pem}
    if authority.former:
        data["former.crt"] = authority.former
    notes = {
        names.ANNOTATION_ROTATION_STAGE: authority.stage,
        names.ANNOTATION_ROTATION_SINCE: authority.since,
        names.ANNOTATION_ROTATED: authority.rotated,
        names.ANNOTATION_REVOKED: authority.revoked,
    }
    return secret(p, name, data, annotations={key: value for key, value in notes.items() if value})


def change(live: Mapping[str, Any], wanted: Manifest) -> Manifest:
    """The merge patch from one Secret to the other, refused by the server if somebody else was faster."""
    meta = live["metadata"]
    notes = dict.fromkeys(meta.get("annotations") or {}) | (wanted["metadata"].get("annotations") or {})
    data = dict.fromkeys(live.get("data") or {}) | wanted["data"]
    return {"metadata": {"resourceVersion": meta["resourceVersion"], "annotations": notes}, "data": data}


def ends(p: Params, name: str, authorities: Mapping[str, Authority], asked: Request) -> dt.datetime:
    """The earliest end of the stage an authority is in.

    What signs clients is known to servers of ours only, so it can sign as soon as they have it. The authority of the
    API is in the hands of people: it waits until they could fetch a kubeconfig that has both it and a client
    certificate of the new signer, so that one fetch is enough.
    """
    authority = authorities[name]
    begun = started(authority)
    if authority.stage == REISSUING:
        return begun + (max(asked.overlap, validity.of_kubelets(p)) if name == KUBELETS else asked.overlap)
    if authority.stage == DISTRIBUTING and name == ROOT:
        others = [started(one) for one in authorities.values() if one.stage in (DISTRIBUTING, REISSUING)]
        return max(others) + asked.overlap
    return begun


def started(authority: Authority) -> dt.datetime:
    """When the stage it is in began."""
    return dt.datetime.strptime(authority.since, _STAMP).replace(tzinfo=dt.UTC)


def advance(
    p: Params, name: str, authorities: Mapping[str, Authority], asked: Request, now: dt.datetime, *, settled: bool
) -> Authority:
    """The next state, or the same; `settled` means that everybody has got what the present one says."""
    authority, stamp = authorities[name], now.strftime(_STAMP)
    if name == ADMIN and asked.revoke and authority.revoked != asked.revoke:
        fresh = _new(p, name, now)
        return replace(
            authority, active=fresh, coming=None, former=b"", stage=REVOKING, since=stamp, revoked=asked.revoke
        )
    if not authority.stage:
        if name in asked.authorities and authority.rotated != asked.mark:
            coming = _new(p, name, now)
            return replace(authority, coming=coming, stage=DISTRIBUTING, since=stamp, rotated=asked.mark)
        return authority
    if not settled or now < ends(p, name, authorities, asked):
        return authority
    if authority.stage == DISTRIBUTING and authority.coming is not None:
        if name == ROOT and any(one.stage == DISTRIBUTING for key, one in authorities.items() if key != ROOT):
            return authority
        old = authority.active.cert_pem
        return replace(authority, active=authority.coming, coming=None, former=old, stage=REISSUING, since=stamp)
    if authority.stage == REISSUING:
        return replace(authority, former=b"", stage=FINISHING, since=stamp)
    return replace(authority, stage="", since="")


def _new(p: Params, name: str, now: dt.datetime) -> KeyPair:
    """Another name than the one before, so that no library mixes the two up."""
    return new_ca(f"{certs.AUTHORITIES[name]}@{int(now.timestamp())}", validity.of_authorities(p))


def progress(authorities: Mapping[str, Authority]) -> dict[str, list[str]]:
    """Stage → names of the authorities that are in it."""
    found: dict[str, list[str]] = {}
    for name, authority in authorities.items():
        if authority.stage:
            found.setdefault(authority.stage, []).append(name)
    return found


def on_nodes(authorities: Mapping[str, Authority]) -> bool:
    """Whether files on nodes have to be written: while a bundle changes that nodes keep."""
    chosen = (authorities[name] for name in ON_NODES if name in authorities)
    return any(authority.stage in (DISTRIBUTING, FINISHING) for authority in chosen)


def joined(authorities: Mapping[str, Authority], chosen: Iterable[str]) -> bytes:
    return b"".join(authorities[name].trusted for name in chosen)
