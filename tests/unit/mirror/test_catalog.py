"""Choosing from file-based catalogs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hcp.errors import HcpError
from hcp.mirror import catalog, catalog_image
from hcp.mirror.config import Package, Versions
from hcp.oci.writer_layer import Layer


def bundle(package: str, version: str) -> dict[str, Any]:
    name = f"{package}.v{version}"
    return {
        "schema": "olm.bundle",
        "name": name,
        "package": package,
        "image": f"quay.example/{package}-bundle:v{version}",
        "properties": [{"type": "olm.package", "value": {"packageName": package, "version": version}}],
        "relatedImages": [
            {"name": "operator", "image": f"quay.example/{package}:v{version}"},
            {"name": "", "image": f"quay.example/{package}-bundle:v{version}"},
            {"name": "proxy", "image": "quay.example/proxy:1"},
        ],
    }


def channel(package: str, name: str, *versions: str) -> dict[str, Any]:
    entries: list[dict[str, Any]] = []
    for before, version in zip(("", *versions), versions, strict=False):
        entry = {"name": f"{package}.v{version}"}
        entries.append(entry | ({"replaces": f"{package}.v{before}"} if before else {}))
    return {"schema": "olm.channel", "name": name, "package": package, "entries": entries}


def documents() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"schema": "olm.package", "name": "metallb", "defaultChannel": "stable"},
        channel("metallb", "stable", "1.0.0", "1.1.0", "1.2.0", "1.10.0"),
        channel("metallb", "old", "0.9.0", "1.0.0"),
        {"schema": "olm.deprecations", "package": "metallb", "entries": []},
        {"schema": "olm.package", "name": "lvms", "defaultChannel": "only"},
        channel("lvms", "only", "4.17.0"),
        {"schema": "something", "name": "of nobody"},
    ]
    found += [bundle("metallb", version) for version in ("0.9.0", "1.0.0", "1.1.0", "1.2.0", "1.10.0")]
    return [*found, bundle("lvms", "4.17.0")]


@pytest.fixture
def operators() -> dict[str, catalog.Operator]:
    return catalog.group(documents())


def kept(operator: catalog.Operator) -> dict[str, list[str]]:
    return {name: [entry["name"] for entry in one["entries"]] for name, one in operator.channels.items()}


def test_a_bare_package_is_the_head_of_its_default_channel(operators: dict[str, catalog.Operator]) -> None:
    found = catalog.chosen(operators, "c", Package("metallb"))
    assert kept(found) == {"stable": ["metallb.v1.10.0"]}
    assert found.images == [
        "quay.example/metallb-bundle:v1.10.0",
        "quay.example/metallb:v1.10.0",
        "quay.example/proxy:1",
    ]
    assert found.others == [{"schema": "olm.deprecations", "package": "metallb", "entries": []}]


def test_channels_and_versions(operators: dict[str, catalog.Operator]) -> None:
    wanted = Package("metallb", channels=(Versions("stable", "1.1.0", "1.2.0"), Versions("old")))
    found = catalog.chosen(operators, "c", wanted)
    assert kept(found) == {"stable": ["metallb.v1.1.0", "metallb.v1.2.0"], "old": ["metallb.v1.0.0"]}
    assert found.head("stable") == "metallb.v1.2.0"
    assert set(found.bundles) == {"metallb.v1.0.0", "metallb.v1.1.0", "metallb.v1.2.0"}


def test_versions_of_a_package_are_looked_for_in_all_channels(operators: dict[str, catalog.Operator]) -> None:
    found = catalog.chosen(operators, "c", Package("metallb", highest="1.0.0"))
    assert kept(found) == {"stable": ["metallb.v1.0.0"], "old": ["metallb.v0.9.0", "metallb.v1.0.0"]}


def test_bundles_by_name_stay_a_chain_with_one_head(operators: dict[str, catalog.Operator]) -> None:
    found = catalog.chosen(operators, "c", Package("metallb", bundles=("metallb.v1.0.0", "metallb.v1.10.0")))
    (first, last) = found.channels["stable"]["entries"]
    assert (first["name"], last["replaces"]) == ("metallb.v1.0.0", "metallb.v1.0.0")
    assert found.head("stable") == "metallb.v1.10.0"


def test_a_default_channel_that_is_left_out_is_replaced(operators: dict[str, catalog.Operator]) -> None:
    found = catalog.chosen(operators, "c", Package("metallb", channels=(Versions("old"),)))
    assert found.package["defaultChannel"] == "old"
    assert operators["metallb"].package["defaultChannel"] == "stable"


@pytest.mark.parametrize(
    ("wanted", "sentence", "hint"),
    [
        (Package("metalb"), "the catalog c has no package metalb", "metallb"),
        (Package("metallb", channels=(Versions("beta"),)), "metallb has no channel beta", "old, stable"),
        (
            Package("metallb", channels=(Versions("stable", "2.0.0"),)),
            "no version between 2.0.0 and the newest",
            "1.10.0",
        ),
        (Package("metallb", lowest="3.0.0"), "the package metallb has no version", "1.10.0"),
        (Package("metallb", bundles=("metallb.v7",)), "no bundle metallb.v7", "metallb.v"),
        (Package("metallb", default_channel="beta"), "no channel beta", "stable"),
    ],
)
def test_what_a_catalog_does_not_have_is_said(
    operators: dict[str, catalog.Operator], wanted: Package, sentence: str, hint: str
) -> None:
    with pytest.raises(HcpError) as caught:
        catalog.chosen(operators, "c", wanted)
    assert sentence in str(caught.value)
    assert hint in str(caught.value.hint)


def test_documents_are_read_in_every_form() -> None:
    one, other = documents()[0], documents()[1]
    text = json.dumps(one, indent=2) + "\n\n" + json.dumps(other)
    assert list(catalog.read_documents("a/catalog.json", text.encode())) == [one, other]
    assert list(catalog.read_documents("a/c.yaml", b"schema: x\n---\nschema: y\n")) == [
        {"schema": "x"},
        {"schema": "y"},
    ]
    assert list(catalog.read_documents("a/empty.json", b" \n")) == []
    for path, data in (("c.json", b"{"), ("c.json", b"3"), ("c.yaml", b"a: [")):
        with pytest.raises(HcpError, match=r"the file c\.\w+ of the catalog cannot be read"):
            list(catalog.read_documents(path, data))


def test_what_is_written_is_read_again(operators: dict[str, catalog.Operator]) -> None:
    again = catalog.group(catalog.read_documents("c.json", catalog.dump(operators["metallb"])))
    assert again["metallb"] == operators["metallb"]


@pytest.mark.parametrize(("folder", "around"), [("tmp/cache", {"tmp": 0o1777}), ("cache", {})])
def test_whoever_runs_a_rebuilt_catalog_may_write_its_cache(folder: str, around: dict[str, int]) -> None:
    layer = Layer("catalog")
    catalog_image.empty(layer, folder)
    modes = {path: entry.mode for path, entry in layer.entries.items() if not path.endswith(".wh..wh..opq")}
    assert modes == {**around, folder: 0o777}
