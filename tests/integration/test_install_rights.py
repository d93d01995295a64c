"""The operator works with exactly the rights that `hcp install` gives its ServiceAccount."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import yaml
from tests.integration import crds_support as support
from tests.integration.api_server import ApiServer

from hcp.kube import Client, load_config
from hcp.kube import resources as r

HCP = Path(sys.executable).parent / "hcp"
FORBIDDEN = "Not allowed to"


def as_operator(server: ApiServer, directory: Path) -> Path:
    """A kubeconfig that acts as the operator's ServiceAccount."""
    config = yaml.safe_load(server.kubeconfig.read_text())
    config["users"][0]["user"] |= {
        "as": "system:serviceaccount:hypershift:operator",
        "as-groups": ["system:serviceaccounts", "system:authenticated"],
    }
    path = directory / "operator.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


async def test_a_first_pass_needs_no_further_rights(own_server: ApiServer, tmp_path: Path) -> None:
    subprocess.run(
        [HCP, "install", "--image=x.example.com/hcp:1", "--development", f"--kubeconfig={own_server.kubeconfig}"],
        check=True,
        capture_output=True,
    )
    log = tmp_path / "operator.log"
    with log.open("wb") as out:
        operator = subprocess.Popen(
            [HCP, "operator", "run", f"--kubeconfig={as_operator(own_server, tmp_path)}", "--metrics-port=-1"],
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
        )
    try:
        async with Client(load_config(own_server.kubeconfig)) as client:
            await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "clusters"}})
            cluster = support.rendered_cluster("clusters")
            cluster["spec"]["release"]["image"] = "127.0.0.1:1/none:1"
            await client.create(cluster)
            give_up = time.monotonic() + 120
            while True:
                found = await client.get(r.HOSTEDCLUSTERS, "demo", "clusters")
                conditions = {one["type"]: one for one in (found.get("status") or {}).get("conditions") or []}
                if conditions.get("ValidReleaseImage", {}).get("status") == "False":
                    break
                assert operator.poll() is None, log.read_text()
                assert time.monotonic() < give_up, log.read_text()
                time.sleep(0.2)
            assert await client.get(r.NAMESPACES, "clusters-demo")
            assert await client.get(r.SERVICES, "kube-apiserver", "clusters-demo")
    finally:
        operator.terminate()
        operator.wait(30)
    assert FORBIDDEN not in log.read_text()
