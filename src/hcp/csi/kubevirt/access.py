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


@dataclass(frozen=True, slots=True)
class Wish:
    """One way in which a volume shall be used."""

    # Several nodes at the same time.
    shared: bool = False
    # As a device, without a file system of ours.
    block: bool = False
    read_only: bool = False
    file_system: str = ""


def check(wishes: Iterable[Wish], infra_class: InfraClass) -> Wish:
    """The one wish that covers them all; refused with what can be had instead."""
    wishes = list(wishes)
    if not wishes:
        raise InvalidArgument("The request says no access mode")
    for wish in wishes:
        if wish.file_system and wish.file_system not in FILE_SYSTEMS:
            raise InvalidArgument(
                f"The file system {wish.file_system} is not one of {', '.join(FILE_SYSTEMS)}",
                hint="Change csi.storage.k8s.io/fstype of the StorageClass.",
            )
        if wish.shared and not wish.block:
            raise InvalidArgument(
                "ReadWriteMany and ReadOnlyMany work with volumeMode Block only: two nodes that mount one disk would "
                "destroy its file system",
                hint="Use accessModes [ReadWriteOnce], or volumeMode: Block.",
            )
        if wish.shared and infra_class.shared_block is False:
            named = f"The infra class {infra_class.name}" if infra_class.name else "The infra cluster's default class"
            raise InvalidArgument(
                f"{named} has no block volumes for several machines, so it cannot give ReadWriteMany",
                hint="Use accessModes [ReadWriteOnce], or another StorageClass.",
            )
    first = wishes[0]
    if any(wish.block != first.block for wish in wishes):
        raise InvalidArgument("One volume cannot be a block device and a file system at the same time")
    return Wish(shared=any(w.shared for w in wishes), block=first.block, file_system=first.file_system)


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


def grown(backing: int, before: int, after: int) -> int:
    """What the infra claim has to ask for so that the disk in it can grow.

    A file on a file system is smaller than its claim; the share that the file system takes stays the same.
    """
    if before <= 0 or backing <= before:
        return after
    whole = -(-after * backing // before)
    return -(-whole // MEBI) * MEBI
