"""A release to upgrade to: the images of one that is built, under the version after it.

Those of the control plane hold the same programs and are other images all the same, so that an upgrade rolls every pod.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

from hcp import payload
from hcp.local.network.addresses import REGISTRY
from hcp.local.state.layout import Layout as Place
from hcp.oci.push import Pusher
from hcp.oci.writer import Layer, Layout, write_image
from hcp.oci.writer_layout import read_layout
from hcp.publish.rewrite import config_of
from hcp.release.layout import find_files
from hcp.release.reading import BOOT_IMAGES, IMAGE_REFERENCES

VERSION = "1.36.4"
ROLLED = {
    "etcd": "image-etcd",
    "kube-apiserver": "image-kube-apiserver-1.36",
    "kube-controller-manager": "image-kube-controller-manager-1.36",
    "kube-scheduler": "image-kube-scheduler-1.36",
    "konnectivity-server": "image-konnectivity-server",
}
_REPOSITORY = "hcp/release"


async def push_next(name: str, folder: Path, component: str = "release-1.36", version: str = VERSION) -> str:
    """Into the registry of this embedded cluster; gives its reference."""
    built = payload.find(component)
    assert built is not None, f"{component} is not built"
    layout = read_layout(built / "image")
    files = find_files(layout, (IMAGE_REFERENCES, BOOT_IMAGES))
    stream = json.loads(files[IMAGE_REFERENCES])
    stream["metadata"]["name"] = version
    others = {name: _relabelled(image, folder / name, version) for name, image in ROLLED.items()}
    for tag in stream["spec"]["tags"]:
        if tag["name"] in others:
            repository = tag["from"]["name"].partition("@")[0]
            tag["from"]["name"] = f"{repository}@{others[tag['name']].digest}"
    layer = Layer(f"release {version}")
    for path, data in {**files, IMAGE_REFERENCES: json.dumps(stream).encode()}.items():
        layer.file(path, data)
    made = folder / f"release-{version}"
    write_image(made, f"{REGISTRY}/{_REPOSITORY}:{version}", [layer], config_of(layout))
    run = os.open(Place.of(name).run, os.O_RDONLY | os.O_DIRECTORY)
    try:
        socket = f"/proc/self/fd/{run}/{Place.of(name).push_socket.name}"
        async with Pusher(f"http://{REGISTRY}", socket=socket) as pusher:
            for name in others:
                await pusher.push(folder / name, f"hcp/{name}", tag=version)
            await pusher.push(made, _REPOSITORY, tag=version)
    finally:
        os.close(run)
    return f"{REGISTRY}/{_REPOSITORY}:{version}"


def _relabelled(component: str, target: Path, version: str) -> Layout:
    """The same image with a label more, and so another digest."""
    built = payload.find(component)
    assert built is not None, f"{component} is not built"
    base = read_layout(built / "image")
    config = config_of(base)
    labels = {**config.labels, "release": version}
    return write_image(target, f"{REGISTRY}/hcp/{target.name}:{version}", [], replace(config, labels=labels), base=base)
