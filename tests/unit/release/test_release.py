"""What a release image says."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from hcp.release import BOOT_IMAGES, IMAGE_REFERENCES, MissingComponent, NotARelease, Release, parse

DISK = "quay.io/disk@sha256:" + "d" * 64


def files(boot: dict[str, str] | None = None) -> dict[str, bytes]:
    tags: list[dict[str, Any]] = [
        {"name": "etcd", "from": {"kind": "DockerImage", "name": "r.io/etcd@sha256:1"}},
        {
            "name": "kube-apiserver",
            "annotations": {"io.openshift.build.versions": "kubernetes=1.36.3, other=2"},
            "from": {"kind": "DockerImage", "name": "r.io/api@sha256:2"},
        },
        {"name": "nothing"},
    ]
    stream = {"kind": "ImageStream", "metadata": {"name": "1.36.3"}, "spec": {"tags": tags}}
    found = {IMAGE_REFERENCES: json.dumps(stream).encode()}
    if boot is not None:
        found[BOOT_IMAGES] = yaml.safe_dump({"kind": "ConfigMap", "data": boot}).encode()
    return found


def stream(ref: str | None = DISK, arch: str = "x86_64") -> dict[str, Any]:
    return {"architectures": {arch: {"images": {"kubevirt": {"digest-ref": ref}} if ref else {}}}}


def read(boot: dict[str, str] | None = None, arch: str = "amd64") -> Release:
    return parse("r.io/release:1", "sha256:0", files(boot), arch)


def test_version_components_and_their_versions_are_read() -> None:
    release = read()
    assert release.version == "1.36.3"
    assert release.components == {"etcd": "r.io/etcd@sha256:1", "kube-apiserver": "r.io/api@sha256:2"}
    assert release.component_versions == {"kubernetes": "1.36.3", "other": "2"}
    assert release.boot_disk is None
    assert release.has("etcd")
    assert not release.has("etcd", "coredns")


def test_the_boot_disk_is_found_for_the_architecture() -> None:
    assert read({"stream": json.dumps(stream())}).boot_disk == DISK
    assert read({"stream": json.dumps(stream(arch="s390x"))}, "s390x").boot_disk == DISK
    assert read({"stream": json.dumps(stream(None))}).boot_disk is None
    assert read({"stream": json.dumps(stream(arch="s390x"))}).boot_disk is None
    several = json.dumps({"old": stream(None), "new": stream()})
    assert read({"streams": several}).boot_disk == DISK


def test_a_missing_component_names_itself_and_the_release() -> None:
    with pytest.raises(MissingComponent) as caught:
        read().component("coredns")
    assert caught.value.sentence == "The release 1.36.3 (r.io/release:1) has no component coredns."
    assert caught.value.component == "coredns"
    assert read().component("etcd") == "r.io/etcd@sha256:1"


@pytest.mark.parametrize(
    "content",
    [
        {},
        {IMAGE_REFERENCES: b"no json"},
        {IMAGE_REFERENCES: b"{}"},
        {**files(), BOOT_IMAGES: b"data: {}"},
        {**files(), BOOT_IMAGES: b"data: {stream: '['}"},
        {**files(), BOOT_IMAGES: b"- a: ["},
    ],
)
def test_other_images_are_refused_as_no_release(content: dict[str, bytes]) -> None:
    with pytest.raises(NotARelease, match="is not a release image"):
        parse("r.io/x", "sha256:0", content)
