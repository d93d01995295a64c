"""Which catalogs of operators a guest gets, and what runs for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support.unit.controlplane import IMAGES, params

from hcp.api import names
from hcp.guest import catalogs, olm
from hcp.guest.catalogs import GuestCatalogs
from hcp.guest.objects import GuestParams

CRD = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "a"}}
CERTIFIED, REDHAT = names.ANNOTATION_CERTIFIED_CATALOG_IMAGE, names.ANNOTATION_REDHAT_CATALOG_IMAGE
DIGEST = "@sha256:" + "a" * 64
BOTH = {CERTIFIED: f"r.io/certified{DIGEST}", REDHAT: "r.io:5000/redhat:v1"}


def guest(found: GuestCatalogs | None) -> GuestParams:
    return GuestParams(params(), images=IMAGES, own_network=True, highly_available=False, catalogs=found)


def of(annotations: dict[str, str], hub: dict[str, Any] | None = None) -> dict[str, str]:
    return {one.default.name: one.image for one in catalogs.catalogs(annotations, hub)}


def test_each_annotation_gives_its_source() -> None:
    every = {one.annotation: f"r.io/{one.name}:v1" for one in catalogs.DEFAULTS}
    assert of(every) == {one.name: f"r.io/{one.name}:v1" for one in catalogs.DEFAULTS}
    assert of({}) == {}
    assert of({REDHAT: " "}) == {}


@pytest.mark.parametrize(
    ("hub", "left"),
    [
        ({"disableAllDefaultSources": True}, []),
        ({"disableAllDefaultSources": True, "sources": [{"name": "redhat-operators", "disabled": False}]}, ["redhat"]),
        ({"sources": [{"name": "redhat-operators", "disabled": True}]}, ["certified"]),
        ({"sources": [{"name": "certified-operators"}]}, ["certified", "redhat"]),
        ({}, ["certified", "redhat"]),
    ],
)
def test_sources_are_turned_off_and_on(hub: dict[str, Any], left: list[str]) -> None:
    assert [name.partition("-")[0] for name in of(BOTH, hub)] == left


def test_overrides_move_catalogs_to_a_mirror() -> None:
    moved = {names.ANNOTATION_CATALOG_REGISTRY_OVERRIDES: "r.io=other.io:5000/mirror, r.io:5000/redhat=m.io/r"}
    assert of(BOTH | moved) == {
        "certified-operators": f"other.io:5000/mirror/certified{DIGEST}",
        "redhat-operators": "m.io/r:v1",
    }


def test_what_has_no_effect_is_named() -> None:
    odd = {REDHAT: "not an image", names.ANNOTATION_CATALOG_REGISTRY_OVERRIDES: "a=b,c,=d"}
    assert of(odd) == {}
    said = " ".join(catalogs.problems(odd))
    assert "not an image" in said
    assert "'c' is not source=mirror" in said
    assert "'=d' is not source=mirror" in said
    assert catalogs.problems(BOTH) == []
    assert catalogs.unknown_sources({"sources": [{"name": "mine"}]}) == ["configuration.operatorhub.sources 'mine'"]


def made(found: GuestCatalogs | None) -> dict[str, list[str]]:
    kinds: dict[str, list[str]] = {}
    for one in olm.objects(guest(found)):
        kinds.setdefault(one["kind"], []).append(one["metadata"]["name"])
    return kinds


def test_nothing_runs_until_there_is_a_catalog() -> None:
    idle = GuestCatalogs((), "olm", "opm", (CRD,))
    assert made(None) == {}
    assert made(idle) == {"CustomResourceDefinition": ["a"], "Namespace": [olm.MARKETPLACE]}
    running = made(replace(idle, used=True))
    assert running["Deployment"] == ["olm-operator", "catalog-operator"]
    assert "CatalogSource" not in running
    assert made(replace(idle, catalogs=catalogs.catalogs(BOTH, None)))["CatalogSource"] == [
        "certified-operators",
        "redhat-operators",
    ]


def test_only_catalogs_that_are_named_by_a_tag_are_looked_for_anew() -> None:
    certified, redhat = (olm.catalog_source(one) for one in catalogs.catalogs(BOTH, None))
    assert "updateStrategy" not in certified["spec"]
    assert redhat["spec"]["updateStrategy"] == {"registryPoll": {"interval": olm.POLL}}
    assert redhat["spec"]["priority"] > certified["spec"]["priority"]


def test_a_catalog_beside_the_control_plane_is_named_by_its_address() -> None:
    (_, redhat) = catalogs.catalogs(BOTH, None)
    spec = olm.catalog_source(replace(redhat, address="10.0.0.7:50051"))["spec"]
    assert spec["address"] == "10.0.0.7:50051"
    assert "image" not in spec and "updateStrategy" not in spec, "nobody in the guest looks for images"


def test_pods_have_no_more_than_they_need() -> None:
    for one in olm.objects(guest(GuestCatalogs((), "olm", "opm", (), used=True))):
        if one["kind"] == "Deployment":
            pod = one["spec"]["template"]["spec"]
            assert pod["securityContext"]["runAsNonRoot"] is True
            assert all(c["securityContext"]["readOnlyRootFilesystem"] for c in pod["containers"])
