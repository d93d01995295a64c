"""Mirroring image sets with a real registry on each side: registry to registry, and over a disk."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.support.image_sets import Published, Site, catalog, everything, tags_on_disk
from tests.support.mirroring import published, site, source, storage, target
from tests.support.registry import Registry, registry_binary, start

from hcp import graph, release
from hcp.oci import RegistryClient
from hcp.oci.mirrors import from_objects

__all__ = ["published", "site", "source", "storage", "target"]


async def test_a_release_can_be_read_through_what_mirroring_wrote(
    site: Site, target: Registry, published: Published
) -> None:
    site.configure(everything(published))
    site.ok("--config", "isc.yaml", "--workspace", "file://mirror-file", f"docker://{target.host}")
    resources = "mirror-file/working-dir/cluster-resources"
    mirrors = from_objects([*site.documents(f"{resources}/idms-oc-mirror.yaml")])
    async with RegistryClient(target.auths, target.ca_pem, mirrors) as client:
        found = await release.read(client, published.releases["1.36.3"])
        assert found.version == "1.36.3"
        for image in (*found.components.values(), str(found.boot_disk)):
            manifest = await client.manifest(image)
            assert manifest.found_at.registry == target.host
            for layer in manifest.layers:
                with await client.open_blob(image, layer["digest"]) as file:
                    assert len(file.read()) == layer["size"]
        (service,) = site.documents(f"{resources}/updateService.yaml")
        files = await client.read_files(service["spec"]["graphDataImage"], [graph.GRAPH_FILE])
        assert graph.parse(files[graph.GRAPH_FILE]).versions == ["1.36.1", "1.36.2", "1.36.3"]
        assert await client.digest(f"{service['spec']['releases']}:1.36.3-x86_64") == found.digest
    tags = {text.rpartition(":")[0] for text in tags_on_disk(site.folder.parent / "target/data")}
    assert tags == {
        "openshift/release",
        "openshift/release-images",
        "openshift/graph-image",
        "tools/tool",
        "tools/many",
    }


async def test_images_for_many_platforms_keep_all_of_them(site: Site, target: Registry, published: Published) -> None:
    site.configure({"additionalImages": [{"name": published.name("tools/many:latest")}]})
    site.ok("-c", "isc.yaml", "--workspace", "file://w", f"docker://{target.host}/team")
    async with RegistryClient(target.auths, target.ca_pem, platform=("linux", "arm64")) as client:
        assert (await client.config(f"{target.host}/team/tools/many:latest"))["config"]["Entrypoint"] == ["many-arm64"]
    (tags,) = site.documents("w/working-dir/cluster-resources/itms-oc-mirror.yaml")
    (entry,) = tags["spec"]["imageTagMirrors"]
    assert entry == {"source": published.name("tools/many"), "mirrors": [f"{target.host}/team/tools/many"]}


def test_a_second_run_sends_nothing_and_leaves_the_same_files(
    site: Site, target: Registry, published: Published
) -> None:
    site.configure(everything(published))
    words = ("-c", "isc.yaml", "--workspace", "file://w", f"docker://{target.host}")
    site.ok(*words)
    before = tags_on_disk(site.folder.parent / "target/data")
    files = {path: path.read_text() for path in (site.folder / "w/working-dir/cluster-resources").iterdir()}
    done = site.ok(*words)
    assert "0 copied, 0 MiB sent" in done.err
    assert tags_on_disk(site.folder.parent / "target/data") == before
    assert {path: path.read_text() for path in (site.folder / "w/working-dir/cluster-resources").iterdir()} == files
    (results,) = (site.folder / "oc-mirror-workspace").iterdir()
    policies = site.documents(f"oc-mirror-workspace/{results.name}/imageContentSourcePolicy.yaml")
    assert {one["kind"] for one in policies} == {"ImageContentSourcePolicy"}


def test_over_a_disk_the_target_gets_the_same(
    site: Site, source: Registry, target: Registry, published: Published, tmp_path: Path
) -> None:
    site.configure(everything(published, minVersion="1.36.1", maxVersion="1.36.3", shortestPath=True))
    site.ok("-c", "isc.yaml", "file://disk")
    assert [path.name for path in (site.folder / "disk").glob("*.tar")] == ["mirror_000001.tar"]
    # The other side knows neither the sources nor the update graph.
    other = Site(tmp_path / "other", target)
    (other.folder / "isc.yaml").write_text((site.folder / "isc.yaml").read_text())
    (site.folder / "disk").rename(other.folder / "disk")
    other.ok("-c", "isc.yaml", "--from", "file://disk", f"docker://{target.host}")
    over_disk = tags_on_disk(tmp_path / "target/data")
    assert "openshift/release-images:1.36.1-x86_64" in over_disk
    assert "openshift/release-images:1.36.2-x86_64" not in over_disk
    (tmp_path / "direct").mkdir()
    direct, process = start(tmp_path / "direct", passwords=True)
    try:
        third = Site(tmp_path / "third", source, direct)
        third.env = {**site.env, "HOME": str(third.folder)}
        (third.folder / "isc.yaml").write_text((site.folder / "isc.yaml").read_text())
        third.ok("-c", "isc.yaml", "--workspace", "file://w", f"docker://{direct.host}")
        assert tags_on_disk(tmp_path / "direct/data") == over_disk
        theirs = other.folder / "disk/working-dir/cluster-resources"
        mine = third.folder / "w/working-dir/cluster-resources"
        names = sorted(path.name for path in mine.iterdir())
        assert sorted(path.name for path in theirs.iterdir()) == names
        for name in names:
            assert (theirs / name).read_text() == (mine / name).read_text().replace(direct.host, target.host)
    finally:
        process.kill()
        process.wait()


INSIDE = """
ip link set lo up
can() { "$PYTHON" -c 'import socket, sys; socket.create_connection(("localhost", int(sys.argv[1])))' "$1" 2>&-; }
if can "$SOURCE"; then echo "the source can be reached" >&2; exit 99; fi
"$REGISTRY" serve "$CONFIG" 2>/dev/null &
registry=$!
until can "$TARGET"; do kill -0 $registry; done
code=0
"$@" || code=$?
kill $registry
exit $code
"""


def test_over_a_disk_into_a_network_that_reaches_no_source(
    site: Site, source: Registry, published: Published, tmp_path: Path
) -> None:
    namespace = ["unshare", "--map-root-user", "--net"]
    if subprocess.run([*namespace, "ip", "link"], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody make a network of their own")
    site.configure(everything(published))
    site.ok("-c", "isc.yaml", "file://disk")
    # Its files are written by starting it once; the one that counts runs inside.
    (tmp_path / "inside").mkdir()
    inside, process = start(tmp_path / "inside", passwords=True)
    process.kill()
    process.wait()
    other = Site(tmp_path / "other", inside)
    (other.folder / "isc.yaml").write_text((site.folder / "isc.yaml").read_text())
    (site.folder / "disk").rename(other.folder / "disk")
    other.env |= {
        "PYTHON": sys.executable,
        "SOURCE": str(source.port),
        "TARGET": str(inside.port),
        "REGISTRY": str(registry_binary()),
        "CONFIG": str(tmp_path / "inside/config.yml"),
    }
    words = other.words("-c", "isc.yaml", "--from", "file://disk", f"docker://{inside.host}")
    done = subprocess.run(
        [*namespace, "sh", "-ec", INSIDE, "-", *words],
        cwd=other.folder,
        env=other.env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    have = tags_on_disk(tmp_path / "inside/data")
    assert {"openshift/release-images:1.36.3-x86_64", "openshift/graph-image:latest", "tools/tool:v1"} <= set(have)


def test_the_next_archive_has_only_what_is_new(site: Site, target: Registry, published: Published) -> None:
    site.configure(everything(published, maxVersion="1.36.1"))
    site.ok("-c", "isc.yaml", "file://disk")
    site.configure(everything(published, maxVersion="1.36.2"))
    site.ok("-c", "isc.yaml", "file://disk")
    first, second = sorted((site.folder / "disk").glob("mirror_*.tar"))
    assert second.stat().st_size < first.stat().st_size / 10
    done = site.ok("-c", "isc.yaml", "file://disk")
    assert "Nothing is new" in done.err
    assert sorted((site.folder / "disk").glob("mirror_*.tar")) == [first, second]
    # Only the second one is carried over: the registry lacks what the first one had, and that is said.
    first.rename(site.folder / "kept.tar")
    lacking = site.run("-c", "isc.yaml", "--from", "file://disk", f"docker://{target.host}")
    assert lacking.code == 2 | 8, lacking.err
    assert "neither in these archives nor in the registry" in lacking.err
    (site.folder / "kept.tar").rename(first)
    site.ok("-c", "isc.yaml", "--from", "file://disk", f"docker://{target.host}")
    done = site.ok("-c", "isc.yaml", "file://disk", "--since", "2020-01-01")
    third = site.folder / "disk/mirror_000003.tar"
    assert third.stat().st_size > second.stat().st_size * 5, done.err


def test_a_dry_run_only_says_what_is_missing(site: Site, target: Registry, published: Published) -> None:
    site.configure(everything(published))
    words = ("-c", "isc.yaml", "--workspace", "file://w", f"docker://{target.host}")
    site.ok(*words, "--dry-run")
    assert tags_on_disk(site.folder.parent / "target/data") == {}
    listed = (site.folder / "w/working-dir/dry-run/mapping.txt").read_text().splitlines()
    assert (site.folder / "w/working-dir/dry-run/missing.txt").read_text().splitlines() == listed
    assert f"docker://{published.name('tools/tool:v1')}=docker://{target.host}/tools/tool:v1" in listed
    site.ok(*words)
    site.ok(*words, "--dry-run")
    assert (site.folder / "w/working-dir/dry-run/missing.txt").read_text() == ""


async def test_an_update_server_is_asked_by_channel_and_architecture(
    site: Site, target: Registry, published: Published
) -> None:
    asked = []

    async def serve(request: web.Request) -> web.Response:
        asked.append((request.query["channel"], request.query["arch"]))
        return web.json_response(published.graph() if request.query["arch"] == "amd64" else {"nodes": [], "edges": []})

    platform = {"channels": [{"name": "stable-1.36"}], "architectures": ["amd64", "arm64"]}
    site.configure({"platform": platform})
    app = web.Application()
    app.router.add_get("/graph", serve)
    async with TestServer(app, host="localhost") as server:
        site.env["UPDATE_URL_OVERRIDE"] = f"http://localhost:{server.port}/graph"
        words = ("-c", "isc.yaml", "--workspace", "file://w", f"docker://{target.host}", "--parallel-images", "1")
        done = await asyncio.to_thread(site.run, *words)
    assert done.code == 2, done.err
    assert "the update graph has no channel stable-1.36" in done.err
    assert sorted(asked) == [("stable-1.36", "amd64"), ("stable-1.36", "arm64")]
    assert "openshift/release-images:1.36.3-x86_64" in tags_on_disk(site.folder.parent / "target/data")


async def test_a_filtered_catalog_names_only_what_was_mirrored(
    site: Site, target: Registry, published: Published
) -> None:
    site.configure(catalog(published, packages=[{"name": "metallb"}]))
    words = ("-c", "isc.yaml", "--workspace", "file://w", f"docker://{target.host}")
    site.ok(*words)
    resources = "w/working-dir/cluster-resources"
    (source,) = site.documents(f"{resources}/cs-example-operator-index-v1-36.yaml")
    assert (source["kind"], source["metadata"]["namespace"]) == ("CatalogSource", "openshift-marketplace")
    (cluster,) = site.documents(f"{resources}/cc-example-operator-index-v1-36.yaml")
    assert cluster["spec"]["source"]["image"]["ref"] == source["spec"]["image"]
    mirrors = from_objects(site.documents(f"{resources}/idms-oc-mirror.yaml"))
    async with RegistryClient(target.auths, target.ca_pem, mirrors) as client:
        files = await client.read_files(
            source["spec"]["image"],
            ["configs/metallb/catalog.json", "configs/lvms/catalog.json", "tmp/cache/digest", "data/opm"],
        )
        assert set(files) == {"configs/metallb/catalog.json", "data/opm"}
        documents = [json.loads(line) for line in files["configs/metallb/catalog.json"].splitlines()]
        assert [one["name"] for one in documents if one["schema"] == "olm.bundle"] == ["metallb.v2.0.0"]
        for name in ("metallb-bundle-2", "metallb-2"):
            assert (await client.manifest(published.named[name])).found_at.registry == target.host
        config = (await client.config(source["spec"]["image"]))["config"]
        assert config["Cmd"] == ["serve", "/configs", "--cache-dir=/tmp/cache", "--cache-enforce-integrity=false"]
    assert not any("lvms" in tag for tag in tags_on_disk(site.folder.parent / "target/data"))
    before = tags_on_disk(site.folder.parent / "target/data")
    assert "0 copied" in site.ok(*words).err
    assert tags_on_disk(site.folder.parent / "target/data") == before
    (results,) = (site.folder / "oc-mirror-workspace").iterdir()
    assert (results / "catalogSource-cs-example-operator-index.yaml").is_file()


async def test_a_whole_catalog_keeps_its_digest(site: Site, target: Registry, published: Published) -> None:
    site.configure(catalog(published, full=True))
    site.ok("-c", "isc.yaml", "file://disk")
    site.ok("-c", "isc.yaml", "--from", "file://disk", f"docker://{target.host}")
    tags = tags_on_disk(site.folder.parent / "target/data")
    async with RegistryClient(published.registry.auths, published.registry.ca_pem) as client:
        digest = await client.digest(published.name("operators/example-operator-index:v1.36"))
    assert tags["operators/example-operator-index:v1.36"] == digest
    assert {text.partition("@")[2] for text in published.named.values()} < set(tags.values())


def test_a_filtered_catalog_goes_over_a_disk(site: Site, target: Registry, published: Published) -> None:
    how = {"packages": [{"name": "lvms", "channels": [{"name": "stable", "minVersion": "1.0.0"}]}]}
    site.configure(catalog(published, targetCatalog="mirrored/index", targetTag="v2", **how))
    site.ok("-c", "isc.yaml", "file://disk")
    site.ok("-c", "isc.yaml", "--from", "file://disk", f"docker://{target.host}")
    (source,) = site.documents("disk/working-dir/cluster-resources/cs-index-v2.yaml")
    assert source["spec"]["image"] == f"{target.host}/mirrored/index:v2"
    assert "mirrored/index:v2" in tags_on_disk(site.folder.parent / "target/data")


async def test_charts_bring_their_images_and_are_kept(site: Site, target: Registry, published: Published) -> None:
    files = {
        "Chart.yaml": b"name: shop\nversion: 1.2.3\nappVersion: v1\n",
        "values.yaml": f"image: {{repository: {published.name('tools/tool')}}}\n".encode(),
    }
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for path, content in files.items():
            info = tarfile.TarInfo(f"shop/{path}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    index = b"entries: {shop: [{name: shop, version: 1.2.3, urls: [shop-1.2.3.tgz]}]}"

    async def serve(request: web.Request) -> web.Response:
        return web.Response(body=index if request.path.endswith("index.yaml") else data.getvalue())

    (site.folder / "own").mkdir()
    (site.folder / "own/Chart.yaml").write_text("name: own\n")
    (site.folder / "own/values.yaml").write_text(f"image: {published.name('tools/many:latest')}\n")
    app = web.Application()
    app.router.add_get("/charts/{name}", serve)
    async with TestServer(app, host="localhost") as server:
        listed = [{"name": "shop", "version": "1.2.3"}, {"name": "absent"}]
        repository = {"name": "r", "url": f"http://localhost:{server.port}/charts", "charts": listed}
        site.configure({"helm": {"repositories": [repository], "local": [{"name": "own", "path": "own"}]}})
        done = await asyncio.to_thread(site.run, "-c", "isc.yaml", "--workspace", "file://w", f"docker://{target.host}")
    assert done.code == 16, done.err
    assert "has no chart absent" in done.err
    assert {"tools/tool:v1", "tools/many:latest"} == set(tags_on_disk(site.folder.parent / "target/data"))
    assert (site.folder / "w/working-dir/helm/charts/shop-1.2.3.tgz").read_bytes() == data.getvalue()
