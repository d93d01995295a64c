"""Small programs of our own that images need."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from hcp.payload.component import Component, hash_files
from hcp.payload.context import BuildContext
from hcp.payload.versions import recipe_dir


def components() -> Iterator[Component]:
    yield Component(
        name="pause",
        version="1",
        build=_build_pause,
        inputs=partial(hash_files, recipe_dir("pause")),
        outputs=("bin/pause",),
        summary="the process that holds a pod's namespaces",
        how="compiled with gcc",
    )


def _build_pause(ctx: BuildContext) -> None:
    ctx.apt("gcc", "libc6-dev")
    target = ctx.out / "bin" / "pause"
    target.parent.mkdir()
    source = recipe_dir("pause") / "pause.c"
    ctx.run(["gcc", "-Os", "-Wall", "-Wextra", "-Werror", "-static", "-s", "-o", target, source])
