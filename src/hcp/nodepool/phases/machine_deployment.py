"""The MachineDeployment; when all its machines are new, the pool's current version and hashes follow."""

from __future__ import annotations

from hcp.api import conditions as c
from hcp.api.names import ANNOTATION_CURRENT_CONFIG_VERSION, MARK_CURRENT_CONFIG, MARK_CURRENT_TEMPLATE
from hcp.api.paths import at
from hcp.nodepool.machines import DeploymentInput, deployment_complete, machine_deployment
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
        current_replicas=at(known, "spec.replicas"),
    )
    desired = machine_deployment(given)
    if scope.paused:
        if known is None:
            return None
        # Only the mark that tells Cluster API to hold still; everything else stays as it was.
        desired["spec"] = known["spec"]
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


def _made_of(item: Object) -> tuple[object, ...]:
    spec = item["spec"]["template"]["spec"]
    return spec["bootstrap"].get("dataSecretName"), spec["infrastructureRef"]["name"], spec.get("version")
