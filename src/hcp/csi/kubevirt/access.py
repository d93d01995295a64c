"""Which volume of the infra cluster can do what a claim asks for. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hcp.csi.errors import InvalidArgument, OutOfRange
from hcp.csi.kubevirt.settings import InfraClass

MEBI = 2**20
# What a claim that names no size gets.
USUAL_SIZE = 2**30
READ_WRITE_MANY = "ReadWriteMany"
BLOCK = "Block"
FILE_SYSTEMS = ("ext4", "ext3", "xfs")
DEFAULT_FILE_SYSTEM = "ext4"
# Smaller ones its own program refuses to make.
LEAST = {"xfs": 300 * MEBI}


@dataclass(frozen=True, slots=True)
class Access:
    """One way in which a volume shall be used."""

    # Several nodes at the same time.
    shared: bool = False
    # As a device, without a file system of ours.
    block: bool = False
    read_only: bool = False
    file_system: str = ""


def check(needs: Iterable[Access], infra_class: InfraClass) -> Access:
    """The one need that covers them all; refused with what can be had instead."""
    needs = list(needs)
    if not needs:
        raise InvalidArgument("The request says no access mode")
    for need in needs:
        if need.file_system and need.file_system not in FILE_SYSTEMS:
            raise InvalidArgument(
                f"The file system {need.file_system} is not one of {', '.join(FILE_SYSTEMS)}",
                hint="Change csi.storage.k8s.io/fstype of the StorageClass.",
            )
        if need.shared and not need.block:
            raise InvalidArgument(
                "ReadWriteMany and ReadOnlyMany work with volumeMode Block only: two nodes that mount one disk would "
                "destroy its file system",
                hint="Use accessModes [ReadWriteOnce], or volumeMode: Block.",
            )
        if need.shared and infra_class.shared_block is False:
            named = f"The infra class {infra_class.name}" if infra_class.name else "The infra cluster's default class"
            raise InvalidArgument(
                f"{named} has no block volumes for several machines, so it cannot give ReadWriteMany",
                hint="Use accessModes [ReadWriteOnce], or another StorageClass.",
            )
    first = needs[0]
    if any(need.block != first.block for need in needs):
        raise InvalidArgument("One volume cannot be a block device and a file system at the same time")
    return Access(shared=any(need.shared for need in needs), block=first.block, file_system=first.file_system)


def size(required: int, limit: int) -> int:
    """Bytes to ask for: what is required, in whole MiB, and never more than the limit."""
    if required < 0 or limit < 0 or (limit and required > limit):
        raise InvalidArgument(f"No size is at least {required} and at most {limit} bytes")
    wanted = required or (min(USUAL_SIZE, limit) if limit else USUAL_SIZE)
    whole = -(-wanted // MEBI) * MEBI
    if limit and whole > limit:
        if not required and limit >= MEBI:
            return limit // MEBI * MEBI
        raise OutOfRange(f"Volumes have whole MiB: {whole} bytes is the smallest that fits, and more than {limit}")
    return whole


def enough(need: Access, size: int) -> None:
    """Said when a volume is made: later it would be a node that cannot make the file system, again and again."""
    least = LEAST.get(need.file_system, 0)
    if size < least:
        raise OutOfRange(
            f"A volume with {need.file_system} has at least {least // MEBI} MiB, and {size // MEBI} MiB are asked for",
            hint=f"Ask for more, or use {DEFAULT_FILE_SYSTEM} (csi.storage.k8s.io/fstype of the StorageClass).",
        )


def grown(backing: int, before: int, after: int) -> int:
    """What the infra claim has to ask for so that the disk in it can grow.

    A file on a file system is smaller than its claim; the share that the file system takes stays the same.
    """
    if before <= 0 or backing <= before:
        return after
    whole = -(-after * backing // before)
    return -(-whole // MEBI) * MEBI
