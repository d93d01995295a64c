"""How node documents lie in the bootstrap server's namespace: one Secret per pool and configuration.

The operator writes them, the server only reads them and marks that a machine came. No other secret is needed to serve
a node, so the server never sees a tenant's namespace.
"""

from __future__ import annotations

import base64
import datetime as dt
import gzip
import io
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api.names import (
    ANNOTATION_IGNITION_TOKEN_EXPIRY,
    ANNOTATION_NODEPOOL,
    LABEL_DOCUMENT_OF,
    LABEL_IGNITION_SERVER,
    MARK_IGNITION_REACHED,
    MARK_TARGET_CONFIG_VERSION,
    OPERATOR_NAMESPACE,
)
from hcp.errors import HcpError
from hcp.ignition.hashes import limited_name
from hcp.ignition.tokens import parse_stamp, stamp

LABEL_DOCUMENT = "document"
LABEL_CERTIFICATE = "serving-cert"
# The largest document that is served. A Secret holds one of 1 MiB when it is packed.
MAX_DOCUMENT = 8 << 20
MAX_PACKED = 700 << 10


@dataclass(frozen=True)
class Stored:
    """One document as the server knows it."""

    name: str
    node_pool: str
    target: str
    token: str
    old_token: str
    # As it lies in the Secret: unpacked, the documents of many pools would not fit into the server's memory.
    packed: bytes
    expires: dt.datetime | None
    reached: bool

    def payload(self) -> bytes:
        """The document; empty when it cannot be read."""
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(self.packed)) as file:
                found = file.read(MAX_DOCUMENT + 1)
        except (OSError, EOFError, zlib.error):
            return b""
        return found if len(found) <= MAX_DOCUMENT else b""

    def expired(self, now: dt.datetime) -> bool:
        """Whether its tokens are no longer good."""
        return self.expires is not None and self.expires <= now


def secret_name(control_plane_namespace: str, node_pool: str, target: str) -> str:
    """The Secret's name, unique over all hosted clusters: no namespace has a dot, so the first one parts the names.

    With a dash people could choose names so that one cluster's document takes the place of another's.
    """
    return limited_name(f"ignition-{control_plane_namespace}.{node_pool}", target, 253)


def older_secret_name(control_plane_namespace: str, node_pool: str, target: str) -> str:
    """The name that operators gave before."""
    return limited_name(f"ignition-{control_plane_namespace}-{node_pool}", target, 253)


def pack(payload: bytes) -> bytes:
    """Compressed the same way every time, so an unchanged document is an unchanged Secret."""
    return gzip.compress(payload, mtime=0)


def document_secret(
    control_plane_namespace: str,
    node_pool: str,
    target: str,
    *,
    token: str,
    old_token: str,
    payload: bytes,
    expires: dt.datetime | None = None,
    namespace: str = OPERATOR_NAMESPACE,
) -> dict[str, Any]:
    """The Secret for one document; ``node_pool`` is ``namespace/name``."""
    packed = pack(payload)
    if len(payload) > MAX_DOCUMENT or len(packed) > MAX_PACKED:
        raise HcpError(
            f"the configuration of node pool {node_pool} is too large: {len(payload)} bytes, {len(packed)} compressed",
            cause=f"at most {MAX_DOCUMENT} and {MAX_PACKED} can be handed to machines",
            hint="make the ConfigMaps named in spec.config smaller",
        )
    annotations = {ANNOTATION_NODEPOOL: node_pool, MARK_TARGET_CONFIG_VERSION: target}
    if expires:
        annotations[ANNOTATION_IGNITION_TOKEN_EXPIRY] = stamp(expires)
    data = {"token": token.encode(), "old_token": old_token.encode(), "payload": packed}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": secret_name(control_plane_namespace, node_pool.partition("/")[2], target),
            "namespace": namespace,
            "labels": {LABEL_IGNITION_SERVER: LABEL_DOCUMENT, LABEL_DOCUMENT_OF: control_plane_namespace},
            "annotations": annotations,
        },
        "type": "Opaque",
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }


def stored(secret: Mapping[str, Any]) -> Stored:
    """Read a document Secret; what is unreadable in it becomes empty and is answered with an error."""
    metadata = secret.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    data = secret.get("data") or {}
    return Stored(
        name=metadata.get("name", ""),
        node_pool=annotations.get(ANNOTATION_NODEPOOL, ""),
        target=annotations.get(MARK_TARGET_CONFIG_VERSION, ""),
        token=_decoded(data, "token").decode(errors="replace"),
        old_token=_decoded(data, "old_token").decode(errors="replace"),
        packed=_decoded(data, "payload"),
        expires=parse_stamp(annotations.get(ANNOTATION_IGNITION_TOKEN_EXPIRY, "")),
        reached=annotations.get(MARK_IGNITION_REACHED) == "True",
    )


def _decoded(data: Mapping[str, Any], key: str) -> bytes:
    try:
        return base64.b64decode(data.get(key) or "")
    except ValueError:
        return b""
