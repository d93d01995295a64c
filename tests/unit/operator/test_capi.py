from __future__ import annotations

import json
from pathlib import Path

import pytest

from hcp.errors import HcpError
from hcp.operator import capi, support

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "kubevirtclusters.infrastructure.cluster.x-k8s.io", "creationTimestamp": None},
    "spec": {"versions": [{"name": "v1alpha4", "storage": False}, {"name": "v1alpha1", "storage": True}]},
}


def test_definitions_carry_the_contract() -> None:
    labels = capi.definition("cluster-api-kubevirt", CRD)["metadata"]["labels"]
    assert labels["cluster.x-k8s.io/v1beta1"] == "v1alpha1"
    assert labels["cluster.x-k8s.io/provider"] == "kubevirt"
    assert "cluster.x-k8s.io/provider" not in capi.definition("cluster-api", CRD)["metadata"]["labels"]


@pytest.mark.parametrize("component", capi.MANAGERS)
def test_managers_run_without_privileges_in_the_operators_namespace(component: str) -> None:
    made = capi.deployment(component, "image@sha256:0", "hypershift")
    pod = made["spec"]["template"]["spec"]
    assert made["metadata"]["namespace"] == "hypershift"
    assert pod["serviceAccountName"] == made["metadata"]["name"]
    assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True


def test_support_is_read_from_the_image(tmp_path: Path) -> None:
    (tmp_path / "images.json").write_text(json.dumps({"cluster-api": "x@sha256:0"}))
    crds = tmp_path / "upstream" / "cluster-api" / "crds"
    crds.mkdir(parents=True)
    (crds / "a.yaml").write_text(json.dumps(CRD) + "\n---\n" + json.dumps({"kind": "Other"}))
    (crds.parent / "official").touch()
    loaded = support.load(tmp_path)
    assert loaded.official == {"cluster-api"}
    assert loaded.images == {"cluster-api": "x@sha256:0"}
    assert [c["metadata"]["name"] for c in loaded.crds["cluster-api"]] == [CRD["metadata"]["name"]]  # type: ignore[index]


def test_a_broken_list_of_images_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "images.json").write_text("{")
    with pytest.raises(HcpError):
        support.load(tmp_path)
