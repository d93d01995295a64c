"""The generated CRDs: fresh, structural, and carrying what tools rely on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from hcp.api import generate, hostedcontrolplane, names
from hcp.api.schema import without_rules

CRDS = {crd["spec"]["names"]["kind"]: crd for crd in generate.crds()}


def _schema(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = CRDS[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def _walk(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from _walk(child, f"{path}.{name}")
    if "items" in schema:
        yield from _walk(schema["items"], f"{path}[]")


def test_checked_in_files_are_fresh() -> None:
    for path, text in generate.files().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is stale: run `python -m hcp.api.generate`"
    assert set(generate.FOLDER.glob("*.yaml")) == set(generate.files())


def test_files_hold_what_the_code_installs() -> None:
    for path in generate.files():
        loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert loaded == CRDS[loaded["spec"]["names"]["kind"]]


def test_hosted_cluster_columns_are_those_of_the_guides() -> None:
    columns = CRDS["HostedCluster"]["spec"]["versions"][0]["additionalPrinterColumns"]
    shown = [column["name"].upper() for column in columns if not column.get("priority")]
    assert shown == ["VERSION", "KUBECONFIG", "PROGRESS", "AVAILABLE", "PROGRESSING", "MESSAGE"]
    assert "CP VERSION" in [column["name"].upper() for column in columns if column.get("priority") == 1]


def test_short_names_and_subresources() -> None:
    assert CRDS["HostedCluster"]["spec"]["names"]["shortNames"] == ["hc", "hcs"]
    assert CRDS["NodePool"]["spec"]["names"]["shortNames"] == ["np", "nps"]
    assert CRDS["HostedControlPlane"]["spec"]["names"]["shortNames"] == ["hcp", "hcps"]
    for kind, crd in CRDS.items():
        # A ControlPlaneComponent is nothing but status, so that it takes one write; a template has none.
        has_one = "status" in crd["spec"]["versions"][0].get("subresources", {})
        assert has_one is (kind not in ("ControlPlaneComponent", "NodeRepairTemplate"))
    assert CRDS["NodePool"]["spec"]["versions"][0]["subresources"]["scale"] == {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
    }


def test_cluster_api_can_resolve_the_control_plane_kind() -> None:
    assert CRDS["HostedControlPlane"]["metadata"]["labels"]["cluster.x-k8s.io/v1beta1"] == names.VERSION


@pytest.mark.parametrize("kind", list(CRDS))
def test_every_field_of_the_spec_is_explained(kind: str) -> None:
    spec = _schema(kind)["properties"]["spec"]
    silent = [
        path for path, schema in _walk(spec) if path and not path.endswith("[]") and not schema.get("description")
    ]
    assert silent == []


def test_node_pool_release_is_optional() -> None:
    spec = _schema("NodePool")["properties"]["spec"]
    assert "release" not in spec["required"]


@pytest.mark.parametrize("kind", ["HostedCluster", "NodePool"])
def test_other_platforms_are_preserved(kind: str) -> None:
    platform = _schema(kind)["properties"]["spec"]["properties"]["platform"]["properties"]
    for name in ("aws", "azure", "ibmcloud", "agent", "powervs", "openstack", "gcp"):
        assert platform[name]["x-kubernetes-preserve-unknown-fields"] is True


def test_the_projection_has_no_rules_but_all_fields() -> None:
    spec = hostedcontrolplane.spec()
    assert not [path for path, schema in _walk(spec) if "x-kubernetes-validations" in schema]
    cluster = _schema("HostedCluster")["properties"]["spec"]["properties"]
    missing = set(cluster) - set(spec["properties"]) - {"release", "controlPlaneRelease"}
    assert missing == set()


def test_stripping_rules_keeps_a_field_of_that_name() -> None:
    schema = {"type": "object", "properties": {"x-kubernetes-validations": {"type": "string"}}}
    assert without_rules(schema) == schema
