"""The manifests of KubeVirt's and CDI's operators as components of their own.

Built, they come out of the source with everything else. Downloaded, they are the files of the release, and nothing of
the source is needed. Either way they name images as `hcp-image:<name>`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from shutil import copyfile
from typing import Any

import yaml

from hcp.payload.builders.cdi import OPERATOR_IMAGES
from hcp.payload.builders.kubevirt import with_placeholders
from hcp.payload.component import Component, Download
from hcp.payload.context import BuildContext
from hcp.payload.image import version_of
from hcp.payload.images.suitability import kubevirt_unfit
from hcp.payload.manifests import IMAGE_PLACEHOLDER

PATH = "manifests/op.yaml"
_RELEASES = {
    "kubevirt": ("kubevirt/kubevirt", "kubevirt-operator.yaml"),
    "cdi": ("kubevirt/containerized-data-importer", "cdi-operator.yaml"),
}


def components() -> Iterator[Component]:
    changes: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
        "kubevirt": with_placeholders,
        "cdi": cdi_with_placeholders,
    }
    for name, change in changes.items():
        version = version_of(name)
        project, file = _RELEASES[name]
        yield Component(
            name=f"manifest-{name}",
            version=version,
            build=partial(_copy, name),
            deps=(name,),
            outputs=(PATH,),
            downloads=(
                Download(
                    f"https://github.com/{project}/releases/download/v{version}/{file}",
                    {".": PATH},
                    sums_url=f"https://api.github.com/repos/{project}/releases/tags/v{version}",
                ),
            ),
            finish_download=partial(_finish, change),
            unfit=kubevirt_unfit if name == "kubevirt" else str,
            summary=f"the manifest of {name}'s operator",
            how="taken from its source",
        )


def _copy(name: str, ctx: BuildContext) -> None:
    (ctx.out / PATH).parent.mkdir(parents=True)
    copyfile(ctx.dep(name) / PATH, ctx.out / PATH)


def _finish(change: Callable[[dict[str, Any]], dict[str, Any]], ctx: BuildContext) -> None:
    target = ctx.out / PATH
    documents = [change(document) for document in yaml.safe_load_all(target.read_text()) if document]
    target.write_text(yaml.safe_dump_all(documents, sort_keys=False, width=120))
    target.chmod(0o644)


def cdi_with_placeholders(document: dict[str, Any]) -> dict[str, Any]:
    """Our names for the operator's image and for all it starts."""
    if document["kind"] != "Deployment":
        return document
    for container in document["spec"]["template"]["spec"]["containers"]:
        container["image"] = IMAGE_PLACEHOLDER + "cdi-operator"
        container["imagePullPolicy"] = "IfNotPresent"
        for variable in container["env"]:
            if variable["name"] in OPERATOR_IMAGES:
                variable["value"] = IMAGE_PLACEHOLDER + OPERATOR_IMAGES[variable["name"]]
            elif variable["name"] == "PULL_POLICY":
                variable["value"] = "IfNotPresent"
    return document
