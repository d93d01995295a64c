"""User configuration of nodes: reading the kinds a NodePool's ConfigMaps may hold.

A MachineConfig is a wrapped Ignition document and is merged into the node's; the other kinds change one of the files
we write ourselves. Anything we cannot act on is an error that names it, never silently dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import yaml

from hcp.errors import HcpError
from hcp.ignition import kernel_arguments
from hcp.ignition.document import Document, merge
from hcp.ignition.kubelet_config import kubelet_settings
from hcp.ignition.mirrors import MirrorRule
from hcp.ignition.own_document import check_document, without_effect
from hcp.ignition.runtime_config import runtime_settings
from hcp.kube import bounded_yaml

ROLE_LABEL = "machineconfiguration.openshift.io/role"
BUILT_IN_LABEL = "machineconfiguration.openshift.io/mco-built-in"
_SELECTOR = "machineConfigPoolSelector"
_CONFIG_GROUP = "machineconfiguration.openshift.io/"
_MIRROR_KINDS = {
    "ImageContentSourcePolicy": "repositoryDigestMirrors",
    "ImageDigestMirrorSet": "imageDigestMirrors",
    "ImageTagMirrorSet": "imageTagMirrors",
}
# Fields of a MachineConfig that ask for another operating system or kernel: a Debian node disk cannot follow them.
_FOREIGN_FIELDS = ("extensions", "osImageURL", "baseOSExtensionsContainerImage", "kernelType", "fips")
# What the disk is anyway.
_AS_IT_IS = {"kernelType": "default"}


@dataclass
class NodeConfig:
    """What all configuration documents of a pool ask for, in the order of their names."""

    documents: list[Document] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """The MachineConfig of each of `documents`."""
    kubelet: dict[str, Any] = field(default_factory=dict)
    kubelet_verbosity: int = 0
    sized: bool = False
    """The node computes what it reserves for itself."""
    mirrors: list[MirrorRule] = field(default_factory=list)
    kernel_arguments: list[str] = field(default_factory=list)
    log_level: str = ""
    without_effect: list[str] = field(default_factory=list)
    """What was accepted and changes nothing, with the document that has it."""


def machine_config(name: str, ignition: Document) -> dict[str, Any]:
    """An Ignition document wrapped as a MachineConfig for workers."""
    return {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {"name": name, "labels": {ROLE_LABEL: "worker"}},
        "spec": {"config": ignition},
    }


def normalised(text: str, origin: str) -> list[str]:
    """Every YAML document of ``text`` with the labels the pool needs, as canonical YAML; refuses unknown kinds."""
    result = []
    for manifest in _load(text, origin):
        _check_shape(manifest, origin)
        kind = manifest.get("kind")
        metadata = manifest.setdefault("metadata", {})
        if kind == "MachineConfig":
            metadata.setdefault("labels", {})[ROLE_LABEL] = "worker"
        elif kind in ("KubeletConfig", "ContainerRuntimeConfig"):
            selector = manifest.setdefault("spec", {}).setdefault(_SELECTOR, {})
            selector.setdefault("matchLabels", {})[BUILT_IN_LABEL] = ""
        elif kind not in _MIRROR_KINDS and kind != "ClusterImagePolicy":
            raise HcpError(
                f"{origin} holds a {kind!r}, which cannot configure a node",
                hint="use MachineConfig, KubeletConfig, ContainerRuntimeConfig, ImageContentSourcePolicy, "
                "ImageDigestMirrorSet or ClusterImagePolicy",
            )
        result.append(yaml.safe_dump(manifest, sort_keys=True))
    return result


def joined(documents: Iterable[str]) -> str:
    """The raw configuration whose hash names a pool's secrets: all documents sorted and joined."""
    return "\n---\n".join(sorted(documents))


def interpret(raw: str) -> NodeConfig:
    """Turn raw configuration into what has to be done on the node."""
    manifests = _load(raw, "the node configuration", ours=True)
    manifests.sort(key=lambda item: str(item.get("metadata", {}).get("name", "")))
    config = NodeConfig()
    for manifest in manifests:
        _take(config, manifest)
    return config


def _take(config: NodeConfig, manifest: dict[str, Any]) -> None:
    """Add what one document asks for."""
    kind = str(manifest.get("kind"))
    spec: dict[str, Any] = manifest.get("spec") or {}
    if kind == "MachineConfig":
        _take_machine_config(config, manifest, spec)
    elif kind == "KubeletConfig":
        kubelet = kubelet_settings(spec)
        config.kubelet.update(kubelet.fields)
        config.kubelet_verbosity = kubelet.verbosity or config.kubelet_verbosity
        config.sized = config.sized if kubelet.sized is None else kubelet.sized
        config.without_effect += kubelet.without_effect
    elif kind == "ContainerRuntimeConfig":
        runtime = runtime_settings(spec.get("containerRuntimeConfig") or {})
        config.kubelet.update(runtime.kubelet)
        config.log_level = runtime.log_level or config.log_level
    elif kind in _MIRROR_KINDS:
        for entry in spec.get(_MIRROR_KINDS[kind]) or []:
            config.mirrors.append(MirrorRule(entry["source"], tuple(entry.get("mirrors") or ())))
    else:
        raise HcpError(f"node configuration of kind {kind!r} is not acted on by a Kubernetes release")


def _check_shape(manifest: dict[str, Any], origin: str) -> None:
    """Try it out: what a person wrote may have a number where a mapping belongs, at any place."""
    for path in ("metadata", "metadata.labels", "spec", f"spec.{_SELECTOR}", f"spec.{_SELECTOR}.matchLabels"):
        value: Any = manifest
        for part in path.split("."):
            value = value.get(part, {})
        if not isinstance(value, dict):
            raise HcpError(f"{origin} has a {manifest.get('kind')!r} whose {path} is not a mapping")
    config = NodeConfig()
    try:
        _take(config, manifest)
        merge([*config.documents, *config.documents])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise HcpError(
            f"{origin} has a {manifest.get('kind')!r} that does not have the shape of its kind", cause=repr(error)
        ) from error
    except HcpError:
        return  # well formed and not to be followed: told when it is interpreted


def _load(text: str, origin: str, *, ours: bool = False) -> list[dict[str, Any]]:
    """`ours`: joined by us from what was read before, so it may be longer and repeat itself by aliases."""
    found = bounded_yaml.load(text, origin, max_bytes=(8 if ours else 1) << 20, aliases=ours)
    manifests = [item for item in found if item is not None]
    for item in manifests:
        if not isinstance(item, dict):
            raise HcpError(f"{origin} holds something that is not a Kubernetes object", cause=repr(item)[:80])
        _check_values(item, origin, str(item.get("kind")))
    return manifests


def _check_values(value: Any, origin: str, path: str) -> None:
    """YAML knows more than JSON: an unquoted 2020-01-01 is a date, and a key may be a number."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise HcpError(f"{origin} has the key {key!r} in {path}", hint="Put it in quotes.")
            _check_values(item, origin, f"{path}.{key}")
    elif isinstance(value, list):
        for item in value:
            _check_values(item, origin, f"{path}[]")
    elif not isinstance(value, (str, int, float, bool, type(None))):
        raise HcpError(f"{origin} has {value!r} at {path}, which is no text or number", hint="Put it in quotes.")


def _take_machine_config(config: NodeConfig, manifest: dict[str, Any], spec: dict[str, Any]) -> None:
    name = str(manifest.get("metadata", {}).get("name", ""))
    origin = f"MachineConfig {name!r}"
    for field_name in _FOREIGN_FIELDS:
        value = spec.get(field_name)
        if value and value != _AS_IT_IS.get(field_name):
            named = f" {', '.join(map(str, value))[:200]}" if isinstance(value, list) else ""
            raise HcpError(f"{origin} sets {field_name}{named}, which this release's node disk cannot follow")
    found: Document = spec.get("config") or {}
    version = str((found.get("ignition") or {}).get("version", ""))
    if found and not version.startswith("3."):
        raise HcpError(f"{origin} holds Ignition version {version!r}", hint="write it for Ignition specification 3.x")
    check_document(found, origin)
    for asked in (spec.get("kernelArguments"), (found.get("kernelArguments") or {}).get("shouldExist")):
        if asked is not None and not isinstance(asked, list):
            raise TypeError(f"kernelArguments is {asked!r}")
        config.kernel_arguments += kernel_arguments.words(asked or [], origin)
    config.documents.append(found)
    config.names.append(name)
    config.without_effect += [f"{part} of {origin}" for part in without_effect(found)]
