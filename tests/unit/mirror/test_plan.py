"""Names in the target, blocked images, and what a cluster is told afterwards."""

from __future__ import annotations

import pytest

from hcp.errors import HcpError
from hcp.graph import Graph, GraphError, Node
from hcp.mirror import resources
from hcp.mirror.config import ReleaseChannel
from hcp.mirror.deletion import listed
from hcp.mirror.deletion import parse as parse_list
from hcp.mirror.plan import (
    COMPONENTS,
    GRAPH,
    RELEASES,
    Blocked,
    CatalogTarget,
    Item,
    Plan,
    Problem,
    nested,
    release_tag,
    tag_for,
)
from hcp.mirror.releases import chosen
from hcp.mirror.run import shortened
from hcp.oci.mirrors import candidates, from_objects
from hcp.oci.reference import Reference
from hcp.publish.target import Target

A, B = "sha256:" + "a" * 64, "sha256:" + "b" * 64
TARGET = Target("mirror.example.com:5000", "site")


def plan() -> Plan:
    return Plan(
        [
            Item("release", f"quay.io/ocp/art@{A}", A, COMPONENTS, release_tag("4.17.3", "amd64", "etcd")),
            Item("release", "quay.io/ocp/release:4.17.3", B, RELEASES, release_tag("4.17.3", "amd64"), last=True),
            Item("release", "", A, GRAPH, "latest", made="graph"),
            Item("operator", f"quay.io/op/bundle@{A}", A, "op/bundle", A.replace(":", "-")),
            Item("operator", "quay.io/op/index:v4.17", B, "op/index", "v4.17", made="catalog-1", last=True),
            Item("additional", "docker.io/library/busybox:1", A, "library/busybox", "1"),
            Item("additional", "quay.io/x/y:sha256-a.sig", A, "x/y", "sha256-a.sig", silent=True),
        ],
        [CatalogTarget("quay.io/op/index:v4.17", "op/index", "v4.17")],
    )


def test_images_are_found_through_what_a_cluster_is_told() -> None:
    digests, tags = resources.mirror_sets(plan(), TARGET)
    assert [one["metadata"]["name"] for one in digests] == ["idms-release-0", "idms-operator-0"]
    assert [one["metadata"]["name"] for one in tags] == ["itms-release-0", "itms-operator-0", "itms-generic-0"]
    mirrors = from_objects([*digests, *tags])
    for image, place in (
        (f"quay.io/ocp/art@{A}", f"mirror.example.com:5000/site/openshift/release@{A}"),
        (f"quay.io/ocp/release@{B}", f"mirror.example.com:5000/site/openshift/release-images@{B}"),
        (f"quay.io/op/bundle@{A}", f"mirror.example.com:5000/site/op/bundle@{A}"),
        ("docker.io/library/busybox:1", "mirror.example.com:5000/site/library/busybox:1"),
    ):
        assert str(candidates(Reference.parse(image), mirrors)[0]) == place
    assert "x/y" not in str(tags)


def test_the_older_form_says_the_same() -> None:
    policies = resources.content_source_policies(plan(), TARGET)
    assert {one["apiVersion"] for one in policies} == {"operator.openshift.io/v1alpha1"}
    image = Reference.parse(f"quay.io/ocp/art@{A}")
    assert candidates(image, from_objects(policies)) == candidates(
        image, from_objects(resources.mirror_sets(plan(), TARGET)[0])
    )


def test_catalogs_and_the_update_service() -> None:
    (catalog,) = plan().catalogs
    source = resources.catalog_source(catalog, TARGET)
    assert source["metadata"]["name"] == "cs-index-v4-17"
    assert source["spec"] == {"sourceType": "grpc", "image": "mirror.example.com:5000/site/op/index:v4.17"}
    template = {"kind": "CatalogSource", "metadata": {"name": "own"}, "spec": {"displayName": "Own", "image": "x"}}
    own = resources.catalog_source(CatalogTarget("s", "op/index", "v1", template), TARGET)
    assert (own["metadata"]["name"], own["spec"]["displayName"]) == ("own", "Own")
    assert own["spec"]["image"].endswith("op/index:v1")
    service = resources.update_service(plan(), TARGET)
    assert service is not None
    assert service["spec"]["graphDataImage"] == f"mirror.example.com:5000/site/openshift/graph-image@{A}"
    assert resources.update_service(Plan(), TARGET) is None
    assert resources.signatures({}) is None
    signed = resources.signatures({A: "c2lnbmF0dXJl"})
    assert signed is not None
    assert signed["binaryData"] == {f"{A.replace(':', '-')}-1": "c2lnbmF0dXJl"}


def test_two_images_with_one_tag_are_told_apart() -> None:
    found = Plan()
    for digest in (A, B, A):
        found.add(Item("operator", f"quay.io/a/b:1@{digest}", digest, "a/b", "1"))
    assert [item.tag for item in found.items] == ["1", B.replace(":", "-")]


def test_tags_in_the_target() -> None:
    assert tag_for(Reference.parse("quay.io/a/b:1"), A) == "1"
    assert tag_for(Reference.parse("quay.io/a/b"), A) == "latest"
    assert tag_for(Reference.parse(f"quay.io/a/b@{A}"), A) == "sha256-" + "a" * 64
    assert release_tag("4.17.3+x", "arm64", "etcd") == "4.17.3_x-aarch64-etcd"


def test_paths_are_joined_where_a_registry_allows_few_parts() -> None:
    assert nested("a/b/c/d", 0) == "a/b/c/d"
    assert nested("a/b/c/d", 2) == "a/b-c-d"
    assert nested("a", 2) == "a"
    places = {item.repository for item in shortened(plan(), TARGET, 2).items}
    assert "openshift-release" in places
    assert all("/" not in place for place in places)


@pytest.mark.parametrize(
    ("names", "image", "blocked"),
    [
        (["quay.io/a/b"], "quay.io/a/b:1", True),
        (["quay.io/a/b:1"], "quay.io/a/b:2", False),
        ([f"quay.io/a/b@{A}"], f"quay.io/a/b@{A}", True),
        (["quay.io/a/.*"], f"quay.io/a/c@{A}", True),
        (["quay.io/a"], "quay.io/a/b:1", False),
        ([], "quay.io/a/b:1", False),
    ],
)
def test_blocked_images(names: list[str], image: str, blocked: bool) -> None:
    assert Blocked(names).has(Reference.parse(image)) is blocked


def test_a_block_that_is_no_pattern_is_refused() -> None:
    with pytest.raises(HcpError, match="neither an image nor a pattern"):
        Blocked(["(("])


def test_exit_codes_add_up() -> None:
    found = plan()
    assert found.exit_code == 0
    found.problems += [Problem("operator", "x", "y"), Problem("helm", "x", "y"), Problem("operator", "z", "y")]
    assert found.exit_code == 4 | 16


def test_a_plan_survives_an_archive() -> None:
    again = Plan.from_dict(plan().to_dict())
    assert (again.items, again.catalogs) == (plan().items, plan().catalogs)


def test_a_list_of_what_to_delete_is_read_again() -> None:
    doomed = parse_list(listed(plan(), TARGET), TARGET)
    assert [(one.repository, one.tag) for one in doomed] == [(f"site/{i.repository}", i.tag) for i in plan().items]
    with pytest.raises(HcpError, match=r"is not in other\.example"):
        parse_list(listed(plan(), TARGET), Target("other.example.com"))
    with pytest.raises(HcpError, match="is no DeleteImageList"):
        parse_list({"kind": "List"}, TARGET)


def _graph() -> Graph:
    versions = ("1.35.9", "1.36.1", "1.36.2", "1.36.10")
    edges = frozenset({("1.35.9", "1.36.1"), ("1.36.1", "1.36.2"), ("1.36.2", "1.36.10"), ("1.35.9", "1.36.2")})
    return Graph({version: Node(version, f"quay.io/r:{version}") for version in versions}, edges)


@pytest.mark.parametrize(
    ("channel", "versions"),
    [
        (ReleaseChannel("c"), ["1.36.10"]),
        (ReleaseChannel("c", highest="1.36.2"), ["1.36.2"]),
        (ReleaseChannel("c", lowest="1.36.2"), ["1.36.2", "1.36.10"]),
        (ReleaseChannel("c", "1.35.9", "1.36.2"), ["1.35.9", "1.36.1", "1.36.2"]),
        (ReleaseChannel("c", "1.35.9", "1.36.10", shortest_path=True), ["1.35.9", "1.36.2", "1.36.10"]),
        (ReleaseChannel("c", full=True), ["1.35.9", "1.36.1", "1.36.2", "1.36.10"]),
    ],
)
def test_versions_of_a_channel(channel: ReleaseChannel, versions: list[str]) -> None:
    assert chosen(channel, _graph()) == versions


def test_a_version_that_a_channel_does_not_have() -> None:
    with pytest.raises(GraphError, match=r"the channel c has no version 1\.36\.4") as caught:
        chosen(ReleaseChannel("c", "1.36.4"), _graph())
    assert "1.36.10" in str(caught.value.hint)
