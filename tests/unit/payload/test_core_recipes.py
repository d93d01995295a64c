"""The table of upstream components: complete, pinned, and readable by the builders."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hcp.errors import HcpError
from hcp.payload.builders.capi import STAND_IN, with_labels
from hcp.payload.builders.go import without_build_tags
from hcp.payload.component import Download, hash_files
from hcp.payload.components import component_from, components
from hcp.payload.gotool import parse_go_version
from hcp.payload.official import ModuleFiles, OfficialImage
from hcp.payload.versions import component_table, recipe_dir, table

_WANTED = {
    "etcd", "kubernetes-1.36", "kubernetes-1.35", "containerd", "runc", "cni-plugins", "coredns", "flannel",
    "kube-router", "local-path-provisioner", "konnectivity", "cluster-api", "cluster-api-kubevirt", "kubevirt", "cdi",
    "ignition", "haproxy", "registry", "kwok",
}  # fmt: skip
# Written here: nothing is fetched for it.
_OURS = ("mirror-proxy", "hosted-secrets")
_GO = [name for name, entry in table()["component"].items() if "commands" in entry and name not in _OURS]


def test_every_component_is_there() -> None:
    assert {component.name for component in components()} >= _WANTED


@pytest.mark.parametrize("name", _GO)
def test_go_components_are_pinned(name: str) -> None:
    entry, recipe = component_table(name), recipe_dir(name)
    modules = (recipe / "go.mod").read_text()
    assert re.search(rf"\sv{re.escape(entry.get('module_version', entry['version']))}\b", modules), (
        "go.mod names the version of the table"
    )
    assert (recipe / "go.sum").stat().st_size > 0
    imports = (recipe / "tools.go").read_text()
    # The recipe's own package needs no import.
    for package in {*entry["commands"].values(), *entry.get("tests", {}).values()} - {"."}:
        assert f'"{package}"' in imports


@pytest.mark.parametrize("name", _OURS)
def test_programs_of_ours_need_nothing_but_go(name: str) -> None:
    assert component_table(name)["kind"] == "go"
    assert "require" not in (recipe_dir(name) / "go.mod").read_text()
    assert not (recipe_dir(name) / "go.sum").exists()


def test_the_stand_in_of_official_managers_is_the_one_they_were_made_with() -> None:
    """It lies in artifacts whose keys do not know of it: raise `revision` of both managers when it changes."""
    assert hash_files(recipe_dir(STAND_IN))[:12] == "36cbfa120d4a"


def test_the_suite_is_built_from_the_modules_of_the_kubernetes_it_tests() -> None:
    suite, kubernetes = (_modules(name) for name in ("conformance-1.36", "kubernetes-1.36"))
    assert component_table("conformance-1.36")["version"] == component_table("kubernetes-1.36")["version"]
    shared = suite.keys() & kubernetes.keys()
    assert len(shared) > 100
    assert {name: suite[name] for name in shared} == {name: kubernetes[name] for name in shared}


def _modules(component: str) -> dict[str, str]:
    """Module → version, as required or replaced."""
    text = (recipe_dir(component) / "go.mod").read_text()
    return dict(re.findall(r"^\s*(?:require )?(\S+\.\S+?/?\S*)(?: => \S+)? (v\S+)", text, flags=re.MULTILINE))


def test_a_test_suite_is_an_output_and_only_made_on_request() -> None:
    component = component_from("conformance-1.36", component_table("conformance-1.36"))
    assert "bin/e2e.test" in component.outputs
    assert component.on_request


@pytest.mark.parametrize("name", sorted(_WANTED))
def test_every_download_has_a_checksum(name: str) -> None:
    component = component_from(name, component_table(name))
    placed: set[str] = set()
    for item in component.downloads:
        assert item.url.startswith("https://")
        if isinstance(item, ModuleFiles):  # go.sum has it
            placed.update(path for path in component.outputs if path.startswith(f"{item.folder}/"))
            continue
        placed.update(item.members.values())
        words = item.image if isinstance(item, OfficialImage) else item.url + (item.sums_url or "")
        assert "{" not in words + "".join(item.members)
        if isinstance(item, Download):
            assert item.sha256 or item.sums_url
    if component.downloads:
        assert placed == set(component.outputs)


def test_flags_change_the_inputs_and_words_do_not() -> None:
    entry = component_table("etcd")
    inputs = component_from("etcd", entry).inputs()
    assert component_from("etcd", {**entry, "summary": "other words", "download": []}).inputs() == inputs
    assert component_from("etcd", {**entry, "ldflags": ["-X a=b"]}).inputs() != inputs
    assert component_from("etcd", {**entry, "revision": 2}).inputs() != inputs


def test_recipe_files_change_the_hash(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("module a")
    first = hash_files(tmp_path)
    (tmp_path / "go.mod").write_text("module b")
    second = hash_files(tmp_path)
    (tmp_path / "go.mod").rename(tmp_path / "go.sum")
    assert len({first, second, hash_files(tmp_path)}) == 3


def test_a_file_for_another_machine_loses_its_build_tags() -> None:
    assert without_build_tags("//go:build arm64\n// +build arm64\n\npackage p\n") == "\npackage p\n"


def test_crds_get_their_labels() -> None:
    crd = {"kind": "CustomResourceDefinition", "metadata": {"name": "x", "labels": {"a": "b"}}}
    assert with_labels(crd, {"c": "d"})["metadata"] == {"name": "x", "labels": {"a": "b", "c": "d"}}


@pytest.mark.parametrize(
    ("text", "version"),
    [("go version go1.26.8 linux/amd64", (1, 26, 8)), ("go version go1.27 linux/arm64", (1, 27, 0)), ("nonsense", ())],
)
def test_go_versions(text: str, version: tuple[int, ...]) -> None:
    assert parse_go_version(text) == version


def test_an_entry_that_is_not_there() -> None:
    with pytest.raises(HcpError, match="says nothing about nonsense"):
        component_table("nonsense")
