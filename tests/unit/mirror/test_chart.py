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


@pytest.mark.parametrize(
    ("line", "image"),
    [
        ("image: {{ .Values.name }}:{{ .Values.tag }}", "r.io/a:7"),
        ('image: "{{ .Values.name }}:{{ .Values.none | default .Chart.AppVersion }}"', "r.io/a:9"),
        ('- image: {{ default "r.io/b:1" .Values.none | quote }}', "r.io/b:1"),
        ("image: {{ $.Values.deep.image }}", "r.io/c:2"),
        ('image: "r.io/{{- .Values.deep.part -}}:v{{ .Chart.Version }}"', "r.io/d:v3"),
        ("image: {{ .Values.name }}:{{ .Values.none }}", "r.io/a"),
    ],
)
def test_values_and_defaults_in_templates_are_followed(line: str, image: str) -> None:
    values = b"name: r.io/a\ntag: 7\ndeep: {image: 'r.io/c:2', part: d}\n"
    described = b"name: shop\nversion: '3'\nappVersion: '9'\n"
    found = chart.read({"Chart.yaml": described, "values.yaml": values, "templates/a.yaml": line.encode()})
    assert image in found.images
    assert found.unknown == []


@pytest.mark.parametrize(
    "line",
    [
        'image: {{ include "shop.image" . }}',
        "image: {{ .Values.name }}:{{ .Values.tag | trunc 3 }}",
        'image: {{ printf "%s:%s" .Values.name .Values.tag }}',
        "image: {{ .Values.deep }}",
    ],
)
def test_what_templates_compute_is_told(line: str) -> None:
    values = b"name: r.io/a\ntag: 7\ndeep: {x: y}\n"
    found = chart.read({"Chart.yaml": b"name: shop\n", "values.yaml": values, "templates/a.yaml": line.encode()})
    assert found.images == []
    assert found.unknown == [f"templates/a.yaml: {line.removeprefix('image: ')}"]


def test_comments_of_templates_name_no_images() -> None:
    text = b"{{/* for example\nimage: r.io/old:1\n*/}}\nimage: r.io/new:1\n"
    found = chart.read({"Chart.yaml": b"name: shop\n", "templates/a.yaml": text})
    assert found.images == ["r.io/new:1"]


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
