"""Our own image, in layers that change at different speeds.

    rootfs-python    Debian with Python and HAProxy         months
    rootfs-hcp       + the wheels hcp needs                 weeks
    image-router     + hcp itself                           every change of the source, made in a second
    image-hcp        + Cluster API's CRDs, images.json      when those change
                       and etcdutl

`image-router` is all the router and the ignition server need, so an embedded cluster can have Routes before Cluster API
is built. `image-hcp` also holds `/opt/hcp/upstream/<component>/crds/*.yaml`, beside them `official` where the manager's
image has the build of its project, and `/opt/hcp/images.json`: name → reference by digest of the images that the
operator deploys besides a release.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from hcp import __version__
from hcp.build_info import PACKAGE, source_files
from hcp.oci.writer import ImageConfig, Layer, read_layout, write_image
from hcp.payload.builders.capi import is_official
from hcp.payload.component import Component, hash_files
from hcp.payload.context import BuildContext
from hcp.payload.image import REGISTRY, image_digest, reference
from hcp.payload.images import bases
from hcp.payload.versions import recipe_dir

SUPPORT_IMAGES = ("cluster-api", "cluster-api-kubevirt", "haproxy", "pause")
UPSTREAM = ("cluster-api", "cluster-api-kubevirt")
_PYTHON = (3, 11)  # Debian bookworm's
_USER = "1001"
_CONFIG = ImageConfig(
    entrypoint=("hcp",),
    user=_USER,
    environment={
        "PYTHONPATH": "/opt/hcp/code:/opt/hcp/lib",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "HOME": "/tmp",
    },
)


def components() -> Iterator[Component]:
    recipe = recipe_dir("image-hcp")
    yield Component(
        name="rootfs-hcp",
        version=f"python{_PYTHON[0]}.{_PYTHON[1]}",
        build=_build_base,
        deps=(bases.PYTHON.component,),
        inputs=partial(hash_files, recipe, [recipe / "requirements.txt"]),
        outputs=("image/index.json",),
        summary="Debian with Python, HAProxy and the wheels hcp needs",
        how="wheels from PyPI on Debian",
    )
    yield Component(
        name="image-router",
        version=__version__,
        build=_build_code,
        deps=("rootfs-hcp",),
        inputs=_code_inputs,
        outputs=("image/index.json",),
        summary="image hcp/router: hcp without Cluster API's parts, for the router and the ignition server",
        how="written as an image",
    )
    yield Component(
        name="image-hcp",
        version=__version__,
        build=_build_operator,
        deps=("image-router", "etcd", *UPSTREAM, *(f"image-{name}" for name in SUPPORT_IMAGES)),
        outputs=("image/index.json",),
        summary="image hcp/hcp: the operator",
        how="written as an image",
    )


def _code_inputs() -> str:
    recipe = recipe_dir("image-hcp")
    return hash_files(PACKAGE, source_files()) + hash_files(recipe, [recipe / "hcp"])


def _build_base(ctx: BuildContext) -> None:
    lib = ctx.scratch / "lib"
    ctx.say("fetching wheels")
    platforms = ("manylinux2014_x86_64", "manylinux_2_28_x86_64", "manylinux_2_34_x86_64")
    argv = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--only-binary=:all:"]
    argv += ["--python-version", f"{_PYTHON[0]}.{_PYTHON[1]}", "--implementation", "cp"]
    argv += [f"--platform={tag}" for tag in platforms]
    argv += ["--target", str(lib), "-r", str(recipe_dir("image-hcp") / "requirements.txt")]
    ctx.run(argv)
    shutil.rmtree(lib / "bin", ignore_errors=True)
    _compile(ctx, lib, "/opt/hcp/lib")
    layer = Layer("Python packages")
    layer.tree(lib, "opt/hcp/lib")
    layer.file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nhcp:x:1001:1001:hcp:/tmp:/bin/sh\n")
    base = read_layout(ctx.dep(bases.PYTHON.component) / "image")
    write_image(ctx.out / "image", "rootfs-hcp", [layer], _CONFIG, base=base)


def _build_code(ctx: BuildContext) -> None:
    code = ctx.scratch / "code"
    for path in source_files():
        target = code / "hcp" / path.relative_to(PACKAGE)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    _compile(ctx, code, "/opt/hcp/code")
    layer = Layer("hcp")
    layer.tree(code, "opt/hcp/code")
    start = recipe_dir("image-hcp") / "hcp"
    layer.file("usr/bin/hcp", start, mode=0o755)
    layer.symlink("usr/bin/hypershift", "hcp")
    base = read_layout(ctx.dep("rootfs-hcp") / "image")
    write_image(ctx.out / "image", f"{REGISTRY}/hcp/router:{__version__}", [layer], _CONFIG, base=base)


def _build_operator(ctx: BuildContext) -> None:
    layer = Layer("Cluster API's CRDs and the list of images")
    for component in UPSTREAM:
        for path in sorted((ctx.dep(component) / "manifests" / "crds").glob("*.yaml")):
            layer.file(f"opt/hcp/upstream/{component}/crds/{path.name}", path)
        if is_official(ctx.dep(f"image-{component}")):
            layer.file(f"opt/hcp/upstream/{component}/official", "It follows Secrets.\n")
    # Fills the volume of an etcd that starts from a snapshot.
    layer.file("usr/bin/etcdutl", ctx.dep("etcd") / "bin" / "etcdutl", mode=0o755)
    references = {
        name: reference(f"hcp/{name}", image_digest(ctx.dep(f"image-{name}"))) for name in sorted(SUPPORT_IMAGES)
    }
    layer.file("opt/hcp/images.json", json.dumps(references, indent=1, sort_keys=True) + "\n")
    base = read_layout(ctx.dep("image-router") / "image")
    write_image(ctx.out / "image", f"{REGISTRY}/hcp/hcp:{__version__}", [layer], _CONFIG, base=base)


def _compile(ctx: BuildContext, folder: Path, shown_as: str) -> None:
    """Compile ahead, since pods cannot write bytecode; only with the very Python that the image has."""
    program = sys.executable if sys.version_info[:2] == _PYTHON else shutil.which(f"python{_PYTHON[0]}.{_PYTHON[1]}")
    if program is None:
        return
    for path in folder.rglob("__pycache__"):
        shutil.rmtree(path)
    ctx.run(
        [
            program,
            "-m",
            "compileall",
            "-q",
            "--invalidation-mode",
            "unchecked-hash",
            "-s",
            folder,
            "-p",
            shown_as,
            folder,
        ],
        env={"PYTHONHASHSEED": "0"},
    )
