"""Mirroring when things go wrong: each is said, the rest is mirrored, and the next run does what is missing."""

from __future__ import annotations

import asyncio
import fcntl
import json
import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support import image_sets
from tests.support.image_sets import Published, Site, everything, tags_on_disk
from tests.support.mirroring import published, site, source, storage, target
from tests.support.registry import Registry, start
from tests.support.registry_front import front

__all__ = ["published", "site", "source", "storage", "target"]


def words(target: Registry, path: str = "") -> tuple[str, ...]:
    return ("-c", "isc.yaml", "--workspace", "file://w", f"docker://{target.host}{path}")


def test_what_cannot_be_had_is_said_and_the_rest_is_mirrored(
    site: Site, target: Registry, published: Published
) -> None:
    index = published.name("operators/example-operator-index:v1.36")
    late = {"name": "metallb", "channels": [{"name": "stable", "minVersion": "9.0.0"}]}
    wanted: dict[str, Any] = {
        "platform": {
            "channels": [
                {"name": "stable-1.36", "minVersion": "1.36.3", "maxVersion": "1.36.9"},
                {"name": "stable-9.9"},
                {"name": "stable-1.36", "maxVersion": "1.36.1"},
            ],
        },
        "operators": [
            {"catalog": index, "packages": [{"name": "metalb"}, {"name": "lvms"}, late]},
            {"catalog": published.name("operators/old-index:v1")},
            {"catalog": published.name("operators/no-index:v1")},
        ],
        "additionalImages": [
            {"name": published.name("tools/tool:v1")},
            {"name": published.name("tools/gone:v7")},
            {"name": published.name("tools/many@sha256:" + "0" * 64)},
        ],
    }
    site.configure(wanted)
    done = site.run(*words(target))
    assert done.code == 2 | 4 | 8, done.err
    for sentence in (
        "Error: the channel stable-1.36 has no version 1.36.9",
        "Error: the update graph has no channel stable-9.9",
        f"Error: the catalog {index} has no package metalb",
        "Hint: it has metallb, among others",
        "Error: the channel stable of the package metallb has no version",
        f"Error: the catalog {published.name('operators/old-index:v1')} is not file-based: it holds a database",
        f"Error: The image {published.name('operators/no-index:v1')} does not exist in the registry",
        f"Error: The image {published.name('tools/gone:v7')} does not exist in the registry",
        "Error: The image " + published.name("tools/many@sha256:" + "0" * 64) + " does not exist in the registry",
        "8 problems, the rest was done",
    ):
        assert sentence in done.err, (sentence, done.err)
    have = tags_on_disk(site.folder.parent / "target/data")
    assert {"tools/tool:v1", "openshift/release-images:1.36.1-x86_64", "operators/example-operator-index:v1.36"} <= set(
        have
    )
    (errors,) = (site.folder / "w/working-dir/logs").glob("mirroring_errors_*.txt")
    assert len(errors.read_text().splitlines()) == 8
    # Nothing that is written names what did not arrive.
    policies = (site.folder / "w/working-dir/cluster-resources/idms-oc-mirror.yaml").read_text()
    assert "tools/many" not in policies
    # With the names corrected only what is missing is sent.
    wanted["platform"]["channels"] = wanted["platform"]["channels"][2:]
    wanted["operators"] = [{"catalog": index, "packages": [{"name": "lvms"}]}]
    wanted["additionalImages"] = [*wanted["additionalImages"][:1], {"name": published.name("tools/many")}]
    site.configure(wanted)
    again = site.ok(*words(target))
    assert ", 1 copied, " in again.err


async def test_a_release_without_all_its_parts_is_not_mirrored(
    site: Site, source: Registry, target: Registry, published: Published, tmp_path: Path
) -> None:
    broken = await image_sets.publish_broken_release(source, tmp_path / "broken")
    site.configure({"platform": {"releases": [broken, published.releases["1.36.1"]]}})
    done = site.run(*words(target))
    assert done.code == 2, done.err
    assert f"Error: {broken} is not mirrored, since not all images it names are there" in done.err
    have = tags_on_disk(site.folder.parent / "target/data")
    releases = [tag for tag in have if tag.startswith("openshift/release-images:")]
    assert releases == ["openshift/release-images:1.36.1-x86_64"]


def test_blocked_images_are_left_out(site: Site, target: Registry, published: Published) -> None:
    blocked = [{"name": f"{published.name('team/hcp/etcd')}.*"}, {"name": published.name("tools/tool")}]
    site.configure(everything(published, maxVersion="1.36.2") | {"blockedImages": blocked})
    site.ok(*words(target))
    have = tags_on_disk(site.folder.parent / "target/data")
    assert not any("etcd" in tag or "tools/tool" in tag for tag in have)
    assert "openshift/release-images:1.36.2-x86_64" in have


def test_signatures_are_carried_along_or_their_lack_is_said(site: Site, target: Registry, published: Published) -> None:
    site.env["OCP_SIGNATURE_URL"] = str(site.folder / "signatures")
    site.configure(everything(published, maxVersion="1.36.1"))
    done = site.run(*words(target))
    assert done.code == 2
    assert "the signature of" in done.err
    assert "--ignore-release-signature" in done.err
    digest = published.releases["1.36.1"].rpartition("@")[2]
    folder = site.folder / "signatures" / digest.replace(":", "=")
    folder.mkdir(parents=True)
    (folder / "signature-1").write_bytes(b"signed")
    site.ok(*words(target))
    (found,) = site.documents("w/working-dir/cluster-resources/signature-configmap.yaml")
    assert found["binaryData"] == {f"{digest.replace(':', '-')}-1": "c2lnbmVk"}


def test_the_target_s_refusals_end_it_at_once(
    site: Site, source: Registry, target: Registry, published: Published, tmp_path: Path
) -> None:
    site.configure({"additionalImages": [{"name": published.name("tools/tool:v1")}]})
    (site.folder / "auth.json").write_text(json.dumps(source.auths))
    done = site.run(*words(target))
    assert done.code == 1
    assert f"Error: the registry {target.host} wants a login to push tools/tool" in done.err
    (site.folder / "ca.pem").write_bytes(source.ca_pem)
    done = site.run(*words(target))
    assert done.code == 1
    assert "its certificate is not trusted" in done.err
    assert "--ca" in done.err
    mended = Site(site.folder, source, target)
    assert ", 1 copied, " in mended.ok(*words(target)).err
    (tmp_path / "closed").mkdir()
    made, process = start(tmp_path / "closed", passwords=True, read_only=True)
    try:
        other = Site(tmp_path / "other", source, made)
        other.configure({"additionalImages": [{"name": published.name("tools/tool:v1")}]})
        done = other.run(*words(made))
        assert done.code == 1
        assert f"Error: the registry {made.host} takes no uploads" in done.err
    finally:
        process.kill()
        process.wait()


async def test_a_source_without_login_or_trust_is_one_problem_of_many(
    site: Site, source: Registry, target: Registry, published: Published, tmp_path: Path
) -> None:
    (tmp_path / "second").mkdir()
    second, process = start(tmp_path / "second", passwords=True)
    try:
        async with image_sets.pusher(second) as to:
            await to.push(image_sets.image(tmp_path / "other-tool", "other-tool"), "tools/other", tag="v1")
        logins = {target.host: target.login, second.host: second.login}
        (site.folder / "auth.json").write_text(json.dumps({"auths": logins}))
        (site.folder / "ca.pem").write_bytes(source.ca_pem + target.ca_pem + second.ca_pem)
        names = (published.name("tools/tool:v1"), f"{second.host}/tools/other:v1")
        site.configure({"additionalImages": [{"name": name} for name in names]})
        done = await asyncio.to_thread(site.run, *words(target))
        assert done.code == 8
        assert "wants credentials for the image" in done.err
        assert "--authfile" in done.err
        data = site.folder.parent / "target/data"
        assert set(tags_on_disk(data)) == {"tools/other:v1"}

        logins[source.host] = source.login
        (site.folder / "auth.json").write_text(json.dumps({"auths": logins}))
        (site.folder / "ca.pem").write_bytes(target.ca_pem + second.ca_pem)
        done = await asyncio.to_thread(site.run, *words(target))
        assert done.code == 8
        assert f"Error: The certificate of the registry {source.host} is not trusted" in done.err
        assert "with --ca" in done.err

        (site.folder / "ca.pem").write_bytes(source.ca_pem + target.ca_pem + second.ca_pem)
        again = await asyncio.to_thread(site.ok, *words(target))
        assert "1 were there, 1 copied" in again.err
        assert set(tags_on_disk(data)) == {"tools/other:v1", "tools/tool:v1"}
    finally:
        process.kill()
        process.wait()


def test_two_runs_in_one_workspace_are_refused(site: Site, target: Registry, published: Published) -> None:
    site.configure({"additionalImages": [{"name": published.name("tools/tool:v1")}]})
    (site.folder / "w/working-dir").mkdir(parents=True)
    with (site.folder / "w/working-dir/.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711")
        lock.flush()
        done = site.run(*words(target))
    assert done.code == 1
    assert f"Error: another run works in {site.folder}/w: process 4711" in done.err
    site.ok(*words(target))


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({"apiVersion": "mirror.openshift.io/v1alpha2"}, 'has the apiVersion "mirror.openshift.io/v1alpha2"'),
        ({"mirror": {}}, "asks for nothing"),
        ({"mirror": {"operators": [{"catalogs": "x"}]}}, "did you mean catalog?"),
    ],
)
def test_a_wrong_configuration_is_refused_before_anything_is_asked(
    site: Site, target: Registry, document: dict[str, Any], sentence: str
) -> None:
    site.configure(**{"mirror": {"additionalImages": [{"name": "example.com/a/b:c"}]}, **document})
    done = site.run(*words(target))
    assert done.code == 1
    assert sentence in done.err
    assert not (site.folder / "w").exists()


async def test_a_busy_source_and_half_bodies_are_survived(
    site: Site, target: Registry, published: Published, source: Registry, tmp_path: Path
) -> None:
    (tmp_path / "plain").mkdir()
    plain, process = start(tmp_path / "plain", passwords=False, tls=False)
    try:
        shutil.copytree(published.data, tmp_path / "plain/data", dirs_exist_ok=True)
        async with front(f"http://{plain.host}", busy=2, halves=4) as middle:
            site.configure({"additionalImages": [{"name": f"{middle.host}/tools/tool:v1"}]})
            how = ("--src-tls-verify=false", "--retry-times", "5")
            await asyncio.to_thread(site.ok, *words(target), *how)
            assert (middle.busy, middle.halves) == (0, 4 - 2)
            middle.halves = 4
            await asyncio.to_thread(site.ok, "-c", "isc.yaml", "file://disk", *how)
            assert middle.halves == 4 - 2
            # One that never stops being busy has a clear end.
            middle.busy = 10_000
            site.configure({"additionalImages": [{"name": f"{middle.host}/tools/many:latest"}]})
            done = await asyncio.to_thread(site.run, *words(target), *how)
            assert done.code == 8
            assert re.search("it answers with HTTP (429|503)", done.err), done.err
    finally:
        process.kill()
        process.wait()


def test_killed_at_any_point_the_next_run_ends_with_the_same(
    site: Site, target: Registry, published: Published
) -> None:
    wanted = everything(published, full=True) | {
        "operators": [{"catalog": published.name("operators/example-operator-index:v1.36")}]
    }
    site.configure(wanted)
    data = site.folder.parent / "target/data"
    total = len(site.ok(*words(target, "/whole")).err.splitlines())
    whole = _below(tags_on_disk(data), "whole")
    assert len(whole) > 12
    for number, line in enumerate(random.Random(17).sample(range(1, total - 3), 10)):
        path = f"/kill{number}"
        process = site.start(*words(target, path))
        assert process.stderr is not None
        for _ in range(line):
            process.stderr.readline()
        process.kill()
        process.communicate()
        site.ok(*words(target, path))
        assert _below(tags_on_disk(data), path[1:]) == whole


def test_killed_on_the_way_to_disk_the_archive_is_whole(site: Site, target: Registry, published: Published) -> None:
    site.configure(everything(published, full=True))
    site.ok(*words(target, "/whole"))
    for line in (2, 7, 14):
        process = site.start("-c", "isc.yaml", "file://disk")
        assert process.stderr is not None
        for _ in range(line):
            process.stderr.readline()
        process.kill()
        process.communicate()
    site.ok("-c", "isc.yaml", "file://disk")
    site.ok("-c", "isc.yaml", "--from", "file://disk", f"docker://{target.host}/disk")
    have = tags_on_disk(site.folder.parent / "target/data")
    assert _below(have, "disk") == _below(have, "whole")


def _below(tags: dict[str, str], path: str) -> dict[str, str]:
    return {tag.removeprefix(f"{path}/"): digest for tag, digest in tags.items() if tag.startswith(f"{path}/")}


def test_a_full_disk_is_said_and_the_next_run_goes_on(site: Site, target: Registry, published: Published) -> None:
    (site.folder / "small").mkdir()
    script = 'mount -t tmpfs -o size=1m none small && exec "$@"'
    mount = ["unshare", "--map-root-user", "--mount", "sh", "-ec", script, "-"]
    if subprocess.run([*mount, "true"], cwd=site.folder, capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody mount in a namespace of their own")
    site.configure({"additionalImages": [{"name": published.name("tools/tool:v1")}]})
    arguments = site.words("-c", "isc.yaml", "file://disk", "--cache-dir", "small")
    done = subprocess.run(
        [*mount, *arguments], cwd=site.folder, env=site.env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "Error: the disk of" in done.stderr
    assert "is full" in done.stderr
    assert not list((site.folder / "disk").glob("*.tar"))
    site.ok("-c", "isc.yaml", "file://disk")
    assert [path.name for path in (site.folder / "disk").glob("*.tar")] == ["mirror_000001.tar"]


def test_a_damaged_archive_is_noticed(site: Site, target: Registry, published: Published) -> None:
    site.configure({"additionalImages": [{"name": published.name("tools/tool:v1")}]})
    site.ok("-c", "isc.yaml", "file://disk")
    archive = site.folder / "disk/mirror_000001.tar"
    whole = archive.read_bytes()
    arguments = ("-c", "isc.yaml", "--from", "file://disk", f"docker://{target.host}")
    archive.write_bytes(whole[: len(whole) // 2])
    done = site.run(*arguments)
    assert done.code == 1
    assert "cannot be read as an archive" in done.err
    at = len(whole) - (1 << 20)
    archive.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    done = site.run(*arguments)
    assert done.code == 8, done.err
    assert f"{archive} is damaged" in done.err
    assert tags_on_disk(site.folder.parent / "target/data") == {}
    archive.write_bytes(whole)
    site.ok(*arguments)
