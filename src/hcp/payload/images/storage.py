"""Images of what stands between Kubernetes and a storage driver. Made when somebody wants storage, not before."""

from __future__ import annotations

from collections.abc import Mapping

from hcp.payload.image import Image, binaries

COMPONENT = "csi-sidecars"
DEFINITIONS = "snapshot-definitions"
# Name in a release, as OpenShift has it → the program, and its version.
PROGRAMS: Mapping[str, tuple[str, str]] = {
    "csi-external-provisioner": ("csi-provisioner", "5.3.0"),
    "csi-external-resizer": ("csi-resizer", "1.14.0"),
    "csi-external-snapshotter": ("csi-snapshotter", "8.6.0"),
    "csi-snapshot-controller": ("snapshot-controller", "8.6.0"),
}


def storage_images() -> list[Image]:
    return [
        Image(name, version, binaries(COMPONENT, program), entrypoint=(program,))
        for name, (program, version) in PROGRAMS.items()
    ]
