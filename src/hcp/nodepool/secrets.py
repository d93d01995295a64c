"""The two secrets of a pool in the hosted namespace: the token and the user data of its machines."""

from __future__ import annotations

import base64
import datetime as dt
import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api.names import (
    ANNOTATION_IGNITION_TOKEN_EXPIRY,
    ANNOTATION_NODEPOOL,
    LABEL_CAPI_CLUSTER_NAME,
    LABEL_NODEPOOL_SECRET,
    MARK_IGNITION_CONFIG,
    MARK_IGNITION_REACHED,
    MARK_TOKEN_GENERATED,
    MARK_UPGRADE_TYPE,
)
from hcp.api.paths import annotations_of, at
from hcp.ignition.tokens import Tokens, parse_stamp, stamp

TOKEN_PREFIX = "token-"
USER_DATA_PREFIX = "user-data-"
_EPOCH = dt.datetime.fromtimestamp(0, dt.UTC)


@dataclass(frozen=True)
class TokenContent:
    """What a token secret records besides the token."""

    release: str
    release_version: str
    raw_config: str
    pull_secret_hash: str
    trust_bundle_hash: str
    configuration_hash: str
    os_stream: str = ""


def token_name(node_pool: str, target: str) -> str:
    return f"{TOKEN_PREFIX}{node_pool}-{target}"


def user_data_name(node_pool: str, target: str) -> str:
    return f"{USER_DATA_PREFIX}{node_pool}-{target}"


def token_secret(
    namespace: str, node_pool: Mapping[str, Any], target: str, tokens: Tokens, content: TokenContent, reached: bool
) -> dict[str, Any]:
    """The record of a pool's bootstrap token."""
    metadata = node_pool["metadata"]
    data = {
        "token": tokens.current,
        "old_token": tokens.previous,
        "release": content.release,
        "release-version": content.release_version,
        "config": base64.b64encode(gzip.compress(content.raw_config.encode(), mtime=0)).decode(),
        "pull-secret-hash": content.pull_secret_hash,
        "additional-trust-bundle-hash": content.trust_bundle_hash,
        "hc-configuration-hash": content.configuration_hash,
        "os-stream": content.os_stream,
        "reason": "AsExpected",
        "message": "The node document is stored and can be fetched",
    }
    annotations = {
        MARK_IGNITION_CONFIG: "true",
        MARK_UPGRADE_TYPE: (at(node_pool, "spec.management") or {}).get("upgradeType", "Replace"),
        ANNOTATION_NODEPOOL: f"{metadata['namespace']}/{metadata['name']}",
        MARK_TOKEN_GENERATED: stamp(tokens.made),
    }
    if reached:
        annotations[MARK_IGNITION_REACHED] = "True"
    return _secret(token_name(metadata["name"], target), namespace, annotations, {}, data)


def user_data_secret(
    namespace: str, node_pool: Mapping[str, Any], target: str, infra_id: str, pointer: str
) -> dict[str, Any]:
    """The bootstrap data Cluster API gives to each machine of this configuration."""
    metadata = node_pool["metadata"]
    annotations = {ANNOTATION_NODEPOOL: f"{metadata['namespace']}/{metadata['name']}"}
    labels = {LABEL_CAPI_CLUSTER_NAME: infra_id}
    data = {"value": pointer, "format": "ignition", "disableTemplating": "true"}
    return _secret(user_data_name(metadata["name"], target), namespace, annotations, labels, data)


def read_tokens(secret: Mapping[str, Any] | None) -> Tokens | None:
    """The tokens an existing token secret holds."""
    if secret is None:
        return None
    data = secret.get("data") or {}
    current = base64.b64decode(data.get("token", "")).decode()
    if not current:
        return None
    made = parse_stamp(((secret["metadata"].get("annotations")) or {}).get(MARK_TOKEN_GENERATED, ""))
    return Tokens(current, base64.b64decode(data.get("old_token", "")).decode(), made or _EPOCH)


def expiry(secret: Mapping[str, Any]) -> dt.datetime | None:
    """When a token secret's tokens end; None while they are current."""
    return parse_stamp(annotations_of(secret).get(ANNOTATION_IGNITION_TOKEN_EXPIRY, ""))


def belongs(secret: Mapping[str, Any], key: str) -> bool:
    """Whether a secret is one of this pool's (``namespace/name``)."""
    metadata = secret["metadata"]
    mine = (metadata.get("annotations") or {}).get(ANNOTATION_NODEPOOL) == key
    return mine and metadata["name"].startswith((TOKEN_PREFIX, USER_DATA_PREFIX))


def _secret(
    name: str, namespace: str, annotations: Mapping[str, str], labels: Mapping[str, str], data: Mapping[str, str]
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": dict(annotations),
            "labels": {LABEL_NODEPOOL_SECRET: "true", **labels},
        },
        "type": "Opaque",
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
    }
