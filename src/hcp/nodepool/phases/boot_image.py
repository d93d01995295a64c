"""Which boot disk; with a cache, it is imported early, and those of older releases are dropped."""

from __future__ import annotations

import contextlib

from hcp.api import conditions as c
from hcp.api.names import LABEL_BOOT_IMAGE_ROLE, LABEL_NODEPOOL_UID
from hcp.api.paths import at, labels_of
from hcp.errors import HcpError
from hcp.kube.errors import AlreadyExists, NotFound
from hcp.kube.resources import DATAVOLUMES, NODEPOOLS
from hcp.kubevirt.infra import Infra
from hcp.nodepool import inherited
from hcp.nodepool.bootimage import (
    ROLE,
    BootImage,
    ImportState,
    boot_image,
    cache_volume,
    cached,
    choose_cache,
    import_state,
)
from hcp.nodepool.scope import Learned, Object, Scope, refused

_IMPORT_LOOK = 15.0


async def run(scope: Scope) -> Learned:
    try:
        found = boot_image(scope.platform, scope.known_release().boot_disk)
    except HcpError as error:
        raise refused(c.VALID_PLATFORM_IMAGE, c.VALIDATION_FAILED, str(error)) from error
    shown = (found.source.get("registry") or found.source.get("http") or {}).get("url", "")
    state, seen = ImportState(done=True), {}
    if cached(scope.platform, found) and scope.infra is not None:
        volume = await _ensure_cache(scope, scope.infra, found)
        seen = {"cache_name": str(volume["metadata"]["name"])}
        state = import_state(volume)
    # A failed import is said, not enforced: CDI tries again, and machines wait for their clones by themselves.
    reason = c.VALIDATION_FAILED if state.failed else c.AS_EXPECTED
    message = "; ".join(part for part in (f"Bootstrap KubeVirt Image is {shown}", state.message) if part)
    return Learned(
        said={c.VALID_PLATFORM_IMAGE: (not state.failed, reason, message)},
        seen=seen,
        image=found,
        again=None if state.done else _IMPORT_LOOK,
    )


async def _ensure_cache(scope: Scope, infra: Infra, image: BootImage) -> Object:
    uid = scope.pool["metadata"]["uid"]
    selector = f"{LABEL_BOOT_IMAGE_ROLE}={ROLE},{LABEL_NODEPOOL_UID}={uid}"
    volumes = await infra.client.list(DATAVOLUMES, infra.namespace, selector)
    alive = [volume for volume in volumes if not volume["metadata"].get("deletionTimestamp")]
    if not alive and (former := await _inherited_cache(scope, infra)) is not None:
        alive.append(former)
    chosen, stale = choose_cache(alive, image.digest, at(scope.pool, "status.platform.kubeVirt.cacheName"))
    used = next((volume for volume in alive if volume["metadata"]["name"] == chosen), None)
    if used is None:
        used = cache_volume(infra.namespace, uid, scope.platform, image)
        with contextlib.suppress(AlreadyExists):
            await infra.client.create(used)
    for name in stale:
        try:
            await infra.client.delete(DATAVOLUMES, name, infra.namespace)
        except NotFound:
            continue
    return used


async def _inherited_cache(scope: Scope, infra: Infra) -> Object | None:
    """The cache of machines that were taken over: from now on this pool's. Another one would be another template."""
    found = inherited.sets(scope)
    template = scope.tools.watches.templates.get(inherited.template(found), scope.hosted) if found else None
    name = inherited.cache(template)
    if not name or not infra.external:
        return None
    labels = labels_of(await infra.client.get_or_none(DATAVOLUMES, name, infra.namespace))
    # Asked: pools of clusters that another process works on are not followed here.
    taken = {pool["metadata"]["uid"] for pool in await scope.tools.ctx.client.list(NODEPOOLS)}
    if labels.get(LABEL_BOOT_IMAGE_ROLE) != ROLE or labels.get(LABEL_NODEPOOL_UID) in taken:
        return None
    mine = {"metadata": {"labels": {LABEL_NODEPOOL_UID: scope.pool["metadata"]["uid"]}}}
    return await infra.client.patch(DATAVOLUMES, name, infra.namespace, mine)
