"""A site that was mirrored to: its registry has everything under other names, and where it came from is gone."""

from __future__ import annotations

import asyncio
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tests.support import operators
from tests.support.cli_runner import BIN
from tests.support.e2e import catalogs
from tests.support.e2e.local_tools import hcp
from tests.support.eventually import eventually_sync
from tests.support.guides import documents
from tests.support.guides.shell import Shell
from tests.support.image_sets import API
from tests.support.registry import Registry

from hcp.local.state.layout import Layout
from hcp.oci import RegistryClient


@dataclass
class Mirrored:
    """What a person carries over: the names that images had, and the files that mirroring wrote."""

    source: str
    operator: str
    release: str
    by_tag: str
    resources: Path
    results: Path

    def rules(self) -> list[dict[str, Any]]:
        """Every source and its mirrors, for `imageContentSources`."""
        return [{"source": one["source"], "mirrors": one["mirrors"]} for one in catalogs.mirrors(self.resources)]


async def mirrored(target: Registry, folder: Path, release: str) -> Mirrored:
    """hcp itself, a release with its boot disk and graph, and a catalog; all in one run of `oc-mirror`."""
    with catalogs.source(folder / "source") as origin:
        await catalogs.fill(origin, folder)
        (folder / "cas.pem").write_bytes(target.ca_pem + origin.ca_pem)
        (folder / "logins.json").write_text(json.dumps({"auths": {**_auths(origin), **_auths(target)}}))
        access = ("--ca", str(folder / "cas.pem"), "--authfile", str(folder / "logins.json"))
        place = f"{origin.host}/team/hcp"
        words = ("release", "push", f"docker://{place}", "--release", release, *access, "-o", "json")
        published = json.loads((await asyncio.to_thread(hcp, *words)).stdout)
        (image,) = published["releases"].values()
        async with RegistryClient(origin.auths, origin.ca_pem) as client:
            by_tag = f"{place}/etcd:{(await client.tags(f'{place}/etcd'))[0]}"
        more = [published["operator"], by_tag]
        listed = {
            "platform": {"release": image, "kubeVirtContainer": True, "graph": True},
            "additionalImages": [{"name": one} for one in more],
            "operators": [{"catalog": f"{origin.host}/team/hello-index:v1", "packages": [{"name": operators.PACKAGE}]}],
        }
        (folder / "isc.yaml").write_text(yaml.safe_dump({**API, "mirror": listed}))
        line = ["-c", "isc.yaml", "--workspace", "file://w", f"docker://{target.host}", "--v2"]
        graph = ["--update-url", f"docker://{place}/graph:latest"]
        command = [str(BIN / "oc-mirror"), *line, *graph, *access]
        await asyncio.to_thread(subprocess.run, command, cwd=folder, check=True)
    (results,) = (folder / "oc-mirror-workspace").iterdir()
    resources = folder / "w/working-dir/cluster-resources"
    return Mirrored(origin.host, published["operator"], image, by_tag, resources, results)


def tell(shell: Shell, registry: Registry, cluster: str, files: list[Path]) -> None:
    """The administrator's part: authorities, the cluster's pull secret, what mirroring wrote. Then the node knows."""
    host, _, port = registry.host.partition(":")
    authority = {f"{host}..{port}": registry.ca_pem.decode()}
    shell.run("oc apply -f -", stdin=documents.registry_authorities("openshift-config", "registry-config", authority))
    patch = """'{"spec": {"additionalTrustedCA": {"name": "registry-config"}}}'"""
    shell.run(f"oc patch image.config.openshift.io cluster --type=merge -p {patch}")
    (shell.folder / "pull-secret").write_text(json.dumps(registry.auths))
    shell.run(
        "oc -n openshift-config create secret generic pull-secret --type=kubernetes.io/dockerconfigjson"
        " --from-file=.dockerconfigjson=$PULL_SECRET"
    )
    for file in files:
        shell.run(f"oc apply -f {file}")
    places = Layout.of(cluster).etc / "certs.d"
    eventually_sync((places / registry.host / "ca.crt").exists, "the node trusts the mirror", 300)
    rules = [rule for file in files for rule in rules_in(file)]
    for source in {one["source"].partition("/")[0] for one in rules}:
        eventually_sync((places / source / "hosts.toml").exists, f"the node knows the mirror of {source}", 300)


def rules_in(file: Path) -> list[dict[str, Any]]:
    """Sources and mirrors of any kind of mirror set."""
    found = [one["spec"] for one in yaml.safe_load_all(file.read_text()) if one]
    return [rule for spec in found for entries in spec.values() for rule in entries]


def _auths(registry: Registry) -> dict[str, Any]:
    return {registry.host: registry.login}
