"""What Cluster API's managers may do in a hosted namespace."""

from __future__ import annotations

from hcp.api import names
from hcp.controlplane import capi
from hcp.controlplane.params import Params
from hcp.install import capi as rights
from hcp.install.options import Options
from hcp.install.rights import HOSTED_ROLES

P = Params("demo", "clusters", "clusters-demo", "demo-abcde", "id")


def test_only_official_builds_may_list_secrets_and_only_where_they_are_bound() -> None:
    assert {one["roleRef"]["name"] for one in capi.bindings(P)} <= set(HOSTED_ROLES)
    for rule in (*rights.core_hosted_rules(), *rights.provider_hosted_rules()):
        assert not {"list", "watch"} & set(rule["verbs"])
    bound = capi.secret_followers(P, [names.CAPI_CORE])
    assert bound["metadata"]["namespace"] == "clusters-demo"
    assert [one["name"] for one in bound["subjects"]] == [names.CAPI_CORE]
    [role] = [
        one
        for one in rights.objects(Options(image="x"))
        if one["kind"] == "ClusterRole" and one["metadata"]["name"] == bound["roleRef"]["name"]
    ]
    assert role["rules"] == rights.follower_rules()
    assert role["metadata"]["name"] in HOSTED_ROLES, "the operator may bind it"


def test_nobody_is_left_in_it_when_official_builds_gave_way_to_ours() -> None:
    assert "subjects" not in capi.secret_followers(P, [])
