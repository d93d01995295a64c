"""How long certificates live: our defaults, or what an annotation of the HostedCluster asks for."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from hcp.api import names
from hcp.controlplane.params import Params
from hcp.errors import HcpError
from hcp.pki.certs import CA_DAYS, LEAF_DAYS
from hcp.runtime import durations

# A pass comes at least once an hour and renews in the last third.
SHORTEST = dt.timedelta(hours=24)
LONGEST = dt.timedelta(days=CA_DAYS)
KUBELETS = dt.timedelta(hours=17520)
MOST_SECONDS = 1e9


def duration(text: str, what: str) -> dt.timedelta:
    """Read `2160h`, `1h30m`."""
    seconds = durations.parse(text)
    if seconds is None or seconds > MOST_SECONDS:
        raise HcpError(f"{what}: {text!r} is not a duration such as 2160h or 1h30m")
    return dt.timedelta(seconds=seconds)


def _asked(annotations: Mapping[str, str], key: str) -> dt.timedelta | None:
    text = annotations.get(key, "").strip()
    if not text:
        return None
    found = duration(text, f"annotation {key}")
    if not SHORTEST <= found <= LONGEST:
        low, high = (int(bound.total_seconds() // 3600) for bound in (SHORTEST, LONGEST))
        raise HcpError(f"annotation {key}: {text} is not between {low}h and {high}h")
    return found


def _or_default(p: Params, key: str, default: dt.timedelta) -> dt.timedelta:
    """What cannot be read is told by `problem`; it must not keep a cluster from its certificates."""
    try:
        return _asked(p.annotations, key) or default
    except HcpError:
        return default


def of_leaves(p: Params) -> float:
    """Days a certificate of the control plane lives."""
    found = _or_default(p, names.ANNOTATION_CERTIFICATE_VALIDITY, dt.timedelta(days=LEAF_DAYS))
    return found.total_seconds() / 86400


def of_authorities(p: Params) -> float:
    """Days a new authority lives."""
    found = _or_default(p, names.ANNOTATION_AUTHORITY_VALIDITY, dt.timedelta(days=CA_DAYS))
    return found.total_seconds() / 86400


def of_kubelets(p: Params) -> dt.timedelta:
    """How long what kubelets and others ask for by a CertificateSigningRequest lives."""
    return _or_default(p, names.ANNOTATION_CERTIFICATE_VALIDITY, KUBELETS)


def problem(annotations: Mapping[str, str]) -> str:
    """What is wrong with the annotations, empty when nothing is."""
    try:
        for key in (names.ANNOTATION_CERTIFICATE_VALIDITY, names.ANNOTATION_AUTHORITY_VALIDITY):
            _asked(annotations, key)
    except HcpError as exc:
        return str(exc)
    return ""
