"""Custom resource definitions of projects whose operators carry them in their own code, read out of their source.

A table in Go maps a name to YAML: a whole definition, or only the schema of one. Nothing has to be compiled for that.
"""

from __future__ import annotations

import re
import shutil
from typing import Any

import yaml

from hcp.errors import HcpError
from hcp.payload import gozip
from hcp.payload.context import BuildContext
from hcp.payload.official import ModuleFiles

_ENTRY = re.compile(r'^\t"(\w+)": `((?:[^`]|` \+ "`" \+ `)*)`,', re.MULTILINE)


def build(ctx: BuildContext, entry: dict[str, Any]) -> None:
    item = ModuleFiles(entry["module"], f"v{entry['version']}", (entry["source"],), "source")
    gozip.fetch(item, ctx, recipe=entry["sums"])
    fetched = ctx.out / "source"
    found = go_table((fetched / entry["source"].rsplit("/", 1)[-1]).read_text())
    shutil.rmtree(fetched)
    target = ctx.out / "manifests" / "crds"
    target.mkdir(parents=True)
    for name, given in entry["kinds"].items():
        if name not in found:
            raise HcpError(f"The source of {entry['module']} holds no definition of {name}")
        crd = definition(yaml.safe_load(found[name]), name, given)
        (target / f"{crd['metadata']['name']}.yaml").write_text(yaml.safe_dump(crd, sort_keys=False, width=120))


def go_table(text: str) -> dict[str, str]:
    """The strings of a Go map from names to raw strings; a backquote in one is written as a sum of three."""
    return {name: value.replace('` + "`" + `', "`") for name, value in _ENTRY.findall(text)}


def definition(document: dict[str, Any], name: str, given: dict[str, Any]) -> dict[str, Any]:
    """A whole definition as it is; around a schema alone the little that its project writes in Go."""
    if document.get("kind") == "CustomResourceDefinition":
        document["metadata"].pop("creationTimestamp", None)
        return document
    version: dict[str, Any] = {"name": given["version"], "served": True, "storage": True, "schema": document}
    if given["status"]:
        version["subresources"] = {"status": {}}
    names = {"kind": given["kind"], "plural": f"{name}s", "singular": name}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{name}s.{given['group']}"},
        "spec": {"group": given["group"], "scope": "Namespaced", "names": names, "versions": [version]},
    }
