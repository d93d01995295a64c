"""Cluster API managers and their CRDs.

The labels tell Cluster API which version of a kind to use; without them references between objects do not resolve.

Our builds ask for Secrets one by one. Official ones follow those of all namespaces, which they have no right to: in
their place stands a small program of ours that runs them and shows them the Secrets of hosted namespaces.
"""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import yaml

from hcp.errors import HcpError
from hcp.oci.writer import read_layout
from hcp.payload.builders import go as go_builder
from hcp.payload.context import BuildContext
from hcp.payload.gotool import Go
from hcp.payload.store import Store

STAND_IN = "hosted-secrets"
OFFICIAL = ".official"
"""What the stand-in starts is the file beside it with this after its name."""


def is_official(image: Path) -> bool:
    """Whether the artifact of a manager's image has an official build in it."""
    layout = read_layout(image / "image")
    with tarfile.open(layout.blob(layout.manifest["layers"][-1]["digest"])) as archive:
        return any(name.endswith(OFFICIAL) for name in archive.getnames())


def build(ctx: BuildContext, entry: dict[str, Any]) -> None:
    go_builder.build(ctx, entry)
    module = Go(ctx).module_dir(entry["module"], cwd=ctx.scratch / "recipe", env=go_builder.go_env(entry))
    target = ctx.out / "manifests" / "crds"
    target.mkdir(parents=True)
    found = sorted((module / "config" / "crd" / "bases").glob("*.yaml"))
    if not found:
        raise HcpError(f"The source of {ctx.component.name} holds no CRDs")
    for path in found:
        _write_labelled(path, target / path.name, entry)


def finish_download(ctx: BuildContext, entry: dict[str, Any]) -> None:
    """The CRDs came as they are in the source, the manager as its project built it."""
    for path in sorted((ctx.out / "manifests" / "crds").glob("*.yaml")):
        _write_labelled(path, path, entry)
    source, folder = go_builder.copy_recipe(ctx, STAND_IN), ctx.out / "bin"
    for command in entry["commands"]:
        (folder / command).rename(folder / f"{command}{OFFICIAL}")
        with Store(ctx.cache).lock(STAND_IN):  # both managers come at once; the second finds it compiled
            Go(ctx).build({command: STAND_IN}, folder, cwd=source, env=go_builder.go_env({}))


def _write_labelled(source: Path, target: Path, entry: dict[str, Any]) -> None:
    crd = with_labels(yaml.safe_load(source.read_text()), entry["crd_labels"])
    target.write_text(yaml.safe_dump(crd, sort_keys=False, width=120))


def with_labels(crd: dict[str, Any], labels: dict[str, str]) -> dict[str, Any]:
    metadata = crd.get("metadata", {})
    return {**crd, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **labels}}}
