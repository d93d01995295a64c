"""kubeadmin inside a guest."""

from __future__ import annotations

from typing import Any

from tests.support.unit.controlplane import IMAGES, params

from hcp.guest import login
from hcp.guest.login_plan import GuestLogin
from hcp.guest.objects import GuestParams


def guest(**changes: Any) -> GuestParams:
    base: dict[str, Any] = {"images": IMAGES, "own_network": True, "highly_available": False}
    return GuestParams(params(), **(base | changes))


def kinds(found: GuestLogin | None, *, there: bool) -> set[str]:
    return {one["kind"] for one in login.objects(guest(login=found), there=there)}


def test_kubeadmin_has_rights_as_long_as_its_secret_is_there() -> None:
    both = {"Secret", "ClusterRoleBinding"}
    assert kinds(GuestLogin("hash"), there=False) == both, "at first nobody has made it"
    assert kinds(GuestLogin("hash", given=True), there=True) == both
    assert kinds(GuestLogin("hash", given=True), there=False) == set(), "somebody deleted it"
    assert kinds(GuestLogin(""), there=True) == set(), "the cluster has users of its own"
    assert kinds(None, there=True) == set()
