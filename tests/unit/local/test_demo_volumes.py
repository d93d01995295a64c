"""The tour shows claims where that costs no time, and is the same as ever where it would."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hcp.local.demo import run as demo
from hcp.local.demo import summary, volumes
from hcp.local.demo.plan import Step, Tour, background, steps
from hcp.local.demo.workload import manifests
from hcp.payload.published import with_parts

TOUR = Tour("default", "demo", 2, Path("demo"))
WITH = replace(TOUR, volumes=True)


def words(tour: Tour, title: str) -> list[str]:
    return next(list(step.command) for step in steps(tour) if step.title == title)


def test_with_their_parts_there_the_hosted_cluster_gets_a_release_with_volumes() -> None:
    assert words(WITH, "The operator's image and a release in its registry")[4:] == [
        *("release-1.36", "image-hcp", "release-1.36-storage")
    ]
    made = words(WITH, "A hosted cluster")
    assert made[made.index("--release-image") + 1].startswith("registry.hcp.test:5000/hcp/release:1.36.")
    assert made[-1].endswith("-storage")


@pytest.mark.parametrize("fetches", [False, True])
def test_nothing_else_of_the_tour_is_another_one(fetches: bool) -> None:
    before, after = (replace(tour, fetches=fetches) for tour in (TOUR, WITH))
    assert background(before) == background(after), "nothing of volumes is compiled in a tour"
    assert not [step for step in steps(before) if "storage" in " ".join((*step.command, *step.parts))]
    differ = [old.title for old, new in zip(steps(before), steps(after), strict=True) if old != new]
    pushed = "A release in its registry" if fetches else "The operator's image and a release in its registry"
    assert differ == [pushed, "A hosted cluster"]


def test_one_missing_image_is_enough_to_do_without(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = with_parts([volumes.RELEASE])
    assert {"release-1.36-storage", "image-csi-external-provisioner", "image-kube-apiserver-1.36"} <= set(wanted)
    there = set(wanted)
    monkeypatch.setattr(volumes, "find", lambda name: Path(name) if name in there else None)
    assert volumes.there()
    there.discard("image-csi-external-provisioner")
    assert not volumes.there()


@pytest.mark.parametrize(("nodes", "cached", "expected"), [(2, True, True), (2, False, False), (0, True, False)])
def test_the_tour_looks_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nodes: int, cached: bool, expected: bool
) -> None:
    def stop(step: Step, *_: object) -> None:
        raise KeyboardInterrupt

    asked: list[Tour] = []
    monkeypatch.setattr(demo, "_step", stop)
    monkeypatch.setattr(demo, "background", lambda _: [])
    monkeypatch.setattr(demo, "_something_missing", asked.append)
    monkeypatch.setattr(volumes, "there", lambda: cached)
    with pytest.raises(KeyboardInterrupt):
        demo.run(replace(TOUR, nodes=nodes, folder=tmp_path / "tour"), lambda _: None)
    assert [tour.volumes for tour in asked] == [expected]


def test_who_saw_no_claim_is_told_what_to_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # nothing is built here
    told = summary.report(TOUR, [("A", 1.0)], "demo-abc", volumes.how_to_have_them())
    assert "hcp payload build release-1.36-storage (about " in told
    assert "release-1.36-storage" not in summary.report(WITH, [("A", 1.0)], "demo-abc", "")
    assert "Not shown" not in summary.report(replace(TOUR, nodes=0), [("A", 1.0)], "", volumes.how_to_have_them())


def test_each_pod_has_a_claim_of_its_own_and_answers_from_it() -> None:
    plain, service = manifests("image")
    [claimed, same] = manifests("image", claims=True)
    assert service == same
    assert (plain["kind"], claimed["kind"]) == ("Deployment", "StatefulSet")
    assert "volumeClaimTemplates" not in plain["spec"]
    [claim] = claimed["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"], "the pods are on two nodes"
    [container] = claimed["spec"]["template"]["spec"]["containers"]
    [mount] = container["volumeMounts"]
    assert mount["name"] == claim["metadata"]["name"] and mount["mountPath"] in container["command"][-1]
