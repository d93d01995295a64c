"""The Containerized Data Importer: its commands and the operator's manifest.

The manifest names images as `hcp-image:<name>`; whoever applies it puts the real references there.
"""

from __future__ import annotations

from typing import Any

from hcp.payload.builders import go as go_builder
from hcp.payload.context import BuildContext
from hcp.payload.gotool import Go
from hcp.payload.manifests import IMAGE_PLACEHOLDER

_NAMESPACE = "cdi"
# Flag of the generator → image.
_IMAGES = {
    "operator-image": "cdi-operator",
    "controller-image": "cdi-controller",
    "importer-image": "cdi-importer",
    "cloner-image": "cdi-cloner",
    "apiserver-image": "cdi-apiserver",
    "uploadproxy-image": "cdi-uploadproxy",
    "uploadserver-image": "cdi-uploadserver",
    "ovirt-populator-image": "cdi-importer",  # the controller does not start without it
}

# Variable of the operator → image.
OPERATOR_IMAGES = {
    "CONTROLLER_IMAGE": "cdi-controller",
    "IMPORTER_IMAGE": "cdi-importer",
    "CLONER_IMAGE": "cdi-cloner",
    "APISERVER_IMAGE": "cdi-apiserver",
    "UPLOAD_PROXY_IMAGE": "cdi-uploadproxy",
    "UPLOAD_SERVER_IMAGE": "cdi-uploadserver",
    "OVIRT_POPULATOR_IMAGE": "cdi-importer",  # as above
}


def build(ctx: BuildContext, entry: dict[str, Any]) -> None:
    go_builder.build(ctx, entry)
    ctx.say("writing the manifest")
    module = Go(ctx).module_dir(entry["module"], cwd=ctx.scratch / "recipe", env=go_builder.go_env(entry))
    tool = ctx.out / "bin" / "manifest-generator"
    generated = ctx.scratch / "generated"
    generated.mkdir()
    operator = ctx.run(
        [
            tool,
            "-resource-type=operator",
            "-resource-group=everything",
            f"-operator-version=v{entry['version']}",
            "-deploy-cluster-resources=true",
            "-verbosity=1",
            "-pull-policy=IfNotPresent",
            f"-namespace={_NAMESPACE}",
            *(f"-{flag}={IMAGE_PLACEHOLDER}{image}" for flag, image in _IMAGES.items()),
        ],
        capture=True,
    )
    (generated / "operator-everything.yaml.in").write_bytes(operator)
    template = module / "manifests" / "templates" / "release" / "cdi-operator.yaml.in"
    manifest = ctx.run(
        [tool, f"-template={template}", f"-generated-manifests-path={generated}", f"-namespace={_NAMESPACE}"],
        capture=True,
    )
    target = ctx.out / "manifests" / "op.yaml"
    target.parent.mkdir(parents=True)
    target.write_bytes(manifest)
