"""The MachineDeployment; when all its machines are new, the pool's current version and hashes follow."""

from __future__ import annotations

from hcp.api import conditions as c
from hcp.api.names import ANNOTATION_CURRENT_CONFIG_VERSION, MARK_CURRENT_CONFIG, MARK_CURRENT_TEMPLATE
from hcp.api.paths import at
from hcp.kube.client import MANAGER
from hcp.kube.errors import Conflict
from hcp.kubevirt import evacuation_plan
from hcp.nodepool import inherited, scaling
from hcp.nodepool.machines import API, DeploymentInput, deployment_complete, machine_deployment
from hcp.nodepool.scope import LOOK_AGAIN, Learned, Object, Scope
from hcp.nodepool.secrets import user_data_name
from hcp.runtime import apply_if_changed
from hcp.runtime.phases import Waiting


async def run(scope: Scope) -> Learned | None:
    config = scope.config
    if config is None:
        raise Waiting("the node configuration is not known yet", again=LOOK_AGAIN)
    known = scope.tools.watches.deployments.get(scope.name, scope.hosted)
    version = scope.known_release().version
    given = DeploymentInput(
        namespace=scope.hosted,
        node_pool=scope.pool,
        infra_id=scope.infra_id,
        template=scope.template,
        user_data=user_data_name(scope.name, config.target),
        version=version,
        paused=scope.paused,
        exists=known is not None,
        size=inherited.size(inherited.sets(scope)),
        beyond=evacuation_plan.beyond(scope.tools.watches.of_pool(scope.tools.watches.machines, scope.key)),
        machine=_machine(scope),
    )
    desired = machine_deployment(given)
    if scope.paused:
        if known is None:
            return None
        # Only the marks that tell Cluster API and the autoscaler to hold still; everything else stays as it was.
        desired["spec"] = known["spec"]
        if scaling.bounds(scope.spec) and not scaling.owns_size(known, MANAGER):
            desired["spec"] = {key: value for key, value in known["spec"].items() if key != "replicas"}
    elif known is not None and scaling.bounds(scope.spec):
        await _size(scope, known)
    live = await apply_if_changed(scope.ctx.client, scope.tools.watches.deployments, desired)
    if scope.paused or not deployment_complete(live) or _made_of(live) != _made_of(desired):
        return None
    kinds = (c.UPDATING_VERSION, c.UPDATING_CONFIG, c.UPDATING_MACHINE_TEMPLATE)
    return Learned(
        said=dict.fromkeys(kinds, (False, c.AS_EXPECTED, "")),
        seen={"finished": version},
        annotations={
            MARK_CURRENT_CONFIG: config.without_version,
            ANNOTATION_CURRENT_CONFIG_VERSION: config.target,
            MARK_CURRENT_TEMPLATE: scope.template,
        },
    )


async def _size(scope: Scope, known: Object) -> None:
    """The size of a pool that follows the load is the autoscaler's; ours is to keep it within the bounds.

    Before what we apply leaves the size out, somebody else must own it, or it would go. Who else has changed it
    meanwhile owns it already: then there is nothing to do, and a size out of bounds brings the next pass.
    """
    current = at(known, "spec.replicas")
    wanted = scaling.effective_replicas(scope.spec, current)
    if current == wanted and not scaling.owns_size(known, MANAGER):
        return
    body = {
        "apiVersion": API,
        "kind": "MachineDeployment",
        # Of this very object: one that is gone is not made anew of its size.
        "metadata": {"name": scope.name, "namespace": scope.hosted, "uid": known["metadata"]["uid"]},
        "spec": {"replicas": wanted},
    }
    try:
        made = await scope.ctx.client.apply(body, manager=scaling.MANAGER, force=current != wanted)
    except Conflict:
        return
    scope.tools.watches.deployments.observe(made)


def _machine(scope: Scope) -> Object | None:
    """The VM of the pool's template."""
    template = scope.tools.watches.templates.get(scope.template, scope.hosted) if scope.template else None
    return at(template, "spec.template.spec.virtualMachineTemplate") or None


def _made_of(item: Object) -> tuple[object, ...]:
    spec = item["spec"]["template"]["spec"]
    return spec["bootstrap"].get("dataSecretName"), spec["infrastructureRef"]["name"], spec.get("version")
