"""Putting manifests on a cluster: definitions first and tried before anything is written, then everything else."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from hcp.api import names
from hcp.api.manifests import Object
from hcp.api.paths import annotations_of, at
from hcp.errors import HcpError
from hcp.install import base, manifests, operator, privileges
from hcp.install.options import Options
from hcp.kube import Client
from hcp.kube import resources as r
from hcp.kube.errors import AlreadyExists
from hcp.kube.follow import follow
from hcp.router import manifests as router
from hcp.runtime import workloads

Say = Callable[[str], None]
CRDS_TIMEOUT = 60.0
WAIT_TIMEOUT_CODE = 3
# How the CA of the embedded registry is published.
REGISTRY_KEY = "registry.hcp.test..5000"


async def wants_router(client: Client, *, forced: bool) -> bool:
    """Whether the router is ours to install: asked for, there already by us, or nobody serves Routes."""
    found = await client.get_or_none(r.DEPLOYMENTS, router.NAME, names.ROUTER_NAMESPACE)
    if found is None:
        return forced or not await client.has(r.ROUTES)
    if forced and _arguments(found)[:2] != ["router", "run"]:
        raise HcpError(
            f"this cluster has a router of its own: Deployment {names.ROUTER_NAMESPACE}/{router.NAME}",
            hint="leave --router out; its Routes are used",
        )
    return forced or manifests.INSTALLED in annotations_of(found)


def _arguments(deployment: Object) -> list[str]:
    found: list[str] = deployment["spec"]["template"]["spec"]["containers"][0].get("args") or []
    return found


async def current_router_domain(client: Client) -> str:
    """The apps domain a former run gave our router: running again without naming one keeps it."""
    found = await client.get_or_none(r.DEPLOYMENTS, router.NAME, names.ROUTER_NAMESPACE)
    if found is None:
        return ""
    return next((one.partition("=")[2] for one in _arguments(found) if one.startswith("--domain=")), "")


async def current_foreign_wildcards(client: Client) -> bool:
    """Whether a former run let our router give out hosts under wildcards of other namespaces."""
    found = await client.get_or_none(r.DEPLOYMENTS, router.NAME, names.ROUTER_NAMESPACE)
    return found is not None and router.FOREIGN_WILDCARDS in _arguments(found)


async def named_route_port(client: Client, *, ours: bool) -> int:
    """Where nodes may name a hosted API to the router, if that is or becomes one of hcp."""
    if ours:
        return router.NAMED_SERVICE_PORT
    found = await client.get_or_none(r.SERVICES, router.NAME, names.ROUTER_NAMESPACE)
    ports = found["spec"].get("ports") or [] if found else []
    return next((int(one["port"]) for one in ports if one.get("name") == router.NAMED), 0)


async def has_embedded_registry(client: Client) -> bool:
    """Whether this is an embedded cluster, which serves the images built on its machine under a fixed name."""
    if not await client.has(r.IMAGE_CONFIGS):
        return False
    config = await client.get_or_none(r.IMAGE_CONFIGS, "cluster") or {}
    name = at(config, "spec.additionalTrustedCA.name")
    if not name:
        return False
    trusted = await client.get_or_none(r.CONFIGMAPS, name, names.CONFIG_NAMESPACE) or {}
    return REGISTRY_KEY in (trusted.get("data") or {})


async def current_image(client: Client, namespace: str) -> str:
    """The image a former run gave the operator: running again without naming one keeps it."""
    found = await client.get_or_none(r.DEPLOYMENTS, operator.NAME, namespace)
    return str(found["spec"]["template"]["spec"]["containers"][0].get("image") or "") if found else ""


async def current_declarations(client: Client, namespace: str) -> dict[str, tuple[str, ...]]:
    """What a former run told the operator in lists, by flag: running again without these flags keeps them."""
    found = await client.get_or_none(r.DEPLOYMENTS, operator.NAME, namespace)
    said = (one.partition("=")[::2] for one in (_arguments(found) if found else []))
    return {flag: tuple(one for one in text.split(",") if one) for flag, text in said if flag in operator.LISTS}


@dataclass(frozen=True)
class Written:
    """What a former run wrote down about registries: running again without naming it keeps it."""

    default_release: str = ""
    supported_versions: tuple[str, ...] = ()
    pull_secret: bytes | None = None
    trust_bundle: str = ""


async def written(client: Client, namespace: str) -> Written:
    versions = await client.get_or_none(r.CONFIGMAPS, names.SUPPORTED_VERSIONS, namespace) or {}
    secret = await client.get_or_none(r.SECRETS, base.PULL_SECRET, namespace) or {}
    bundle = await client.get_or_none(r.CONFIGMAPS, names.USER_CA_BUNDLE, namespace) or {}
    data = versions.get("data") or {}
    login = (secret.get("data") or {}).get(names.PULL_SECRET_KEY)
    return Written(
        str(data.get(names.DEFAULT_RELEASE_KEY) or ""),
        _known_minors(str(data.get(names.SUPPORTED_VERSIONS_KEY) or "")),
        base64.b64decode(login) if login else None,
        str((bundle.get("data") or {}).get(names.CA_BUNDLE_KEY) or ""),
    )


def _known_minors(text: str) -> tuple[str, ...]:
    """The list as it was written, without what this version of hcp does not know any more."""
    try:
        found = json.loads(text)["versions"]
    except (ValueError, KeyError, TypeError):
        return ()
    return tuple(str(one) for one in found if one in names.SUPPORTED_KUBERNETES)


async def current_privileges(client: Client) -> tuple[str, ...]:
    """What a former run allowed everybody: running again without naming any keeps it."""
    found = await client.get_or_none(r.CLUSTERROLES, privileges.ALLOWED)
    return tuple(name for rule in (found or {}).get("rules") or [] for name in rule.get("resourceNames") or [])


async def can_guard(client: Client, *, needed: bool) -> bool:
    """Whether the API server knows the policies that guard privileges; without them nothing is installed unasked."""
    if await client.has(r.VALIDATING_POLICIES):
        return True
    if needed:
        raise HcpError(
            "this API server has no ValidatingAdmissionPolicies",
            cause="it is older than Kubernetes 1.30; whoever may write HostedClusters could then also set priority "
            "classes, images, tolerations and the pod security of control planes",
            hint="update the cluster; where everybody who may write HostedClusters is trusted with that: "
            "--without-privilege-policies",
        )
    return False


async def apply_crds(client: Client, crds: list[Object], say: Say, *, wait: bool = True) -> None:
    for crd in crds:
        await client.apply(crd, manager=names.INSTALL_FIELD_MANAGER, dry_run=True)
    for crd in crds:
        await client.apply(crd, manager=names.INSTALL_FIELD_MANAGER)
        say(f"applied CustomResourceDefinition /{crd['metadata']['name']}")
    if wait:
        await wait_established(client, [crd["metadata"]["name"] for crd in crds])


async def wait_established(client: Client, wanted: Iterable[str]) -> None:
    missing = set(wanted)

    async def one(name: str) -> None:
        async with aclosing(follow(client, r.CRDS, name)) as states:
            async for crd in states:
                if crd is not None and _true(crd, "Established"):
                    missing.discard(name)
                    return

    try:
        async with asyncio.timeout(CRDS_TIMEOUT):
            await asyncio.gather(*map(one, sorted(missing)))
    except TimeoutError:
        raise HcpError(
            f"the API server does not serve {', '.join(sorted(missing))} yet",
            hint="look at the conditions with kubectl describe crd, then run it again",
            exit_code=WAIT_TIMEOUT_CODE,
        ) from None


async def apply_resources(client: Client, objects: list[Object], say: Say) -> None:
    for obj in objects:
        where = f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"
        if obj["kind"] == "PriorityClass":
            # Its value cannot be changed: one that is there is left alone.
            try:
                await client.create(obj, manager=names.INSTALL_FIELD_MANAGER)
                say(f"created PriorityClass {where}")
            except AlreadyExists:
                say(f"already exists: PriorityClass {where}")
            continue
        await client.apply(obj, manager=names.INSTALL_FIELD_MANAGER)
        say(f"applied {obj['kind']} {where}")


async def wait_available(client: Client, options: Options, seconds: float, say: Say) -> None:
    """Wait for the operator's Deployment; when it does not come up, say what its pods say."""
    told = ""
    try:
        async with (
            asyncio.timeout(seconds),
            aclosing(follow(client, r.DEPLOYMENTS, operator.NAME, options.namespace)) as states,
        ):
            async for found in states:
                if found is None:
                    continue
                if workloads.rolled_out(found):
                    return
                have, want = workloads.available(found), workloads.wanted(found)
                line = f"waiting for the operator: {have} of {want} available"
                if line != told:
                    say(line)
                    told = line
    except TimeoutError:
        raise HcpError(
            f"the operator is not available after {seconds:.0f} s",
            cause=await _pod_reasons(client, options) or None,
            hint=f"kubectl -n {options.namespace} describe deployment {operator.NAME} shows more",
            exit_code=WAIT_TIMEOUT_CODE,
        ) from None


async def _pod_reasons(client: Client, options: Options) -> str:
    reasons = []
    for pod in await client.list(r.PODS, options.namespace, labels=f"name={operator.NAME}"):
        for status in at(pod, "status.containerStatuses") or []:
            state: dict[str, Any] = at(status, "state.waiting") or {}
            if state:
                reasons.append(
                    f"pod {pod['metadata']['name']}: {state.get('reason')} {state.get('message', '')}".strip()
                )
    return "; ".join(reasons)


def _true(obj: Object, condition: str) -> bool:
    found = at(obj, "status.conditions") or []
    return any(one["type"] == condition and one["status"] == "True" for one in found)


async def gone(client: Client, res: r.Resource, name: str, namespace: str | None, seconds: float) -> bool:
    """Whether an object has disappeared within the time."""
    try:
        async with asyncio.timeout(seconds), aclosing(follow(client, res, name, namespace)) as states:
            async for found in states:
                if found is None:
                    return True
    except TimeoutError:
        pass
    return False
