from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.unit.controlplane import deterministic, params, secrets_and_config_maps

from hcp.controlplane import issuing
from hcp.controlplane.meta import config_hash, digest

ROOT = Path(__file__).parents[3]
PROGRAM = """
import json
from tests.support.unit.controlplane import deterministic, params
print(json.dumps([deterministic(params()), deterministic(params(highly_available=True))]))
"""


def test_rendering_twice_in_different_processes_is_the_same_byte_for_byte() -> None:
    """An operator restart or upgrade must roll nothing."""
    outputs = []
    for seed in ("0", "1", "4242"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, check=True, cwd=ROOT)
        outputs.append(hashlib.sha256(done.stdout).hexdigest())
    assert len(set(outputs)) == 1


def test_certificates_once_made_are_kept_byte_for_byte() -> None:
    p = params()
    first = {m["metadata"]["name"]: m for m in secrets_and_config_maps(p) if m["kind"] == "Secret"}
    again = issuing.authorities(p, first)
    assert not again.fresh
    assert all(again.secrets[name] == first[name] for name in again.secrets)


def test_config_hash_sees_content_and_nothing_else() -> None:
    def secret(value: str, version: str) -> dict[str, object]:
        return {"kind": "Secret", "metadata": {"name": "a", "resourceVersion": version}, "data": {"k": value}}

    assert config_hash([secret("x", "1")]) == config_hash([secret("x", "2")])
    assert config_hash([secret("x", "1")]) != config_hash([secret("y", "1")])


def test_cluster_api_owns_its_objects_itself() -> None:
    owned = params(owner={"kind": "HostedControlPlane", "name": "demo", "uid": "1"})
    by_kind = {o["kind"]: o["metadata"] for o in deterministic(owned)}
    assert "ownerReferences" in by_kind["Deployment"]
    assert "ownerReferences" not in by_kind["Cluster"]
    assert "ownerReferences" not in by_kind["KubevirtCluster"]


def test_digest_does_not_depend_on_key_order() -> None:
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})


def test_everything_is_plain_json_and_named_once() -> None:
    for p in (params(), params(highly_available=True)):
        objects = [*deterministic(p), *secrets_and_config_maps(p)]
        json.dumps(objects)
        seen = [(o["kind"], o["metadata"]["name"]) for o in deterministic(p)]
        assert len(seen) == len(set(seen))
