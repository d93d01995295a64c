"""KubeVirt: its commands, the static container-disk server, and the operator's manifest.

The manifest names images as `hcp-image:<name>`; whoever applies it puts the real references there.
"""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from hcp.payload.builders import go as go_builder
from hcp.payload.context import BuildContext
from hcp.payload.gotool import Go
from hcp.payload.manifests import IMAGE_PLACEHOLDER

_NAMESPACE = "kubevirt"
# Variable of virt-operator → image. Each of them is a component's image; features without one are not offered.
_IMAGES = {
    "VIRT_OPERATOR_IMAGE": "virt-operator",
    "VIRT_API_IMAGE": "virt-api",
    "VIRT_CONTROLLER_IMAGE": "virt-controller",
    "VIRT_HANDLER_IMAGE": "virt-handler",
    "VIRT_LAUNCHER_IMAGE": "virt-launcher",
    "VIRT_EXPORTPROXY_IMAGE": "virt-exportproxy",
    "VIRT_EXPORTSERVER_IMAGE": "virt-exportserver",
}


def build(ctx: BuildContext, entry: dict[str, Any]) -> None:
    go_builder.build(ctx, entry)
    source = ctx.scratch / "recipe"
    module = Go(ctx).module_dir(entry["module"], cwd=source, env=go_builder.go_env(entry))
    disk = ctx.out / "bin" / "container-disk"
    ctx.say("compiling container-disk")
    ctx.run(["gcc", "-static", "-O2", "-s", "-o", disk, module / "cmd" / "container-disk-v2alpha" / "main.c"])
    _write_manifest(ctx, module, entry["version"])


def _write_manifest(ctx: BuildContext, module: Path, version: str) -> None:
    """First the generated parts are put in, then the variables, as upstream's own release does."""
    ctx.say("writing the manifest")
    template = ctx.scratch / "operator.yaml.in"
    tool: list[str | Path] = [ctx.out / "bin" / "manifest-templator"]
    generated = module / "manifests" / "generated"
    release = module / "manifests" / "release" / "kubevirt-operator.yaml.in"
    template.write_bytes(
        ctx.run(
            [*tool, "--process-files", f"--generated-manifests-dir={generated}", f"--input-file={release}"],
            capture=True,
        )
    )
    filled = ctx.run(
        [
            *tool,
            "--process-vars",
            f"--input-file={template}",
            f"--namespace={_NAMESPACE}",
            f"--container-tag=v{version}",
            f"--csv-version={version}",
            f"--kubevirt-logo-path={module / 'assets' / 'kubevirt_logo.png'}",
            "--image-pull-policy=IfNotPresent",
            "--verbosity=2",
        ],
        capture=True,
    ).decode()
    target = ctx.out / "manifests" / "op.yaml"
    target.parent.mkdir(parents=True, exist_ok=True)
    documents = yaml.safe_load_all(filled.replace("{{.Namespace}}", _NAMESPACE))
    named = [with_placeholders(document) for document in documents if document]
    target.write_text(yaml.safe_dump_all(named, sort_keys=False, width=120))


def with_placeholders(document: dict[str, Any]) -> dict[str, Any]:
    """Gives the operator's Deployment an image, and the images of everything that the operator starts.

    The templating tool has flags for them but fills in the Deployment before it reads these flags.
    """
    if document["kind"] != "Deployment":
        return document
    result = deepcopy(document)
    (container,) = result["spec"]["template"]["spec"]["containers"]
    container["image"] = IMAGE_PLACEHOLDER + _IMAGES["VIRT_OPERATOR_IMAGE"]
    others = [variable for variable in container["env"] if variable["name"] not in _IMAGES]
    images = [{"name": name, "value": IMAGE_PLACEHOLDER + image} for name, image in _IMAGES.items()]
    container["env"] = images + others
    return result
