"""A pool's node configuration as text, and the hashes that decide whether machines are replaced.

Only what is in the raw text or named in the hash replaces machines: labels, taints, replica counts, timeouts and the
content of the pull secret do not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from hcp.ignition.apiproxy import NAME as API_PROXY_NAME
from hcp.ignition.apiproxy import ApiProxy, api_proxy_document
from hcp.ignition.document import document
from hcp.ignition.hashes import hash_simple
from hcp.ignition.machineconfig import joined, machine_config, normalised
from hcp.ignition.mirrors import MirrorRule
from hcp.ignition.node import FIPS_NAME, SSH_NAME, ssh_document
from hcp.ignition.podnetwork import NAME as POD_NETWORK_NAME
from hcp.ignition.podnetwork import pod_network_document
from hcp.ignition.tuned import NAME as TUNING_NAME
from hcp.ignition.tuned import Tuning, tuning_document


@dataclass(frozen=True)
class ConfigInput:
    """Everything the configuration text and its hashes depend on."""

    api_proxy: ApiProxy
    fips: bool
    ssh_key: str
    image_content_sources: Sequence[Mapping[str, Any]]
    user_configs: Mapping[str, str]
    version: str
    pull_secret_name: str
    trust_bundle_name: str
    configuration: Mapping[str, Any]
    os_stream: str = ""
    pod_networks: Sequence[str] = ()
    """Empty where somebody else brings the pod network."""
    service_networks: Sequence[str] = ()
    tuning: Tuning = field(default_factory=Tuning)


@dataclass(frozen=True)
class GeneratedConfig:
    """The raw text and its two hashes."""

    raw: str
    target: str
    without_version: str


def generate(given: ConfigInput) -> GeneratedConfig:
    """Build the raw configuration and hash it."""
    raw = joined([*_core_documents(given), *_user_documents(given.user_configs)])
    named = given.pull_secret_name + given.trust_bundle_name
    return GeneratedConfig(
        raw=raw,
        target=hash_simple(raw + given.version + named + global_config(given.configuration) + given.os_stream),
        without_version=hash_simple(raw + named + given.os_stream),
    )


def global_config(configuration: Mapping[str, Any]) -> str:
    """The cluster-wide settings that concern nodes: proxy and image configuration."""
    parts = [configuration.get("proxy"), configuration.get("image")]
    return "".join(json.dumps(part, sort_keys=True, separators=(",", ":")) for part in parts if part)


def mirror_rules(image_content_sources: Sequence[Mapping[str, Any]]) -> list[MirrorRule]:
    """The hosted cluster's imageContentSources as mirror rules."""
    return [MirrorRule(entry["source"], tuple(entry.get("mirrors") or ())) for entry in image_content_sources]


def _core_documents(given: ConfigInput) -> list[str]:
    documents = [
        machine_config(API_PROXY_NAME, api_proxy_document(given.api_proxy)),
        machine_config(POD_NETWORK_NAME, pod_network_document(given.pod_networks, given.service_networks)),
        _fips(given.fips),
        machine_config(SSH_NAME, ssh_document(given.ssh_key)),
    ]
    if given.image_content_sources:
        documents.append(
            {
                "apiVersion": "operator.openshift.io/v1alpha1",
                "kind": "ImageContentSourcePolicy",
                "metadata": {"name": "40-image-content-source"},
                "spec": {"repositoryDigestMirrors": [dict(entry) for entry in given.image_content_sources]},
            }
        )
    if not given.tuning.empty:
        documents.append(_tuning(given.tuning))
    return [yaml.safe_dump(item, sort_keys=True) for item in documents]


def _tuning(tuning: Tuning) -> dict[str, Any]:
    manifest = machine_config(TUNING_NAME, tuning_document(tuning))
    if tuning.kernel_arguments:
        manifest["spec"]["kernelArguments"] = list(tuning.kernel_arguments)
    return manifest


def _fips(enabled: bool) -> dict[str, Any]:
    manifest = machine_config(FIPS_NAME, document())
    manifest["spec"]["fips"] = enabled
    return manifest


def _user_documents(configs: Mapping[str, str]) -> list[str]:
    return [text for name in sorted(configs) for text in normalised(configs[name], f"ConfigMap {name!r}")]
