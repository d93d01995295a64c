"""Definitions out of Go source."""

from __future__ import annotations

import pytest
import yaml

from hcp.payload.builders.definitions import definition, go_table
from hcp.payload.versions import table

SOURCE = """package x

var Table map[string]string = map[string]string{
	"thing": `openAPIV3Schema:
  description: In ` + "`" + `quotes` + "`" + `.
  type: object
`,
	"whole": `kind: CustomResourceDefinition
metadata:
  creationTimestamp: null
  name: wholes.example.com
`,
}
"""


def test_a_schema_gets_the_definition_around_it() -> None:
    schema = yaml.safe_load(go_table(SOURCE)["thing"])
    assert schema["openAPIV3Schema"]["description"] == "In `quotes`."
    given = {"kind": "Thing", "group": "example.com", "version": "v2", "status": True}
    made = definition(schema, "thing", given)
    assert made["metadata"]["name"] == "things.example.com"
    [version] = made["spec"]["versions"]
    assert version["schema"] == schema and version["subresources"] == {"status": {}}
    assert "subresources" not in definition(schema, "thing", {**given, "status": False})["spec"]["versions"][0]


def test_a_whole_definition_is_taken_as_it_is() -> None:
    made = definition(yaml.safe_load(go_table(SOURCE)["whole"]), "whole", {})
    assert made == {"kind": "CustomResourceDefinition", "metadata": {"name": "wholes.example.com"}}


@pytest.mark.parametrize("name", ["kubevirt", "cdi"])
def test_definitions_are_those_of_the_version_that_is_built(name: str) -> None:
    components = table()["component"]
    assert components[f"{name}-definitions"]["version"] == components[name]["version"]
