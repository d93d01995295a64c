"""A release we write is one that the operator reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from hcp.payload.image import Take
from hcp.payload.images.monitoring import monitoring_images
from hcp.payload.images.olm import olm_images
from hcp.payload.images.storage import PROGRAMS, storage_images
from hcp.payload.registry import default_registry
from hcp.payload.release import Tag, definitions, release_files
from hcp.payload.versions import recipe_dir
from hcp.release import CONFIG_DEFINITIONS, IMAGE_REFERENCES, OLM_DEFINITIONS, SNAPSHOT_DEFINITIONS, NotARelease, parse

CRD = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "a"}}
DIGEST = "@sha256:" + "a" * 64


def test_the_operator_reads_what_we_write() -> None:
    tags = [
        Tag("etcd", f"r/hcp/etcd{DIGEST}", "etcd=3.6.5"),
        Tag("kube-apiserver", f"r/k{DIGEST}", "kubernetes=1.36.3"),
    ]
    files = {
        f"release-manifests/{name}": content.encode()
        for name, content in release_files("1.36.3", [*tags, Tag("pause", f"r/p{DIGEST}")], f"r/disk{DIGEST}").items()
    }
    release = parse("r/hcp/release:1.36.3", "sha256:1", files)
    assert release.version == "1.36.3"
    assert release.component("kube-apiserver") == f"r/k{DIGEST}"
    assert release.boot_disk == f"r/disk{DIGEST}"
    assert release.component_versions == {"etcd": "3.6.5", "kubernetes": "1.36.3"}
    assert release.snapshot_definitions == ()


def references() -> dict[str, bytes]:
    return {IMAGE_REFERENCES: release_files("1.36.3", [], f"r/disk{DIGEST}")["image-references"].encode()}


def test_a_release_with_storage_brings_the_definitions_of_snapshots(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(CRD))
    files = {**references(), SNAPSHOT_DEFINITIONS: definitions(tmp_path).encode()}
    assert parse("r", "sha256:1", files).snapshot_definitions == (CRD,)


def test_a_release_with_catalogs_brings_the_definitions_of_olm(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(CRD))
    found = parse("r", "sha256:1", {**references(), OLM_DEFINITIONS: definitions(tmp_path).encode()})
    assert found.olm_definitions == (CRD,)
    assert found.snapshot_definitions == ()


@pytest.mark.parametrize("file", [SNAPSHOT_DEFINITIONS, CONFIG_DEFINITIONS, OLM_DEFINITIONS])
@pytest.mark.parametrize("text", ["{", "{}", json.dumps({"items": [{"kind": "Secret"}]}), json.dumps({"items": [1]})])
def test_definitions_that_are_none_are_refused(text: str, file: str) -> None:
    with pytest.raises(NotARelease, match="crds"):
        parse("r", "sha256:1", {**references(), file: text.encode()})


@pytest.mark.parametrize("minor", ["1.36", "1.35"])
def test_storage_is_an_addition_to_the_release_that_stays_as_it_is(minor: str) -> None:
    registry = default_registry()
    plain, more = registry.get(f"release-{minor}"), registry.get(f"release-{minor}-storage")
    assert set(more.deps) - set(plain.deps) == {*(f"image-{name}" for name in PROGRAMS), "snapshot-definitions"}
    assert not set(plain.deps) - set(more.deps)
    assert more.version == f"{plain.version}-storage"


def test_what_a_full_release_has_are_all_additions() -> None:
    registry = default_registry()
    kinds = ("storage", "olm", "ingress", "login", "metrics", "monitoring", "autoscaling")
    every = {part for kind in kinds for part in registry.get(f"release-1.36-{kind}").deps}
    assert set(registry.get("release-1.36-full").deps) == every
    assert {"image-operator-lifecycle-manager", "image-operator-registry", "olm-definitions"} <= every
    assert {"image-csi-snapshot-controller", "image-prometheus"} <= every, "so that storage is measured"
    others = {part for name in registry.names() if name.startswith("release-1.36-") for part in registry.get(name).deps}
    assert others == every, "nothing that a release can have is missing"


def test_the_images_of_catalogs_have_the_versions_that_are_compiled() -> None:
    lines = [line.strip() for line in (recipe_dir("olm") / "go.mod").read_text().splitlines()]
    for image in olm_images():
        assert f"github.com/operator-framework/{image.name} v{image.version}" in lines


def test_what_a_release_measures_with_comes_with_its_name() -> None:
    registry = default_registry()
    plain = set(registry.get("release-1.36").deps)
    assert set(registry.get("release-1.36-metrics").deps) - plain == {"image-kube-metrics-server"}
    more = {"image-kube-state-metrics", "image-prometheus", "image-prometheus-node-exporter"}
    assert set(registry.get("release-1.36-monitoring").deps) - plain == {"image-kube-metrics-server", *more}
    assert more < set(registry.get("release-1.36-platform").deps)


def test_the_images_of_monitoring_have_the_versions_that_are_compiled() -> None:
    modules = {
        "kube-metrics-server": ("metrics-server", "sigs.k8s.io/metrics-server v"),
        "kube-state-metrics": ("metrics-server", "k8s.io/kube-state-metrics/v2 v"),
        # Its module counts the minor versions of 3 from 0.300 on.
        "prometheus": ("prometheus", "github.com/prometheus/prometheus v0."),
        "prometheus-node-exporter": ("node-exporter", "github.com/prometheus/node_exporter v"),
    }
    for image in monitoring_images():
        recipe, module = modules[image.name]
        lines = (recipe_dir(recipe) / "go.mod").read_text()
        major, minor, patch = image.version.split(".")
        pinned = f"{major}{minor}.{patch}" if image.name == "prometheus" else image.version
        assert f"{module}{pinned}\n" in lines
        assert {take.component for take in image.take} == {recipe}


def test_the_images_of_storage_have_the_versions_that_are_compiled() -> None:
    modules = {
        "csi-external-provisioner": "github.com/kubernetes-csi/external-provisioner/v5",
        "csi-external-resizer": "github.com/kubernetes-csi/external-resizer",
        "csi-external-snapshotter": "github.com/kubernetes-csi/external-snapshotter/v8",
        "csi-snapshot-controller": "github.com/kubernetes-csi/external-snapshotter/v8",
    }
    lines = [line.strip() for line in (recipe_dir("csi-sidecars") / "go.mod").read_text().splitlines()]
    for image in storage_images():
        assert any(line.startswith(f"{modules[image.name]} v{image.version}") for line in lines), image.name
        program = PROGRAMS[image.name][0]
        assert image.take == (Take("csi-sidecars", f"bin/{program}", f"/usr/local/bin/{program}"),)
