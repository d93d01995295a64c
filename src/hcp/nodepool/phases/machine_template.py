"""A new KubevirtMachineTemplate for every new content; existing ones are never edited."""

from __future__ import annotations

from hcp.api import conditions as c
from hcp.api.names import (
    ANNOTATION_KUBEVIRT_TOPOLOGY_SPREAD,
    ANNOTATION_TERMINATION_GRACE,
    ANNOTATION_VM_JSON_PATCH,
    MARK_CURRENT_TEMPLATE,
)
from hcp.api.paths import annotations_of, at
from hcp.errors import HcpError
from hcp.nodepool import inherited
from hcp.nodepool.bootimage import disk_source
from hcp.nodepool.scope import LOOK_AGAIN, Learned, Scope, refused
from hcp.nodepool.template import TemplateInput, choose_template, machine_template
from hcp.runtime import apply_if_changed
from hcp.runtime.phases import Waiting


async def run(scope: Scope) -> Learned:
    if scope.image is None or scope.infra is None:
        raise Waiting("the boot image is not known yet", again=LOOK_AGAIN)
    asked = {**annotations_of(scope.cluster), **scope.pool_annotations, **scope.annotations}
    texts = [annotations_of(item).get(ANNOTATION_VM_JSON_PATCH) for item in (scope.cluster, scope.pool)]
    given = TemplateInput(
        node_pool=scope.name,
        infra_id=scope.infra_id,
        platform=scope.platform,
        source=disk_source(scope.image, scope.seen.cache_name or None, scope.infra.namespace),
        infra_namespace=scope.infra.namespace if scope.infra.external else "",
        topology_spread={**scope.pool_annotations, **scope.annotations}.get(ANNOTATION_KUBEVIRT_TOPOLOGY_SPREAD)
        == "true",
        patches=tuple(text for text in texts if text),
    )
    try:
        template, spec = choose_template(given, asked.get(ANNOTATION_TERMINATION_GRACE), _in_use(scope))
        if not scope.paused:
            wanted = machine_template(template, scope.hosted, scope.key, spec)
            await apply_if_changed(scope.ctx.client, scope.tools.watches.templates, wanted)
    except HcpError as error:
        raise refused(c.VALID_MACHINE_TEMPLATE, c.INVALID_MACHINE_TEMPLATE, str(error)) from error
    changed = scope.pool_annotations.get(MARK_CURRENT_TEMPLATE) != template
    message = f"platform machine template update in progress. Target template: {template}" if changed else ""
    said = {
        c.VALID_MACHINE_TEMPLATE: (True, c.AS_EXPECTED, ""),
        c.UPDATING_MACHINE_TEMPLATE: (changed, c.AS_EXPECTED, message),
    }
    return Learned(said=said, template=template)


def _in_use(scope: Scope) -> str:
    """The template that the pool's machines are made of; none before there are any."""
    known = scope.tools.watches.deployments.get(scope.name, scope.hosted)
    return str(at(known, "spec.template.spec.infrastructureRef.name", "")) or inherited.template(inherited.sets(scope))
