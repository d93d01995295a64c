"""Official builds from servers with the publishers' own paths, on good days and on bad ones."""

from __future__ import annotations

import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from tests.support.publishers import Publishers, archive, serve, sha256

from hcp.gomodules import archive_url, module_hash, proxy
from hcp.oci.writer import ImageConfig, Layer, write_image
from hcp.oci.writer_layout import read_layout
from hcp.payload import BuildContext, Engine, Progress, gozip, reachability
from hcp.payload.gotool import Go
from hcp.payload.registry import Registry, default_registry
from hcp.payload.store import Store
from hcp.payload.versions import component_table

COREDNS = "/coredns/coredns/releases/download/v1.14.0/coredns_1.14.0_linux_amd64.tgz"
CDI = "/kubevirt/containerized-data-importer/releases/download/v1.64.0/cdi-operator.yaml"
CDI_SUMS = "/repos/kubevirt/containerized-data-importer/releases/tags/v1.64.0"
ELF = b"\x7fELF and more"


class Shop:
    """The real table of components, with builds that only write that they ran."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder / "cache")
        self.screen = (folder / "screen").open("w+")
        self.built: list[str] = []
        known = default_registry()
        self.registry = Registry(
            replace(known.get(name), build=self._builder(name), unfit=str) for name in known.names()
        )

    def _builder(self, name: str) -> Callable[[BuildContext], None]:
        def build(ctx: BuildContext) -> None:
            self.built.append(name)
            if "image/index.json" in ctx.component.outputs:
                write_image(ctx.out / "image", f"hcp/{name}:1", [Layer(name)], ImageConfig())
            for path in set(ctx.component.outputs) - {"image/index.json"}:
                (ctx.out / path).parent.mkdir(parents=True, exist_ok=True)
                (ctx.out / path).write_text("built here")

        return build

    def ensure(self, *names: str, downloads: bool = True) -> dict[str, Path]:
        progress = Progress(self.screen, live=False)
        return Engine(self.registry, self.store, progress, use_downloads=downloads).ensure(names)

    def said(self) -> str:
        self.screen.seek(0)
        return self.screen.read()


@pytest.fixture
def publishers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Publishers]:
    """All publishers at one address, which a mirror table names."""
    found = Publishers()
    server, thread = serve(found)
    host = found.url.removeprefix("http://")
    sites = [f"https://{name}={found.url}" for name in ("github.com", "api.github.com", "dl.k8s.io")]
    registries = [f"{name}=http://{host}" for name in ("docker.io", "quay.io", "registry.k8s.io", "ghcr.io")]
    monkeypatch.setenv("HCP_MIRRORS", ",".join([*sites, *registries]))
    reachability.forget()
    yield found
    server.shutdown()
    thread.join()
    server.server_close()
    reachability.forget()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    found = Shop(tmp_path)
    yield found
    found.screen.close()


def _offer_coredns(publishers: Publishers, content: bytes = ELF) -> bytes:
    data = archive({"coredns": content})
    publishers.files[COREDNS] = data
    publishers.files[f"{COREDNS}.sha256"] = f"{sha256(data)}  coredns_1.14.0_linux_amd64.tgz\n".encode()
    return data


def test_a_file_is_taken_with_the_publishers_sum(publishers: Publishers, shop: Shop) -> None:
    _offer_coredns(publishers)
    path = shop.ensure("coredns")["coredns"]
    assert (path / "bin/coredns").read_bytes() == ELF
    assert shop.built == []
    assert "official build downloaded" in shop.said()


def test_redirects_are_followed(publishers: Publishers, shop: Shop) -> None:
    data = _offer_coredns(publishers)
    publishers.redirects[COREDNS] = "/objects/1"
    publishers.files["/objects/1"] = data
    shop.ensure("coredns")
    assert shop.built == []


def test_what_is_not_there_is_built(publishers: Publishers, shop: Shop) -> None:
    shop.ensure("coredns")
    assert shop.built == ["coredns"]
    assert "coredns: not downloaded" in shop.said()
    assert "HTTP 404" in shop.said()


def test_a_wrong_sum_is_never_used(publishers: Publishers, shop: Shop) -> None:
    _offer_coredns(publishers)
    publishers.files[COREDNS] = archive({"coredns": b"something else"})
    path = shop.ensure("coredns")["coredns"]
    assert (path / "bin/coredns").read_text() == "built here"
    assert "has the wrong checksum" in shop.said()


@pytest.mark.parametrize("no_ranges", [False, True])
def test_a_connection_that_breaks_is_continued(publishers: Publishers, shop: Shop, no_ranges: bool) -> None:
    data = _offer_coredns(publishers, ELF + bytes(range(256)) * 4096)
    publishers.half.add(COREDNS)
    publishers.no_ranges = no_ranges
    shop.ensure("coredns")
    assert shop.built == []
    assert publishers.ranges == [f"bytes={len(data) // 2}-"]


def test_a_slow_link_only_takes_longer(publishers: Publishers, shop: Shop) -> None:
    data = _offer_coredns(publishers, ELF + bytes(range(256)) * 64)
    publishers.bytes_per_second = max(1, len(data)) * 2
    shop.ensure("coredns")
    assert shop.built == []


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again(publishers: Publishers, shop: Shop, status: int) -> None:
    _offer_coredns(publishers)
    publishers.refusals[COREDNS] = [status, status]
    shop.ensure("coredns")
    assert shop.built == []


def test_a_portal_that_wants_a_login_is_no_way_out(publishers: Publishers, shop: Shop) -> None:
    _offer_coredns(publishers)
    publishers.portal = True
    shop.ensure("coredns", "konnectivity")
    assert sorted(shop.built) == ["coredns", "konnectivity"]
    said = shop.said()
    assert said.count("No way out to 127.0.0.1") == 1
    assert "a web page answers instead of" in said


@pytest.mark.parametrize("path", [COREDNS, f"{COREDNS}.sha256"])
def test_a_portal_that_appears_after_the_first_look_is_told_apart_from_a_file(
    publishers: Publishers, shop: Shop, path: str
) -> None:
    _offer_coredns(publishers)
    publishers.pages.add(path)
    shop.ensure("coredns")
    assert shop.built == ["coredns"]
    assert f"{path} answers with a web page instead of a file" in shop.said()
    assert publishers.requests[path] <= 2, "once to look, once to fetch"


def test_a_portal_in_place_of_a_manifest_is_told_apart_from_a_broken_image(publishers: Publishers, shop: Shop) -> None:
    publishers.add_image("kubevirt/cdi-cloner", "v1.64.0", {"usr/bin/cdi-cloner": ELF})
    manifest = "/v2/kubevirt/cdi-cloner/manifests/v1.64.0"
    publishers.pages.add(manifest)
    shop.ensure("image-cdi-cloner")
    assert "image-cdi-cloner" in shop.built
    assert "not downloaded (A web page answers instead of the registry" in shop.said()
    assert publishers.requests[manifest] == 1, "it would answer the same again"


def test_without_a_way_out_it_is_asked_once_and_said_in_one_line(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, publishers: Publishers
) -> None:
    nowhere = "http://127.0.0.1:1"
    places = ("https://github.com", "https://dl.k8s.io", "registry.k8s.io")
    monkeypatch.setenv("HCP_MIRRORS", ",".join(f"{place}={nowhere}" for place in places))
    reachability.forget()
    shop.ensure("coredns", "containerd")
    shop.ensure("kubernetes-1.36")
    assert sorted(shop.built) == ["containerd", "coredns", "kubernetes-1.36"]
    assert "No way out to 127.0.0.1:1 (Connection refused)" in shop.said()
    assert "not downloaded" not in shop.said(), "nothing was even tried"


def test_building_can_be_asked_for(publishers: Publishers, shop: Shop) -> None:
    _offer_coredns(publishers)
    shop.ensure("coredns", downloads=False)
    assert shop.built == ["coredns"]
    assert not publishers.requests


def test_programs_are_taken_out_of_official_images(publishers: Publishers, shop: Shop) -> None:
    base, top = {"etc/os-release": b"x", "proxy-server": b"old"}, {"proxy-server": ELF + bytes(20 << 20)}
    publishers.add_image("kas-network-proxy/proxy-server", "v0.34.0", base, top)
    publishers.add_image("kas-network-proxy/proxy-agent", "v0.34.0", {"proxy-agent": ELF})
    path = shop.ensure("konnectivity")["konnectivity"]
    assert shop.built == []
    assert (path / "bin/proxy-server").read_bytes().startswith(ELF), "the upper layer counts"
    assert (path / "bin/proxy-agent").stat().st_mode & 0o111


def test_a_whole_official_image_needs_nothing_that_ours_is_made_of(publishers: Publishers, shop: Shop) -> None:
    digest = publishers.add_image("kubevirt/cdi-controller", "v1.64.0", {"usr/bin/cdi-controller": ELF})
    path = shop.ensure("image-cdi-controller")["image-cdi-controller"]
    assert shop.built == [], "neither CDI nor a root file system"
    layout = read_layout(path / "image")
    assert layout.digest == digest, "the digest is the publisher's own"
    (entry,) = json.loads((path / "image/index.json").read_text())["manifests"]
    assert entry["annotations"]["org.opencontainers.image.ref.name"].endswith("/hcp/cdi-controller:1.64.0")
    assert entry["annotations"]["hcp.official"] == f"quay.io/kubevirt/cdi-controller:v1.64.0@{digest}"


@pytest.mark.parametrize("trouble", ["429", "503", "half"])
def test_a_registry_with_a_bad_moment_is_asked_again(publishers: Publishers, shop: Shop, trouble: str) -> None:
    publishers.add_image("kubevirt/cdi-cloner", "v1.64.0", {"usr/bin/cdi-cloner": ELF + bytes(range(256)) * 512})
    blob = max((p for p in publishers.files if "/blobs/" in p), key=lambda p: len(publishers.files[p]))
    if trouble == "half":
        publishers.half.add(blob)
    else:
        publishers.refusals["/v2/kubevirt/cdi-cloner/manifests/v1.64.0"] = [int(trouble)]
        publishers.refusals[blob] = [int(trouble)] * 4
    shop.ensure("image-cdi-cloner")
    assert shop.built == []


def test_an_image_that_is_not_what_its_digest_says_is_never_used(publishers: Publishers, shop: Shop) -> None:
    publishers.add_image("kubevirt/cdi-cloner", "v1.64.0", {"usr/bin/cdi-cloner": ELF})
    blob = max((p for p in publishers.files if "/blobs/" in p), key=lambda p: len(publishers.files[p]))
    publishers.files[blob] = bytes(len(publishers.files[blob]))
    shop.ensure("image-cdi-cloner")
    assert "image-cdi-cloner" in shop.built
    assert "cdi" in shop.built, "built from the beginning"
    assert "image-cdi-cloner: not downloaded" in shop.said()


def test_an_image_its_registry_does_not_have_is_built(publishers: Publishers, shop: Shop) -> None:
    shop.ensure("image-cdi-cloner")
    assert "image-cdi-cloner" in shop.built
    assert "does not exist" in shop.said()


def test_an_operators_manifest_is_the_releases_with_our_names_for_images(publishers: Publishers, shop: Shop) -> None:
    container = {
        "name": "cdi-operator",
        "image": "quay.io/kubevirt/cdi-operator:v1.64.0",
        "env": [
            {"name": "CONTROLLER_IMAGE", "value": "quay.io/kubevirt/cdi-controller:v1.64.0"},
            {"name": "OPERATOR_VERSION", "value": "v1.64.0"},
        ],
    }
    documents = [
        {"kind": "Namespace", "metadata": {"name": "cdi"}},
        {"kind": "Deployment", "spec": {"template": {"spec": {"containers": [container]}}}},
    ]
    text = "\n---\n".join(json.dumps(document) for document in documents).encode()
    publishers.files[CDI] = text
    assets = [{"name": "other", "digest": None}, {"name": "cdi-operator.yaml", "digest": f"sha256:{sha256(text)}"}]
    publishers.files[CDI_SUMS] = json.dumps({"assets": assets}).encode()
    path = shop.ensure("manifest-cdi")["manifest-cdi"]
    assert shop.built == []
    manifest = (path / "manifests/op.yaml").read_text()
    assert "image: hcp-image:cdi-operator" in manifest
    assert "value: hcp-image:cdi-controller" in manifest
    assert "quay.io" not in manifest


def test_only_what_cannot_be_had_is_built_and_why_is_said(publishers: Publishers, shop: Shop) -> None:
    known = default_registry()
    names = [known.get(name) for name in known.names()]
    shop.registry = Registry(replace(component, build=shop._builder(component.name)) for component in names)
    _offer_coredns(publishers)
    shop.ensure("coredns", "ignition")
    assert shop.built == ["ignition"]
    assert "To be built: ignition; its project publishes no binary of it" in shop.said()


CORE, PROVIDER = "cluster-api/cluster-api-controller", "capk/capk-manager"
MANAGERS = {"cluster-api": (CORE, "v1.10.10"), "cluster-api-kubevirt": (PROVIDER, "v0.1.10")}


@pytest.fixture
def managers(publishers: Publishers, monkeypatch: pytest.MonkeyPatch) -> Publishers:
    """Both projects' images and the archives of their modules; the stand-in before them is not compiled here."""
    sums: dict[str, str] = {}
    for component, (repository, tag) in MANAGERS.items():
        entry = component_table(component)
        publishers.add_image(repository, tag, {"etc/os-release": b"x"}, {"manager": ELF + component.encode()})
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            for output in entry["outputs"]:
                crd = {"kind": "CustomResourceDefinition", "metadata": {"name": component}}
                folder = f"{entry['module']}@{tag}/config/crd/bases"
                archive.writestr(f"{folder}/{Path(output).name}", json.dumps(crd))
        sums[entry["module"]] = module_hash(zipfile.ZipFile(content))
        publishers.files[urlsplit(archive_url(entry["module"], tag)).path] = content.getvalue()
    places = os.environ["HCP_MIRRORS"]
    monkeypatch.setenv("HCP_MIRRORS", f"{places},{proxy()}={publishers.url}{urlsplit(proxy()).path}")
    monkeypatch.setattr(gozip, "_pinned", lambda _, item: sums[item.module])

    def build(_: Go, packages: dict[str, str], folder: Path, **__: object) -> None:
        for command, package in packages.items():
            (folder / command).write_text(package)

    monkeypatch.setattr(Go, "build", build)
    return publishers


@pytest.mark.parametrize("component", MANAGERS)
def test_a_manager_is_the_official_one_with_ours_before_it(managers: Publishers, shop: Shop, component: str) -> None:
    path = shop.ensure(component)[component]
    assert shop.built == []
    [command] = component_table(component)["commands"]
    assert (path / f"bin/{command}.official").read_bytes() == ELF + component.encode()
    assert (path / f"bin/{command}").read_text() == "hosted-secrets"
    for output in component_table(component)["outputs"]:
        crd = yaml.safe_load((path / output).read_text())
        assert crd["metadata"]["labels"] == component_table(component)["crd_labels"]


@pytest.mark.parametrize("trouble", ["no image", "wrong layer", "no manager", "wrong module", "no module"])
def test_a_manager_that_is_not_whole_is_built(managers: Publishers, shop: Shop, trouble: str) -> None:
    layer = max((p for p in managers.files if CORE in p and "/blobs/" in p), key=lambda p: len(managers.files[p]))
    module = next(path for path in managers.files if path.endswith("/sigs.k8s.io/cluster-api/@v/v1.10.10.zip"))
    if trouble == "no image":
        del managers.files[f"/v2/{CORE}/manifests/v1.10.10"]
    elif trouble == "wrong layer":
        managers.files[layer] = bytes(len(managers.files[layer]))
    elif trouble == "no manager":
        managers.add_image(CORE, "v1.10.10", {"other": ELF})
    elif trouble == "wrong module":
        managers.files[module] = managers.files[urlsplit(_module("cluster-api-kubevirt")).path]
    else:
        del managers.files[module]
    path = shop.ensure("cluster-api")["cluster-api"]
    assert shop.built == ["cluster-api"]
    assert "cluster-api: not downloaded" in shop.said()
    assert not list(path.glob("bin/*.official")), "nothing of the official one is left"


def _module(component: str) -> str:
    return archive_url(component_table(component)["module"], MANAGERS[component][1])


def test_what_a_folder_holds_is_not_downloaded(publishers: Publishers, shop: Shop, tmp_path: Path) -> None:
    _offer_coredns(publishers)
    (tmp_path / "mine").mkdir()
    shutil.copyfile("/bin/true", tmp_path / "mine/coredns")
    progress = Progress(shop.screen, live=False)
    engine = Engine(shop.registry, shop.store, progress, from_dir=tmp_path / "mine", use_downloads=True)
    path = engine.ensure(["coredns"])["coredns"]
    assert (path / "bin/coredns").read_bytes() == Path("/bin/true").read_bytes()
    assert COREDNS not in publishers.requests
