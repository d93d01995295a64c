"""Where a pool's root disk comes from, and the cache that saves importing it once per VM."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api.names import LABEL_BOOT_IMAGE_ROLE, LABEL_KUBEVIRT_RHCOS, LABEL_NODEPOOL_UID, MARK_BOOT_IMAGE_HASH
from hcp.api.paths import annotations_of, at
from hcp.errors import HcpError
from hcp.ignition.hashes import hash_simple
from hcp.nodepool.template import root_storage

ROLE = "kv-boot-image-cache"


@dataclass(frozen=True)
class BootImage:
    """A disk image; ``digest`` is empty for one the user named, which is never cached."""

    source: Mapping[str, Any]
    digest: str = ""


def boot_image(platform: Mapping[str, Any], release_disk: str | None) -> BootImage:
    """The image of a pool: the user's own, or the release's."""
    own = at(platform, "rootVolume.diskImage.containerDiskImage")
    if own:
        return BootImage(_registry(own))
    if not release_disk:
        raise HcpError(
            "the release names no KubeVirt boot disk",
            hint="set platform.kubevirt.rootVolume.diskImage or use a newer release",
        )
    if release_disk.startswith(("http://", "https://")):
        return BootImage({"http": {"url": release_disk}})
    if release_disk.count("@") != 1:
        raise HcpError("the release's boot disk is not named by digest", cause=release_disk)
    return BootImage(_registry(release_disk), release_disk.partition("@")[2])


def cached(platform: Mapping[str, Any], image: BootImage) -> bool:
    """Whether this pool keeps a cache for this image."""
    strategy = at(platform, "rootVolume.cacheStrategy.type")
    return strategy == "PVC" and bool(image.digest)


def disk_source(image: BootImage, cache_name: str | None, infra_namespace: str) -> dict[str, Any]:
    """The DataVolume source of a VM: a clone of the cache, or the image itself."""
    if cache_name is None:
        return dict(image.source)
    return {"pvc": {"namespace": infra_namespace, "name": cache_name}}


def cache_name(uid: str, digest: str) -> str:
    """Always the same for a pool and an image: a cache deleted by hand comes back without replacing machines."""
    return f"{ROLE}-{hash_simple(uid + digest)}"


def cache_volume(infra_namespace: str, uid: str, platform: Mapping[str, Any], image: BootImage) -> dict[str, Any]:
    """The DataVolume that holds a pool's imported boot disk; not preallocated, small machines have small disks."""
    return {
        "apiVersion": "cdi.kubevirt.io/v1beta1",
        "kind": "DataVolume",
        "metadata": {
            "name": cache_name(uid, image.digest),
            "namespace": infra_namespace,
            "labels": {LABEL_BOOT_IMAGE_ROLE: ROLE, LABEL_NODEPOOL_UID: uid, LABEL_KUBEVIRT_RHCOS: "true"},
            "annotations": {
                MARK_BOOT_IMAGE_HASH: image.digest,
                "cdi.kubevirt.io/storage.bind.immediate.requested": "true",
                "cdi.kubevirt.io/storage.deleteAfterCompletion": "false",
            },
        },
        "spec": {"source": dict(image.source), "storage": root_storage(platform)},
    }


@dataclass(frozen=True)
class ImportState:
    """How far the import into a cache is: done, or what holds it up, and whether that is a failure."""

    done: bool
    failed: bool = False
    message: str = ""


def import_state(volume: Mapping[str, Any]) -> ImportState:
    """What a cache's DataVolume says; a failed import is tried again by CDI, so it can still come right."""
    status = volume.get("status") or {}
    phase = status.get("phase") or "Pending"
    if phase == "Succeeded":
        return ImportState(done=True)
    name = volume["metadata"]["name"]
    found = {entry.get("type"): entry for entry in status.get("conditions") or [] if entry.get("status") == "False"}
    running, reason = found.get("Running") or {}, at(found, "Running.reason") or ""
    if phase == "Failed" or reason == "ImagePullFailed" or "Error" in reason:
        why = running.get("message") or reason or "see its events"
        return ImportState(False, True, f"the boot disk cannot be imported into DataVolume {name}: {why}")
    held = found.get("QuotaNotExceeded") or found.get("Bound") or {}
    detail = f", {held['message']}" if held.get("message") else ""
    return ImportState(False, False, f"the boot disk is being imported into DataVolume {name} ({phase}{detail})")


def choose_cache(volumes: Iterable[Mapping[str, Any]], digest: str, known: str | None) -> tuple[str | None, list[str]]:
    """Which existing cache to use (None: make one), and which ones are out of date."""
    names = {v["metadata"]["name"]: annotations_of(v).get(MARK_BOOT_IMAGE_HASH) for v in volumes}
    fitting = sorted(name for name, found in names.items() if found == digest)
    chosen = known if known in fitting else (fitting[0] if fitting else None)
    return chosen, sorted(name for name in names if name != chosen)


def _registry(image: str) -> dict[str, Any]:
    return {"registry": {"url": f"docker://{image}", "pullMethod": "node"}}
