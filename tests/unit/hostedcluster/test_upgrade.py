"""Whether a control plane may move to another release."""

from __future__ import annotations

from typing import Any

from tests.support.unit.hostedcluster import cluster

from hcp.hostedcluster import upgrade

IMAGE = "r.test/release:1.38.0"
FORCE = "hypershift.openshift.io/force-upgrade-to"


def running(version: str, annotations: dict[str, str] | None = None, upgradeable: str = "") -> dict[str, Any]:
    made = cluster()
    made["metadata"]["annotations"] = annotations or {}
    history = [{"state": "Partial", "version": "9.9.9"}, {"state": "Completed", "version": version}]
    conditions = [{"type": "ClusterVersionUpgradeable", "status": upgradeable, "message": "not now"}]
    made["status"] = {"controlPlaneVersion": {"history": history}, "conditions": conditions if upgradeable else []}
    return made


def test_minors_are_neither_left_out_nor_gone_back() -> None:
    assert upgrade.problem(running("1.37.2"), IMAGE, "1.38.0") == ""
    skipping = upgrade.problem(running("1.36.2"), IMAGE, "1.38.0")
    assert "leaves out 1 minor" in skipping
    assert f"{FORCE} to {IMAGE}" in skipping
    assert "older minor" in upgrade.problem(running("1.39.0"), IMAGE, "1.38.0")


def test_from_a_minor_that_never_came_up_the_way_back_is_open() -> None:
    made = running("1.37.2")
    made["status"]["controlPlaneVersion"]["history"][0] |= {"version": "1.38.0", "image": IMAGE}
    assert upgrade.problem(made, "r.test/release:1.37.2", "1.37.2") == ""
    assert upgrade.problem(made, "r.test/release:1.38.1", "1.38.1") == "", "or on to one that is mended"


def test_the_annotation_forces_this_very_image() -> None:
    assert upgrade.problem(running("1.36.2", {FORCE: IMAGE}), IMAGE, "1.38.0") == ""
    assert upgrade.problem(running("1.36.2", {FORCE: "r.test/release:1.37.0"}), IMAGE, "1.38.0")
    assert upgrade.problem(running("1.36.2", {FORCE: "true"}), IMAGE, "1.38.0")
    skipped = {"hypershift.openshift.io/skip-release-image-validation": "true"}
    assert upgrade.problem(running("1.36.2", skipped), IMAGE, "1.38.0") == ""


def test_a_cluster_that_says_it_cannot_be_upgraded_takes_patches_only() -> None:
    assert "not now" in upgrade.problem(running("1.37.1", upgradeable="False"), IMAGE, "1.38.0")
    assert upgrade.problem(running("1.38.1", upgradeable="False"), IMAGE, "1.38.2") == ""
    assert upgrade.problem(running("1.37.1", {FORCE: IMAGE}, upgradeable="False"), IMAGE, "1.38.0") == ""
    assert upgrade.problem(running("1.37.1", upgradeable="True"), IMAGE, "1.38.0") == ""


def test_the_first_release_and_odd_versions_are_free() -> None:
    made = running("1.36.0")
    made["status"]["controlPlaneVersion"] = {"history": [{"state": "Partial", "version": "1.36.0"}]}
    assert upgrade.problem(made, IMAGE, "1.38.0") == ""
    assert upgrade.problem(running("mine"), IMAGE, "1.38.0") == ""
