"""The parts of the checks that need no cluster."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcp.preflight import cidrs, infra_rights, result, versions


def test_overlaps_name_both_sides() -> None:
    taken = ["10.128.0.0/14", "fd01::/48", "nonsense"]
    assert cidrs.overlaps(["10.129.0.0/16", "10.132.0.0/14", "fd01::/64"], taken) == [
        ("10.129.0.0/16", "10.128.0.0/14"),
        ("fd01::/64", "fd01::/48"),
    ]


@given(st.lists(st.text(max_size=20)), st.lists(st.text(max_size=20)))
def test_overlaps_never_crash(one: list[str], other: list[str]) -> None:
    assert isinstance(cidrs.overlaps(one, other), list)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("v1.36.3", (1, 36, 3)), ("1.7.0-rc.1+dirty", (1, 7, 0)), ("v1.27", (1, 27, 0)), ("", None), ("v1.x.0", None)],
)
def test_versions(text: str, numbers: tuple[int, int, int] | None) -> None:
    assert versions.numbers(text) == numbers


def test_a_version_that_cannot_be_read_is_not_new_enough() -> None:
    assert versions.at_least("v1.27.0", versions.KUBERNETES)
    assert not versions.at_least("v1.26.9", versions.KUBERNETES)
    assert not versions.at_least("devel", versions.KUBERNETES)


def test_rights_are_namespaced_except_for_reading() -> None:
    found = infra_rights.manifests("vms")
    assert [one["kind"] for one in found] == [
        "ServiceAccount",
        "Role",
        "RoleBinding",
        "ClusterRole",
        "ClusterRoleBinding",
    ]
    whole = next(one for one in found if one["kind"] == "ClusterRole")
    assert {verb for rule in whole["rules"] for verb in rule["verbs"]} <= {"get", "list", "watch"}


@pytest.mark.parametrize(("who", "kind"), [({"user": "alice"}, "User"), ({"group": "ops"}, "Group")])
def test_rights_for_people(who: dict[str, str], kind: str) -> None:
    found = infra_rights.manifests("vms", user=who.get("user", ""), group=who.get("group", ""))
    assert "ServiceAccount" not in [one["kind"] for one in found]
    assert {one["subjects"][0]["kind"] for one in found if "subjects" in one} == {kind}


def test_only_a_failure_fails() -> None:
    assert not result.failed([result.ok("a", ""), result.warn("b", ""), result.unknown("c", "")])
    assert result.failed([result.ok("a", ""), result.fail("b", "")])
