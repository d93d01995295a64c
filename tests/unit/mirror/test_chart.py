"""The images of a chart."""

from __future__ import annotations

import io
import tarfile

import pytest

from hcp.errors import HcpError
from hcp.mirror import chart

FILES = {
    "Chart.yaml": b"""
name: shop
version: 1.2.3
appVersion: 9.8.7
annotations:
  artifacthub.io/images: |
    - {name: a, image: "quay.io/listed/a:1"}
""",
    "values.yaml": b"""
image: {repository: quay.io/shop/server, tag: ""}
sidecars:
- image: quay.io/shop/proxy:2
- image: {registry: ghcr.io, repository: shop/cache, digest: "sha256:%s"}
git: {repository: "https://example.com/x.git"}
special: {thing: quay.io/shop/special:3}
"""
    % (b"a" * 64),
    "templates/pod.yaml": b'containers:\n- image: "quay.io/shop/literal:4"\n- image: {{ .Values.image }}\n',
    "charts/db/Chart.yaml": b"name: db\nappVersion: '15'\n",
    "charts/db/values.yaml": b"image: {repository: docker.io/library/postgres}\n",
}


def test_images_are_found_where_charts_have_them() -> None:
    found = chart.read(FILES, ["{.special.thing}"])
    assert (found.name, found.version) == ("shop", "1.2.3")
    assert set(found.images) == {
        "quay.io/listed/a:1",
        "quay.io/shop/server:9.8.7",
        "quay.io/shop/proxy:2",
        "ghcr.io/shop/cache@sha256:" + "a" * 64,
        "quay.io/shop/special:3",
        "quay.io/shop/literal:4",
        "docker.io/library/postgres:15",
    }


def test_a_packed_chart_is_the_same() -> None:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for path, content in FILES.items():
            info = tarfile.TarInfo(f"shop/{path}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    assert chart.unpack(data.getvalue()) == FILES


def test_what_is_no_chart_is_said() -> None:
    with pytest.raises(HcpError, match=r"has no Chart\.yaml"):
        chart.read({"values.yaml": b""})
    with pytest.raises(HcpError, match="cannot be unpacked"):
        chart.unpack(b"no archive")
    with pytest.raises(HcpError, match=r"no value at \{.no.where\}"):
        chart.read(FILES, ["{.no.where}"])
    with pytest.raises(HcpError, match=r"values\.yaml of the chart is no YAML"):
        chart.read(FILES | {"values.yaml": b"a: ["})
