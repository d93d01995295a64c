"""Every number, text and list that a person can write has an end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hcp.api import generate

Schema = dict[str, Any]
WRITTEN = ("HostedCluster", "NodePool")


def endless(schema: Schema, path: str) -> Iterator[str]:
    """Fields without a bound; objects that are kept as given are bounded by the size of an object alone."""
    kind = schema.get("type")
    if kind == "string" and not {"maxLength", "enum", "format"} & schema.keys():
        yield path
    if kind == "integer" and "maximum" not in schema:
        yield path
    if kind == "array" and "maxItems" not in schema:
        yield path
    if schema.get("x-kubernetes-int-or-string") and "maxLength" not in schema:
        yield path
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        if "maxProperties" not in schema:
            yield path
        yield from endless(more, f"{path}{{}}")
    if kind == "array":
        yield from endless(schema["items"], f"{path}[]")
    for name, inner in (schema.get("properties") or {}).items():
        yield from endless(inner, f"{path}.{name}")


@pytest.mark.parametrize("crd", generate.crds(), ids=lambda crd: str(crd["spec"]["names"]["kind"]))
def test_every_field_of_a_spec_has_an_end(crd: Schema) -> None:
    if crd["spec"]["names"]["kind"] not in WRITTEN:
        return
    for version in crd["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        assert list(endless(spec, "spec")) == []
