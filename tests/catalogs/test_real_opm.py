"""Catalogs that mirroring built anew, read by opm itself."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path

import pytest
from tests.support.image_sets import Published, Site, catalog
from tests.support.mirroring import published, site, source, storage, target
from tests.support.registry import Registry

from hcp import payload

__all__ = ["published", "site", "source", "storage", "target"]


@pytest.fixture(scope="module")
def opm() -> Path:
    return payload.ensure(["olm"])["olm"] / "bin" / "opm"


def test_a_filtered_catalog_is_read_by_opm(site: Site, target: Registry, published: Published, opm: Path) -> None:
    site.configure(catalog(published, packages=[{"name": "metallb"}]))
    site.ok("-c", "isc.yaml", "--workspace", "file://w", f"docker://{target.host}")
    (found,) = site.documents("w/working-dir/cluster-resources/cs-example-operator-index-v1-36.yaml")
    login = {"auth": base64.b64encode("{username}:{password}".format(**target.login).encode()).decode()}
    (site.folder / "login.json").write_text(json.dumps({"auths": {target.host: login}}))
    env = {**site.env, "REGISTRY_AUTH_FILE": str(site.folder / "login.json"), "TMPDIR": str(site.folder)}
    words = [opm, "render", found["spec"]["image"], "--skip-tls-verify", "--output=json"]
    done = subprocess.run(words, env=env, cwd=site.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    decoder, text, read = json.JSONDecoder(), done.stdout.strip(), []
    while text:
        one, end = decoder.raw_decode(text)
        read.append((one["schema"], one["name"]))
        text = text[end:].lstrip()
    assert sorted(read) == [
        ("olm.bundle", "metallb.v2.0.0"),
        ("olm.channel", "stable"),
        ("olm.package", "metallb"),
    ]
