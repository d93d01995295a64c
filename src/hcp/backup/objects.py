"""Which objects make a hosted cluster, and what of a stranger's backup may be written. Pure.

Kept is what people asked for (HostedCluster, NodePools, and the Secrets and ConfigMaps they name) and the keys in the
hosted namespace that cannot be made again: with other authorities every kubeconfig and token would be worthless, with
another encryption key the Secrets in etcd. Of machines on external infra, what tells which VM is which (`machines.py`).
All else follows from these.

A backup is input from outside. What is written is made anew here, field by field, of what is known; a kind, namespace
or name beyond that is refused and not skipped, because such a file was not written by us.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hcp.api import names
from hcp.api.paths import annotations_of, at
from hcp.backup import machines
from hcp.backup.sealing import BrokenBackup
from hcp.controlplane import apiserver_config, copies, encryption
from hcp.controlplane.certs import AUTHORITIES
from hcp.install.privileges import BY_ANNOTATION, TOLERATIONS

Object = dict[str, Any]
# In the hosted namespace.
KEYS = (*AUTHORITIES, copies.SIGNING_KEY, apiserver_config.ENCRYPTION, names.KUBEADMIN_PASSWORD)
# Without these a restored cluster would not be the same one.
NEEDED = (*AUTHORITIES, copies.SIGNING_KEY, apiserver_config.ENCRYPTION)
HYPERSHIFT = f"{names.GROUP}/v1beta1"
# Types that nothing in Kubernetes fills in or acts on.
SECRET_TYPES = ("Opaque", "kubernetes.io/dockerconfigjson", "kubernetes.io/tls", "kubernetes.io/ssh-auth")
# Marks of former pools and machines, which a new pool must not believe, and what asks for a restore.
_DROPPED = (
    names.MARK_CURRENT_CONFIG,
    names.MARK_CURRENT_TEMPLATE,
    names.MARK_TARGET_CONFIG_VERSION,
    names.ANNOTATION_CURRENT_CONFIG_VERSION,
    names.ANNOTATION_RESTORE_SNAPSHOT,
    names.ANNOTATION_RESTORED_FROM_BACKUP,
    encryption.GENERATION,
    "kubectl.kubernetes.io/last-applied-configuration",
)
_KEPT_MARKS = f"{names.GROUP}/"


@dataclass(frozen=True)
class Kept:
    """The objects of one hosted cluster, ready to be written."""

    cluster: Object
    pools: list[Object] = field(default_factory=list)
    # Secrets and ConfigMaps beside the HostedCluster.
    given: list[Object] = field(default_factory=list)
    # Secrets of the hosted namespace.
    keys: list[Object] = field(default_factory=list)
    # Of Cluster API there, where machines run on an external infra cluster.
    machines: list[Object] = field(default_factory=list)
    # Where its API was, as host and port; empty when it was not told.
    endpoint: tuple[str, int] = ("", 0)

    @property
    def namespace(self) -> str:
        return str(self.cluster["metadata"]["namespace"])

    @property
    def name(self) -> str:
        return str(self.cluster["metadata"]["name"])

    @property
    def hosted(self) -> str:
        return names.control_plane_namespace(self.namespace, self.name)

    @property
    def members(self) -> int:
        """Of its etcd."""
        return 3 if self.cluster["spec"].get("controllerAvailabilityPolicy") == "HighlyAvailable" else 1

    def all(self) -> list[Object]:
        return [self.cluster, *self.pools, *self.given, *self.keys, *self.machines]


def references(spec: Any) -> Iterator[str]:
    """Names that a spec mentions as `{name: …}`, wherever: Secrets and ConfigMaps may be among them."""
    left = [spec]
    while left:
        found = left.pop()
        if isinstance(found, Mapping):
            if isinstance(found.get("name"), str):
                yield found["name"]
            left += found.values()
        elif isinstance(found, list):
            left += found


def named(cluster: Mapping[str, Any], pools: Iterable[Mapping[str, Any]]) -> set[str]:
    """All that may be a Secret or ConfigMap beside a HostedCluster, the operator's own encryption key included."""
    found = set(references(cluster["spec"]))
    for pool in pools:
        found |= set(references(pool.get("spec")))
    found.add(f"{cluster['metadata']['name']}-etcd-encryption-key")
    return {name for name in found if names.subdomain_problem(name) is None}


def clean(obj: Mapping[str, Any]) -> Object:
    """An object without what belongs to the cluster it was in: identity, owners, status, finalizers."""
    meta = obj["metadata"]
    kept: Object = {"name": meta["name"], "namespace": meta["namespace"]}
    if labels := dict(meta.get("labels") or {}):
        kept["labels"] = labels
    if notes := {key: text for key, text in (meta.get("annotations") or {}).items() if key not in _DROPPED}:
        kept["annotations"] = notes
    body = {key: obj[key] for key in ("spec", "type", "data") if key in obj}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": kept, **body}


def with_endpoint(cleaned: Object, cluster: Mapping[str, Any]) -> Object:
    """A HostedCluster that tells where its API was: nodes look for it there."""
    found = at(cluster, "status.controlPlaneEndpoint")
    return {**cleaned, "status": {"controlPlaneEndpoint": found}} if found else cleaned


def accept(objects: list[Object], namespace: str, name: str) -> Kept:
    """The objects of a backup, if they are what a backup of this cluster may hold."""
    clusters = [one for one in objects if _is(one, HYPERSHIFT, "HostedCluster")]
    if len(clusters) != 1 or _where(clusters[0]) != (namespace, name):
        raise BrokenBackup(
            "the backup is refused", cause=f"it does not hold exactly the HostedCluster {namespace}/{name}"
        )
    names.check_cluster_name(namespace, name)
    cluster = clusters[0]
    if not isinstance(cluster.get("spec"), dict):
        raise BrokenBackup("the backup is refused", cause="its HostedCluster has no spec")
    pools = [one for one in objects if _is(one, HYPERSHIFT, "NodePool") and isinstance(one.get("spec"), dict)]
    allowed = named(cluster, pools)
    hosted = names.control_plane_namespace(namespace, name)
    mine = [one for one in pools if _where(one)[0] == namespace and one["spec"].get("clusterName") == name]
    there = machines.place(cluster, mine, hosted)
    kept = Kept(_checked(cluster, namespace), endpoint=_endpoint(cluster))
    for one in objects:
        where, called = _where(one)
        if one is cluster:
            continue
        if _is(one, HYPERSHIFT, "NodePool") and where == namespace and at(one, "spec.clusterName") == name:
            kept.pools.append(_checked(one, namespace))
        elif _is(one, "v1", "Secret", "ConfigMap") and where == namespace and called in allowed:
            kept.given.append(_data(_checked(one, namespace)))
        elif _is(one, "v1", "Secret") and where == hosted and called in KEYS:
            kept.keys.append(_key(_data(_checked(one, hosted)), hosted))
        elif there is not None and machines.is_one(one) and where == hosted:
            kept.machines.append(machines.accepted(one, _checked(one, hosted), there))
        else:
            raise BrokenBackup(
                "the backup is refused",
                cause=f"it holds {str(one.get('kind'))[:63]} {str(where)[:63]}/{str(called)[:253]}, "
                f"which is no part of hosted cluster {namespace}/{name}",
            )
    brought = {one["metadata"]["name"] for one in kept.keys}
    if missing := [key for key in NEEDED if key not in brought]:
        raise BrokenBackup("the backup is refused", cause=f"it lacks {', '.join(missing)}")
    return kept


def privileged(kept: Kept) -> list[str]:
    """What in it needs a right of its own, by the name of that right."""
    found = []
    for one in (kept.cluster, *kept.pools):
        notes = annotations_of(one)
        for privilege in BY_ANNOTATION:
            if any(key in privilege.annotations or key.startswith(privilege.prefixes or "\0") for key in notes):
                found.append(privilege.name)
        if one["spec"].get("tolerations"):
            found.append(TOLERATIONS)
    return sorted(set(found))


def _endpoint(cluster: Mapping[str, Any]) -> tuple[str, int]:
    told = at(cluster, "status.controlPlaneEndpoint")
    host, port = at(told, "host"), at(told, "port")
    if not isinstance(host, str) or not isinstance(port, int) or not 0 < port < 65536:
        return "", 0
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return ("", 0) if names.subdomain_problem(host) else (host, port)
    return host, port


def _is(obj: Mapping[str, Any], version: str, *kinds: str) -> bool:
    return obj.get("apiVersion") == version and obj.get("kind") in kinds


def _where(obj: Mapping[str, Any]) -> tuple[Any, Any]:
    meta = obj.get("metadata")
    return (meta.get("namespace"), meta.get("name")) if isinstance(meta, dict) else (None, None)


def _checked(obj: Object, namespace: str) -> Object:
    """Only text where text belongs, and names that are some."""
    meta = obj["metadata"]
    problem = names.subdomain_problem(str(meta.get("name")))
    for part in ("labels", "annotations"):
        pairs = meta.get(part) or {}
        if not isinstance(pairs, dict) or not all(isinstance(text, str) for text in pairs.values()):
            problem = f"has {part} that are no text"
    if not isinstance(obj.get("spec", {}), dict):
        problem = "has no spec"
    if problem:
        raise BrokenBackup("the backup is refused", cause=f"{obj['kind']} {str(meta.get('name'))[:253]!r} {problem}")
    return clean({**obj, "metadata": {**meta, "namespace": namespace}})


def _data(obj: Object) -> Object:
    """A Secret or ConfigMap that holds data and asks for nothing."""
    secret = obj["kind"] == "Secret"
    kind, data = obj.pop("type", "Opaque"), obj.get("data") or {}
    where = f"{obj['kind']} {obj['metadata']['name']}"
    if not isinstance(data, dict) or not all(isinstance(text, str) for text in data.values()):
        raise BrokenBackup("the backup is refused", cause=f"{where} has values that are no text")
    obj.pop("spec", None)
    if not secret:
        return obj
    if kind not in SECRET_TYPES:
        raise BrokenBackup("the backup is refused", cause=f"{where} is of type {str(kind)[:100]!r}")
    try:
        for text in data.values():
            base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise BrokenBackup("the backup is refused", cause=f"{where} has values that are not base64") from None
    return {**obj, "type": kind}


def _key(obj: Object, hosted: str) -> Object:
    """By this label the operator follows what is its own; it gets no other one, and no marks but the operator's."""
    meta = {key: obj["metadata"][key] for key in ("name", "namespace")}
    notes = {key: text for key, text in annotations_of(obj).items() if key.startswith(_KEPT_MARKS)}
    meta["labels"] = {names.LABEL_CONTROL_PLANE_NAMESPACE: hosted}
    return {**obj, "metadata": {**meta, **({"annotations": notes} if notes else {})}}
