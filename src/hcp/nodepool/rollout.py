"""The phases that make machines: template, MachineDeployment, health check, and cleaning up old templates."""

from __future__ import annotations

from hcp.api import conditions as c
from hcp.api.names import (
    ANNOTATION_KUBEVIRT_TOPOLOGY_SPREAD,
    ANNOTATION_TERMINATION_GRACE,
    ANNOTATION_VM_JSON_PATCH,
    GROUP,
)
from hcp.errors import HcpError
from hcp.kube.errors import NotFound
from hcp.kube.resources import KUBEVIRTMACHINETEMPLATES
from hcp.nodepool.bootimage import disk_source
from hcp.nodepool.bootstrap import CURRENT_CONFIG, CURRENT_CONFIG_VERSION
from hcp.nodepool.health import machine_health_check, repair_template
from hcp.nodepool.machines import DeploymentInput, deployment_complete, machine_deployment
from hcp.nodepool.scope import LOOK_AGAIN, Object, Scope
from hcp.nodepool.secrets import user_data_name
from hcp.nodepool.template import TemplateInput, choose_template, machine_template
from hcp.runtime import Result, Waiting, apply_if_changed, is_true

CURRENT_TEMPLATE = f"{GROUP}/nodePoolPlatformMachineTemplate"


async def template(scope: Scope) -> Result | None:
    """A new KubevirtMachineTemplate for every new content; existing ones are never edited."""
    if scope.image is None or scope.infra is None:
        raise Waiting("the boot image is not known yet", again=LOOK_AGAIN)
    annotation = scope.annotations.get(
        ANNOTATION_KUBEVIRT_TOPOLOGY_SPREAD, scope.pool_annotations.get(ANNOTATION_KUBEVIRT_TOPOLOGY_SPREAD)
    )
    texts = [
        (item["metadata"].get("annotations") or {}).get(ANNOTATION_VM_JSON_PATCH)
        for item in (scope.cluster, scope.pool)
    ]
    given = TemplateInput(
        node_pool=scope.name,
        infra_id=scope.infra_id,
        platform=scope.platform,
        source=disk_source(scope.image, scope.cache_name, scope.infra.namespace),
        infra_namespace=scope.infra.namespace if scope.infra.external else "",
        topology_spread=annotation == "true",
        patches=tuple(text for text in texts if text),
    )
    cluster_annotations = scope.cluster["metadata"].get("annotations") or {}
    asked = {**cluster_annotations, **scope.pool_annotations}.get(ANNOTATION_TERMINATION_GRACE)
    try:
        scope.template, spec = choose_template(given, asked, _template_in_use(scope))
    except HcpError as error:
        raise scope.refuse(c.VALID_MACHINE_TEMPLATE, c.INVALID_MACHINE_TEMPLATE, str(error)) from error
    current = scope.pool_annotations.get(CURRENT_TEMPLATE)
    changed = current != scope.template
    message = f"platform machine template update in progress. Target template: {scope.template}" if changed else ""
    scope.set(c.UPDATING_MACHINE_TEMPLATE, changed, c.AS_EXPECTED, message)
    if not scope.paused:
        try:
            await apply_if_changed(
                scope.ctx.client,
                scope.tools.watches.templates,
                machine_template(scope.template, scope.hosted, scope.key, spec),
            )
        except HcpError as error:
            raise scope.refuse(c.VALID_MACHINE_TEMPLATE, c.INVALID_MACHINE_TEMPLATE, str(error)) from error
    scope.set(c.VALID_MACHINE_TEMPLATE, True, c.AS_EXPECTED)
    return None


def _template_in_use(scope: Scope) -> str:
    """The template that the pool's machines are made of; none before there are any."""
    known = scope.tools.watches.deployments.get(scope.name, scope.hosted) or {}
    machine = ((known.get("spec") or {}).get("template") or {}).get("spec") or {}
    return str((machine.get("infrastructureRef") or {}).get("name") or "")


async def deployment(scope: Scope) -> Result | None:
    """The MachineDeployment; when all its machines are new, the pool's current version and hashes follow."""
    if scope.config is None:
        raise Waiting("the node configuration is not known yet", again=LOOK_AGAIN)
    watches, release = scope.tools.watches, scope.known_release()
    known = watches.deployments.get(scope.name, scope.hosted)
    given = DeploymentInput(
        namespace=scope.hosted,
        node_pool=scope.pool,
        infra_id=scope.infra_id,
        template=scope.template,
        user_data=user_data_name(scope.name, scope.config.target),
        version=release.version,
        paused=scope.paused,
        current_replicas=(known.get("spec") or {}).get("replicas") if known else None,
    )
    desired = machine_deployment(given)
    if scope.paused and known is not None:
        # Paused: only the mark that tells Cluster API to hold still; everything else stays as it was.
        desired["spec"] = known["spec"]
    elif scope.paused:
        return None
    scope.deployment = await apply_if_changed(scope.ctx.client, watches.deployments, desired)
    if not scope.paused and deployment_complete(scope.deployment) and _is_current(scope.deployment, desired):
        _finish(scope)
    return None


def _is_current(live: Object, desired: Object) -> bool:
    def refs(item: Object) -> tuple[object, ...]:
        spec = item["spec"]["template"]["spec"]
        return spec["bootstrap"].get("dataSecretName"), spec["infrastructureRef"]["name"], spec.get("version")

    return refs(live) == refs(desired)


def _finish(scope: Scope) -> None:
    assert scope.config is not None
    scope.status["version"] = scope.known_release().version
    scope.annotations[CURRENT_CONFIG] = scope.config.without_version
    scope.annotations[CURRENT_CONFIG_VERSION] = scope.config.target
    scope.annotations[CURRENT_TEMPLATE] = scope.template
    for kind in (c.UPDATING_VERSION, c.UPDATING_CONFIG, c.UPDATING_MACHINE_TEMPLATE):
        scope.set(kind, False, c.AS_EXPECTED)


async def health_check(scope: Scope) -> Result | None:
    """Repair machines only when asked to, and only once bootstrapping is known to work at all."""
    if scope.paused:
        return None
    wanted = (scope.spec.get("management") or {}).get("autoRepair") and is_true(
        scope.conditions, c.REACHED_IGNITION_ENDPOINT
    )
    watches = scope.tools.watches
    if wanted:
        annotations = scope.cluster["metadata"].get("annotations") or {}
        given = (scope.hosted, scope.pool, scope.infra_id, annotations)
        await apply_if_changed(scope.ctx.client, watches.repair_templates, repair_template(*given))
        await apply_if_changed(scope.ctx.client, watches.checks, machine_health_check(*given))
        return None
    for informer in (watches.checks, watches.repair_templates):
        if informer.get(scope.name, scope.hosted) is not None:
            await scope.ctx.client.delete(informer.resource, scope.name, scope.hosted, missing_ok=True)
    return None


async def old_templates(scope: Scope) -> Result | None:
    """Delete templates no MachineSet refers to any more."""
    watches = scope.tools.watches
    if scope.paused or not scope.template:
        return None
    used = {
        (((item.get("spec") or {}).get("template") or {}).get("spec") or {}).get("infrastructureRef", {}).get("name")
        for item in [*watches.of_pool(watches.sets, scope.key), *watches.of_pool(watches.deployments, scope.key)]
    }
    for item in watches.of_pool(watches.templates, scope.key):
        name = item["metadata"]["name"]
        if name not in used and name != scope.template and item["metadata"]["namespace"] == scope.hosted:
            try:
                await scope.ctx.client.delete(KUBEVIRTMACHINETEMPLATES, name, scope.hosted)
            except NotFound:
                continue
    return None
