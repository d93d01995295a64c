"""Signing requests to an object store, version 4 of AWS's way. Pure."""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who asks. Not shown by repr: it ends up in logs."""

    access_key: str
    secret_key: str
    token: str = ""

    def __repr__(self) -> str:
        return f"Credentials({self.access_key!r})"


def path_of(text: str) -> str:
    """A path as it is signed and sent."""
    return quote(text, safe="/-_.~")


def query_of(params: Mapping[str, str]) -> str:
    """Sorted and escaped, as it is signed and sent."""
    pairs = sorted((quote(key, safe="-_.~"), quote(value, safe="-_.~")) for key, value in params.items())
    return "&".join(f"{key}={value}" for key, value in pairs)


def headers(
    who: Credentials,
    region: str,
    method: str,
    host: str,
    path: str,
    query: str,
    body: bytes,
    now: dt.datetime,
    more: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The headers of one request, signature included."""
    stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    digest = hashlib.sha256(body).hexdigest()
    found = {key.lower(): value for key, value in (more or {}).items()}
    found |= {"host": host, "x-amz-date": stamp, "x-amz-content-sha256": digest}
    if who.token:
        found["x-amz-security-token"] = who.token
    signed = ";".join(sorted(found))
    lines = "".join(f"{key}:{found[key].strip()}\n" for key in sorted(found))
    scope = f"{day}/{region}/s3/aws4_request"
    request = "\n".join((method, path, query, lines, signed, digest))
    text = "\n".join((ALGORITHM, stamp, scope, hashlib.sha256(request.encode()).hexdigest()))
    key = f"AWS4{who.secret_key}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    found["authorization"] = (
        f"{ALGORITHM} Credential={who.access_key}/{scope}, SignedHeaders={signed}, Signature={signature}"
    )
    return found
