"""KubeVirt: its commands, the static container-disk server, and the operator's manifest.

The manifest names images as `hcp-image:<name>`; whoever applies it puts the real references there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hcp.payload.builders import go as go_builder
from hcp.payload.context import BuildContext
from hcp.payload.gotool import Go
from hcp.payload.manifests import IMAGE_PLACEHOLDER

_NAMESPACE = "kubevirt"
# Flag of the templating tool → image. Each of them is a component's image; features without one are not offered.
_IMAGES = {
    "virt-operator-image": "virt-operator",
    "virt-api-image": "virt-api",
    "virt-controller-image": "virt-controller",
    "virt-handler-image": "virt-handler",
    "virt-launcher-image": "virt-launcher",
    "virt-export-proxy-image": "virt-exportproxy",
    "virt-export-server-image": "virt-exportserver",
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
            *(f"--{flag}={IMAGE_PLACEHOLDER}{image}" for flag, image in _IMAGES.items()),
        ],
        capture=True,
    ).decode()
    target = ctx.out / "manifests" / "op.yaml"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(filled.replace("{{.Namespace}}", _NAMESPACE))
