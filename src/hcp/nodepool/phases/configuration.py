"""The configuration text of a pool's machines and its hashes; bad user input is a condition, not a crash."""

from __future__ import annotations

from hcp.api import conditions as c
from hcp.api.names import MARK_CURRENT_CONFIG, MARK_TARGET_CONFIG_VERSION
from hcp.api.paths import at, block
from hcp.api.spec import cluster_networks, service_networks
from hcp.errors import HcpError
from hcp.guest.own_network import pod_networks
from hcp.ignition.machineconfig import NodeConfig, interpret
from hcp.ignition.node import NodeInput, rendered
from hcp.ignition.tuned import read_tuning
from hcp.kube.resources import CONFIGMAPS
from hcp.nodepool import ignored_fields
from hcp.nodepool.config import ConfigInput, GeneratedConfig, generate
from hcp.nodepool.inputs import api_proxy, component, hosted_inputs
from hcp.nodepool.joined import joining_labels
from hcp.nodepool.proxy import node_proxy
from hcp.nodepool.scope import HostedInputs, Learned, Object, Scope
from hcp.runtime.conditions import Verdict
from hcp.runtime.phases import Waiting


async def run(scope: Scope) -> Learned:
    release = scope.known_release()
    proxy = api_proxy(scope, release)
    inputs = await hosted_inputs(scope)
    spec = scope.cluster_spec
    said: dict[str, Verdict | None] = {}
    try:
        tuning = read_tuning(await _texts(scope, "tuningConfig", "tuning"))
    except HcpError as error:
        said[c.VALID_TUNING_CONFIG] = (False, c.VALIDATION_FAILED, str(error))
        raise Waiting(str(error), facts=Learned(said=said)) from error
    said[c.VALID_TUNING_CONFIG] = ignored_fields.followed(tuning.without_effect)
    try:
        config = generate(
            ConfigInput(
                api_proxy=proxy,
                fips=bool(spec.get("fips")),
                ssh_key=inputs.ssh_key,
                image_content_sources=spec.get("imageContentSources") or [],
                user_configs=await _texts(scope, "config", "config"),
                version=release.version,
                pull_secret_name=at(spec, "pullSecret.name", ""),
                trust_bundle_name=at(spec, "additionalTrustBundle.name", ""),
                configuration=block(spec, "configuration"),
                pod_networks=pod_networks(spec),
                service_networks=service_networks(spec),
                tuning=tuning,
            )
        )
        asked = interpret(config.raw)
        payload = _payload(scope, config, asked, inputs)
    except HcpError as error:
        said[c.VALID_MACHINE_CONFIG] = (False, c.VALIDATION_FAILED, str(error))
        raise Waiting(str(error), facts=Learned(said=said)) from error
    said[c.VALID_MACHINE_CONFIG] = ignored_fields.followed(asked.without_effect)
    current = scope.pool_annotations.get(MARK_CURRENT_CONFIG)
    said[c.UPDATING_CONFIG] = updating("config", current, config.without_version)
    said[c.UPDATING_VERSION] = updating("version", scope.version, release.version)
    return Learned(
        said=said,
        annotations={MARK_TARGET_CONFIG_VERSION: config.target},
        config=config,
        inputs=inputs,
        payload=payload,
    )


def updating(what: str, current: str | None, target: str) -> Verdict:
    changed = current != target
    return changed, c.AS_EXPECTED, f"Updating {what} in progress. Target {what}: {target}" if changed else ""


async def _named(scope: Scope, field: str) -> dict[str, Object | None]:
    """The ConfigMaps a field of the spec names, None for those that do not exist."""
    names = [entry["name"] for entry in scope.spec.get(field) or []]
    if not names:
        return {}
    informer = await scope.tools.watches.given(CONFIGMAPS, scope.namespace)
    return {name: informer.get(name, scope.namespace) for name in names}


async def _texts(scope: Scope, field: str, key: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, item in (await _named(scope, field)).items():
        if item is None:
            raise HcpError(f"ConfigMap {name!r} named in spec.{field} does not exist")
        text = at(item, f"data.{key}")
        if not text:
            raise HcpError(f"ConfigMap {name!r} has no key {key!r}")
        found[name] = text
    return found


def _payload(scope: Scope, config: GeneratedConfig, asked: NodeConfig, inputs: HostedInputs) -> bytes:
    return rendered(
        NodeInput(
            raw_config=config.raw,
            bootstrap_kubeconfig=inputs.bootstrap_kubeconfig,
            kubelet_client_ca=inputs.kubelet_client_ca,
            service_network=service_networks(scope.cluster_spec),
            cluster_network=cluster_networks(scope.cluster_spec),
            pause_image=component(scope.known_release(), "pause", "pod"),
            pull_secret=inputs.pull_secret,
            trust_bundle=inputs.trust_bundle,
            registry_authorities=inputs.registry_authorities,
            release_images=sorted(scope.known_release().components.values()),
            labels=joining_labels(scope.name, scope.known_release().version) if scope.unmanaged else {},
            proxy=node_proxy(scope, inputs.proxy_authority),
        ),
        asked,
    )
