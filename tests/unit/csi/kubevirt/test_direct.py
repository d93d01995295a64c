"""Which volumes are a claim of ours, and which CDI makes. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hcp.csi.kubevirt.access import Access
from hcp.csi.kubevirt.objects import Backing
from hcp.csi.kubevirt.origins import Origin, direct
from hcp.csi.kubevirt.settings import InfraClass

MI = 2**20
CLASS = InfraClass("fast", "", True, direct=True, block=("ReadWriteMany",), clones=True)
BLANK = Origin({"blank": {}})
FILE = Backing("fast", False, ("ReadWriteOnce",), 136 * MI)


def origin(kind: str = "snapshot", backing: Backing | None = FILE, size: int = 128 * MI) -> Origin:
    source: dict[str, Any] = {kind: {"namespace": "ns", "name": "x"}}
    return Origin(source, size, backing)


def test_an_empty_block_volume_needs_nobody_and_an_empty_file_needs_cdi() -> None:
    assert direct(CLASS, Access(), 64 * MI, BLANK) == Backing("fast", True, ("ReadWriteMany",), 64 * MI)
    assert direct(replace(CLASS, block=()), Access(), 64 * MI, BLANK) is None
    assert direct(replace(CLASS, direct=False), Access(), 64 * MI, BLANK) is None


def test_a_copy_is_a_claim_as_large_as_the_one_it_comes_from() -> None:
    assert direct(CLASS, Access(), 128 * MI, origin()) == FILE
    assert direct(CLASS, Access(), 128 * MI, origin("pvc")) == FILE


def test_a_larger_copy_keeps_the_share_of_the_file_system() -> None:
    found = direct(CLASS, Access(), 256 * MI, origin())
    assert found is not None and found.size == 272 * MI


def test_what_the_class_cannot_do_is_left_to_cdi() -> None:
    assert direct(replace(CLASS, clones=False), Access(), 128 * MI, origin("pvc")) is None
    assert direct(replace(CLASS, clones=False), Access(), 128 * MI, origin()) == FILE
    assert direct(replace(CLASS, name="other"), Access(), 128 * MI, origin()) is None
    assert direct(CLASS, Access(), 128 * MI, origin(backing=None)) is None
    assert direct(CLASS, Access(shared=True, block=True), 128 * MI, origin()) is None
