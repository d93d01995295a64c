"""A release to upgrade to: the images of one that is built, under the version after it."""

from __future__ import annotations

import json
import os
from pathlib import Path

from hcp import payload
from hcp.local.network.addresses import REGISTRY
from hcp.local.state.layout import Layout
from hcp.oci.push import Pusher
from hcp.oci.writer import Layer, write_image
from hcp.oci.writer_layout import read_layout
from hcp.publish.rewrite import config_of
from hcp.release.layout import find_files
from hcp.release.reading import BOOT_IMAGES, IMAGE_REFERENCES

VERSION = "1.36.4"
_REPOSITORY = "hcp/release"


async def push_next(name: str, folder: Path, component: str = "release-1.36") -> str:
    """Into the registry of this embedded cluster; gives its reference."""
    built = payload.find(component)
    assert built is not None, f"{component} is not built"
    layout = read_layout(built / "image")
    files = find_files(layout, (IMAGE_REFERENCES, BOOT_IMAGES))
    stream = json.loads(files[IMAGE_REFERENCES])
    stream["metadata"]["name"] = VERSION
    layer = Layer(f"release {VERSION}")
    for path, data in {**files, IMAGE_REFERENCES: json.dumps(stream).encode()}.items():
        layer.file(path, data)
    made = folder / f"release-{VERSION}"
    write_image(made, f"{REGISTRY}/{_REPOSITORY}:{VERSION}", [layer], config_of(layout))
    run = os.open(Layout.of(name).run, os.O_RDONLY | os.O_DIRECTORY)
    try:
        socket = f"/proc/self/fd/{run}/{Layout.of(name).push_socket.name}"
        async with Pusher(f"http://{REGISTRY}", socket=socket) as pusher:
            await pusher.push(made, _REPOSITORY, tag=VERSION)
    finally:
        os.close(run)
    return f"{REGISTRY}/{_REPOSITORY}:{VERSION}"
