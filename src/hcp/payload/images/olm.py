"""Images of what brings operators out of catalogs. Made when somebody wants catalogs, not before."""

from __future__ import annotations

from hcp.payload.image import Image, Take, binaries, version_of

COMPONENT = "olm"
DEFINITIONS = "olm-definitions"
# Name in a release, as OpenShift has it → its version.
OPM_VERSION = "1.74.0"


def versions() -> dict[str, str]:
    return {"operator-lifecycle-manager": version_of(COMPONENT), "operator-registry": OPM_VERSION}


def olm_images() -> list[Image]:
    """OLM copies programs of its own image into pods by `cp`; catalogs are asked by the probe whether they serve."""
    programs = ("olm", "catalog", "package-server", "copy-content", "cpb")
    return [
        Image(
            "operator-lifecycle-manager",
            version_of(COMPONENT),
            (*binaries(COMPONENT, *programs, folder="/bin/"), Take("busybox", "bin/busybox", "/bin/busybox")),
            entrypoint=("/bin/olm",),
            links={"bin/cp": "busybox"},
        ),
        Image(
            "operator-registry",
            OPM_VERSION,
            binaries(COMPONENT, "opm", "grpc_health_probe", folder="/bin/"),
            entrypoint=("/bin/opm",),
        ),
    ]
