"""What requests ask for, checked: sizes, kinds of access, sources. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hcp.csi.errors import InvalidArgument, OutOfRange
from hcp.csi.wire import csi_pb2 as csi

DEFAULT_SIZE = 1 << 30
_STEP = 4096
# What the provisioner tells of the claim by itself.
_OWN_PARAMETERS = "csi.storage.k8s.io/"
_FILE_SYSTEMS = ("", "btrfs")


def required(value: str, what: str) -> str:
    if not value:
        raise InvalidArgument(f"The request has no {what}")
    return value


def is_block(capabilities: Sequence[csi.VolumeCapability]) -> bool:
    """Which kind of volume is wanted. One node can give every kind of access to both."""
    if not capabilities:
        raise InvalidArgument("The request does not say how the volume shall be used")
    kinds = {_kind(item) for item in capabilities}
    if len(kinds) > 1:
        raise InvalidArgument("A volume cannot be a block device and a file system at once")
    return kinds == {"block"}


def _kind(capability: csi.VolumeCapability) -> str:
    kind: str | None = capability.WhichOneof("access_type")
    if kind is None:
        raise InvalidArgument("The request says neither block nor mount")
    if capability.access_mode.mode == csi.VolumeCapability.AccessMode.UNKNOWN:
        raise InvalidArgument("The request does not say who may use the volume at a time")
    if kind == "mount" and capability.mount.fs_type not in _FILE_SYSTEMS:
        raise InvalidArgument(
            f"File systems of type {capability.mount.fs_type!a} cannot be had from this class",
            hint="Leave the type out (it is btrfs), or use a volume of mode Block.",
        )
    return kind


def check_parameters(parameters: Mapping[str, str]) -> None:
    unknown = sorted(key for key in parameters if not key.startswith(_OWN_PARAMETERS))
    if unknown:
        raise InvalidArgument(f"The class has parameters that mean nothing here: {', '.join(unknown)}")


def size_of(wanted: csi.CapacityRange | None, least: int = 0) -> int:
    """Exactly what is asked for, in whole blocks; `least` is what a source needs."""
    asked, most = (wanted.required_bytes, wanted.limit_bytes) if wanted is not None else (0, 0)
    if asked < 0 or most < 0:
        raise InvalidArgument("A size cannot be negative")
    if asked and asked < least:
        raise OutOfRange(f"{asked} bytes are fewer than the source has ({least})")
    size = asked or max(least, min(DEFAULT_SIZE, most) if most else DEFAULT_SIZE)
    size = -(-size // _STEP) * _STEP
    if most and size > most:
        raise OutOfRange(f"No volume of at least {asked or least} and at most {most} bytes can be made")
    return size


def fits(size: int, wanted: csi.CapacityRange | None) -> bool:
    """Whether a volume that is there already has a size as asked for."""
    if wanted is None:
        return True
    return size >= wanted.required_bytes and (not wanted.limit_bytes or size <= wanted.limit_bytes)
