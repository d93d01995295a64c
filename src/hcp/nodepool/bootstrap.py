"""The phases that give machines their configuration: raw text and hashes, tokens, document and user data."""

from __future__ import annotations

import base64
import datetime as dt

from hcp.api import conditions as c
from hcp.api.names import ANNOTATION_CURRENT_CONFIG_VERSION, ANNOTATION_IGNITION_TOKEN_EXPIRY, GROUP
from hcp.api.spec import service_networks
from hcp.errors import HcpError
from hcp.guest.own_network import pod_networks
from hcp.ignition import store
from hcp.ignition.hashes import hash_simple
from hcp.ignition.node import NodeInput, rendered
from hcp.ignition.pointer import Proxy, pointer
from hcp.ignition.tokens import GRACE_AFTER_ROLLOUT, Tokens, fresh, rotated, stamp, until_rotation
from hcp.kube.errors import NotFound
from hcp.kube.resources import CONFIGMAPS, SECRETS
from hcp.nodepool import unacted
from hcp.nodepool.config import ConfigInput, GeneratedConfig, generate, global_config
from hcp.nodepool.inputs import HostedInputs, api_proxy, component, hosted_inputs
from hcp.nodepool.joined import joining_labels
from hcp.nodepool.scope import Object, Scope
from hcp.nodepool.secrets import (
    TOKEN_PREFIX,
    TokenContent,
    expiry,
    read_tokens,
    token_name,
    token_secret,
    user_data_name,
    user_data_secret,
)
from hcp.runtime import Result, apply_if_changed

CURRENT_CONFIG = f"{GROUP}/nodePoolCurrentConfig"
CURRENT_CONFIG_VERSION = ANNOTATION_CURRENT_CONFIG_VERSION
TARGET_CONFIG_VERSION = f"{GROUP}/nodePoolTargetConfigVersion"


async def configuration(scope: Scope) -> Result | None:
    """Generate the configuration text and its hashes; bad user input is a condition, not a crash."""
    release = scope.known_release()
    proxy = api_proxy(scope, release)
    inputs = await hosted_inputs(scope)
    spec = scope.cluster_spec
    scope.set(c.VALID_TUNING_CONFIG, *await _tuning(scope))
    try:
        user = await _user_configs(scope)
        scope.config = generate(
            ConfigInput(
                api_proxy=proxy,
                fips=bool(spec.get("fips")),
                ssh_key=inputs.ssh_key,
                image_content_sources=spec.get("imageContentSources") or [],
                user_configs=user,
                version=release.version,
                pull_secret_name=(spec.get("pullSecret") or {}).get("name", ""),
                trust_bundle_name=(spec.get("additionalTrustBundle") or {}).get("name", ""),
                configuration=spec.get("configuration") or {},
                pod_networks=pod_networks(spec),
                service_networks=service_networks(scope.cluster_spec),
            )
        )
        payload = _payload(scope, scope.config, inputs)
    except HcpError as error:
        raise scope.refuse(c.VALID_MACHINE_CONFIG, c.VALIDATION_FAILED, str(error)) from error
    scope.set(c.VALID_MACHINE_CONFIG, True, c.AS_EXPECTED)
    _updating(scope, scope.config, release.version)
    if scope.paused:
        return None
    return await _store(scope, scope.config, inputs, payload)


async def _named(scope: Scope, field: str) -> dict[str, Object | None]:
    """The ConfigMaps a field of the spec names, None for those that do not exist."""
    names = [entry["name"] for entry in scope.spec.get(field) or []]
    if not names:
        return {}
    informer = await scope.tools.watches.given(CONFIGMAPS, scope.namespace)
    return {name: informer.get(name, scope.namespace) for name in names}


async def _tuning(scope: Scope) -> unacted.Verdict:
    return unacted.tuning(await _named(scope, "tuningConfig"))


async def _user_configs(scope: Scope) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, item in (await _named(scope, "config")).items():
        if item is None:
            raise HcpError(f"ConfigMap {name!r} named in spec.config does not exist")
        text = (item.get("data") or {}).get("config")
        if not text:
            raise HcpError(f"ConfigMap {name!r} has no key 'config'")
        found[name] = text
    return found


def _updating(scope: Scope, config: GeneratedConfig, version: str) -> None:
    known = scope.pool_annotations.get(CURRENT_CONFIG)
    changed = known != config.without_version
    message = f"Updating config in progress. Target config: {config.without_version}" if changed else ""
    scope.set(c.UPDATING_CONFIG, changed, c.AS_EXPECTED, message)
    changed = scope.status.get("version") != version
    message = f"Updating version in progress. Target version: {version}" if changed else ""
    scope.set(c.UPDATING_VERSION, changed, c.AS_EXPECTED, message)
    scope.annotations[TARGET_CONFIG_VERSION] = config.target


def _payload(scope: Scope, config: GeneratedConfig, inputs: HostedInputs) -> bytes:
    return rendered(
        NodeInput(
            raw_config=config.raw,
            bootstrap_kubeconfig=inputs.bootstrap_kubeconfig,
            kubelet_client_ca=inputs.kubelet_client_ca,
            service_network=service_networks(scope.cluster_spec),
            pause_image=component(scope.known_release(), "pause", "pod"),
            pull_secret=inputs.pull_secret,
            trust_bundle=inputs.trust_bundle,
            registry_authorities=inputs.registry_authorities,
            labels=joining_labels(scope.name, scope.known_release().version) if scope.unmanaged else {},
        )
    )


async def _store(scope: Scope, config: GeneratedConfig, inputs: HostedInputs, payload: bytes) -> Result | None:
    now = dt.datetime.now(dt.UTC)
    watches, client = scope.tools.watches, scope.ctx.client
    name = token_name(scope.name, config.target)
    # The cache may lag behind our own write of a moment ago: never make a second token without asking the server.
    known = watches.secrets.get(name, scope.hosted) or await client.get_or_none(SECRETS, name, scope.hosted)
    tokens = rotated(read_tokens(known) or fresh(now), now)
    document = store.document_secret(
        scope.hosted,
        scope.key,
        config.target,
        token=tokens.current,
        old_token=tokens.previous,
        payload=payload,
        namespace=scope.ctx.namespace,
    )
    # The token is remembered before it is handed out: a crash in between must not leave two of them.
    content = _content(scope, config, inputs)
    seen = watches.documents.get(document["metadata"]["name"], scope.ctx.namespace)
    reached = bool(seen and (seen["metadata"].get("annotations") or {}).get(store.ANNOTATION_REACHED) == "True")
    record = token_secret(scope.hosted, scope.pool, config.target, tokens, content, reached)
    await apply_if_changed(client, watches.secrets, record)
    await apply_if_changed(client, watches.documents, document)
    older = watches.documents.get(store.older_secret_name(scope.hosted, scope.name, config.target), scope.ctx.namespace)
    if older is not None and (older["metadata"].get("labels") or {}).get(store.LABEL_CONTROL_PLANE) == scope.hosted:
        await drop_secret(scope, older["metadata"]["name"], scope.ctx.namespace)
    await apply_if_changed(client, watches.secrets, await _user_data(scope, config, tokens))
    scope.set(c.VALID_GENERATED_PAYLOAD, True, c.AS_EXPECTED, "Payload generated successfully")
    _report_reached(scope, reached)
    return Result(until_rotation(tokens, now) + 1)


def _content(scope: Scope, config: GeneratedConfig, inputs: HostedInputs) -> TokenContent:
    release = (scope.spec.get("release") or {}).get("image", "")
    return TokenContent(
        release=release,
        release_version=scope.known_release().version,
        raw_config=config.raw,
        pull_secret_hash=hash_simple(inputs.pull_secret),
        trust_bundle_hash=hash_simple(inputs.trust_bundle),
        configuration_hash=hash_simple(global_config(scope.cluster_spec.get("configuration") or {})),
    )


def _report_reached(scope: Scope, reached: bool) -> None:
    before = any(e.get("type") == c.REACHED_IGNITION_ENDPOINT and e.get("status") == "True" for e in scope.conditions)
    if reached:
        scope.set(c.REACHED_IGNITION_ENDPOINT, True, c.AS_EXPECTED)
        if not before:
            scope.ctx.events.event(scope.pool, "Normal", "GetPayload", "A machine fetched its node document")
    elif not before:
        scope.set(c.REACHED_IGNITION_ENDPOINT, False, c.IGNITION_NOT_REACHED, "No machine has fetched its document yet")


async def _user_data(scope: Scope, config: GeneratedConfig, tokens: Tokens) -> Object:
    authority = base64.b64decode(((await scope.tools.watches.authority() or {}).get("data") or {}).get("ca.crt", ""))
    endpoint = str((scope.cluster.get("status") or {}).get("ignitionEndpoint"))
    text = pointer(endpoint, authority, tokens.current, scope.key, config.target, _proxy(scope))
    return user_data_secret(scope.hosted, scope.pool, config.target, scope.infra_id, text)


def _proxy(scope: Scope) -> Proxy | None:
    found = (scope.cluster_spec.get("configuration") or {}).get("proxy")
    if not found:
        return None
    direct = tuple(part.strip() for part in str(found.get("noProxy") or "").split(",") if part.strip())
    return Proxy(found.get("httpProxy", ""), found.get("httpsProxy", ""), direct)


async def janitor(scope: Scope) -> Result | None:
    """End the tokens of older configurations after a grace time, and drop user data no machine refers to."""
    if scope.config is None or scope.paused:
        return None
    now, client, watches = dt.datetime.now(dt.UTC), scope.ctx.client, scope.tools.watches
    current = {token_name(scope.name, scope.config.target), user_data_name(scope.name, scope.config.target)}
    used = {
        ((machine.get("spec") or {}).get("bootstrap") or {}).get("dataSecretName")
        for machine in [*watches.of_pool(watches.machines, scope.key), *watches.of_pool(watches.sets, scope.key)]
    }
    used |= {
        (((item.get("spec") or {}).get("template") or {}).get("spec") or {}).get("bootstrap", {}).get("dataSecretName")
        for item in watches.of_pool(watches.sets, scope.key)
        if int((item.get("spec") or {}).get("replicas") or 0) > 0
    }
    soonest: float | None = None
    for secret in watches.of_pool(watches.secrets, scope.key):
        name = secret["metadata"]["name"]
        if name in current or secret["metadata"]["namespace"] != scope.hosted:
            continue
        if not name.startswith(TOKEN_PREFIX):
            if name not in used:
                await drop_secret(scope, name, scope.hosted)
            continue
        ends = expiry(secret)
        if ends is None:
            ends = now + GRACE_AFTER_ROLLOUT
            body = {"metadata": {"annotations": {ANNOTATION_IGNITION_TOKEN_EXPIRY: stamp(ends)}}}
            await client.patch(SECRETS, name, scope.hosted, body)
            document = _document_of(scope, name)
            if watches.documents.get(document, scope.ctx.namespace) is not None:
                await client.patch(SECRETS, document, scope.ctx.namespace, body)
        if ends <= now:
            await drop_secret(scope, _document_of(scope, name), scope.ctx.namespace)
            await drop_secret(scope, name, scope.hosted)
        else:
            left = (ends - now).total_seconds() + 1
            soonest = left if soonest is None else min(soonest, left)
    return None if soonest is None else Result(soonest)


def _document_of(scope: Scope, token: str) -> str:
    target = token.removeprefix(f"{TOKEN_PREFIX}{scope.name}-")
    return store.secret_name(scope.hosted, scope.name, target)


async def drop_secret(scope: Scope, name: str, namespace: str) -> None:
    """Delete a secret that may be gone already."""
    try:
        await scope.ctx.client.delete(SECRETS, name, namespace)
    except NotFound:
        return
