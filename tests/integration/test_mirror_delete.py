"""Taking mirrored images out of a registry again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.image_sets import Published, Site, everything, tags_on_disk
from tests.support.mirroring import published, site, source, storage
from tests.support.registry import Registry, start

__all__ = ["published", "site", "source", "storage"]


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Registry]:
    """One that lets things be deleted."""
    (tmp_path / "target").mkdir()
    made, process = start(tmp_path / "target", passwords=True, deletes=True)
    yield made
    process.kill()
    process.wait()


def test_one_version_goes_and_the_others_stay_whole(site: Site, target: Registry, published: Published) -> None:
    site.configure(everything(published, full=True))
    where = ("--workspace", "file://w", f"docker://{target.host}")
    site.ok("-c", "isc.yaml", *where)
    before = tags_on_disk(site.folder.parent / "target/data")
    document = {
        "apiVersion": "mirror.openshift.io/v2alpha1",
        "kind": "DeleteImageSetConfiguration",
        "delete": {
            "platform": {"channels": [{"name": "stable-1.36", "minVersion": "1.36.1", "maxVersion": "1.36.1"}]},
            "additionalImages": [{"name": published.name("tools/tool:v1")}],
        },
    }
    (site.folder / "delete.yaml").write_text(yaml.safe_dump(document))
    site.ok("delete", "-c", "delete.yaml", "--generate", "--delete-id", "old", *where)
    assert tags_on_disk(site.folder.parent / "target/data") == before
    path = "w/working-dir/delete/delete-images-old.yaml"
    (listed,) = site.documents(path)
    names = {one["imageReference"].removeprefix(f"docker://{target.host}/") for one in listed["items"]}
    assert "openshift/release-images:1.36.1-x86_64" in names
    assert "tools/tool:v1" in names
    site.ok("delete", "--delete-yaml-file", path, f"docker://{target.host}")
    after = tags_on_disk(site.folder.parent / "target/data")
    assert set(before) - set(after) == names
    # etcd is the same image in all versions: those that stay still have it.
    assert {tag: before[tag] for tag in after} == after
    again = site.ok("-c", "isc.yaml", *where)
    assert f", {len(names)} copied, " in again.err
    assert tags_on_disk(site.folder.parent / "target/data") == before


def test_a_list_for_another_registry_deletes_nothing(site: Site, target: Registry) -> None:
    item = {"imageName": "a", "imageReference": "docker://other.example.com/a/b:c", "type": "additional"}
    document = {"kind": "DeleteImageList", "apiVersion": "mirror.openshift.io/v2alpha1", "items": [item]}
    (site.folder / "list.yaml").write_text(yaml.safe_dump(document))
    done = site.run("delete", "--delete-yaml-file", "list.yaml", f"docker://{target.host}")
    assert done.code == 1
    assert f"is not in {target.host}" in done.err
