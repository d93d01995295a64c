"""install, install render and uninstall as a user types them, against a real API server and controller manager."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import crds as support
from tests.support.api_server import ApiServer
from tests.support.eventually import eventually

from hcp import pki
from hcp.kube import Client, load_config
from hcp.kube import resources as r

HCP = Path(sys.executable).parent / "hcp"


@dataclass
class World:
    """A cluster that deletes namespaces, and the command line pointed at it."""

    server: ApiServer

    def hcp(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [HCP, *words, f"--kubeconfig={self.server.kubeconfig}"], capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done

    def client(self) -> Client:
        return Client(load_config(self.server.kubeconfig))


@pytest.fixture
def world(own_server: ApiServer, bin_dir: Path) -> Iterator[World]:
    log = (own_server.directory / "controllers.log").open("ab")
    controllers = subprocess.Popen(
        [
            bin_dir / "kube-controller-manager",
            f"--kubeconfig={own_server.kubeconfig}",
            "--controllers=namespace-controller,garbage-collector-controller,serviceaccount-controller",
            "--leader-elect=false",
            "--secure-port=0",
        ],
        stdout=log,
        stderr=log,
        stdin=subprocess.DEVNULL,
    )
    try:
        yield World(own_server)
    finally:
        controllers.kill()
        controllers.wait()
        log.close()


async def versions(client: Client) -> dict[str, str]:
    kinds = (r.DEPLOYMENTS, r.SERVICES, r.ROLES, r.ROLEBINDINGS, r.CLUSTERROLES, r.CONFIGMAPS, r.ROUTES)
    found = {}
    for kind in kinds:
        for one in await client.list(kind):
            found[f"{kind}/{one['metadata'].get('namespace')}/{one['metadata']['name']}"] = one["metadata"][
                "resourceVersion"
            ]
    return found


async def test_install_again_upgrade_and_uninstall(world: World) -> None:
    done = world.hcp("install", "--image=registry.example.com/hcp:1", "--router-domain=apps.example.com")
    assert "applied Deployment hypershift/operator" in done.stdout
    assert "created PriorityClass /hypershift-etcd" in done.stdout
    async with world.client() as client:
        router = await client.get(r.DEPLOYMENTS, "router-default", "openshift-ingress")
        assert router["spec"]["template"]["spec"]["containers"][0]["image"] == "registry.example.com/hcp:1"
        before = await versions(client)

        again = world.hcp("install", "--image=registry.example.com/hcp:1", "--router-domain=apps.example.com")
        assert "already exists: PriorityClass /hypershift-etcd" in again.stdout
        assert await versions(client) == before

        world.hcp(
            "install",
            "--image=registry.example.com/hcp:2",
            "--router-domain=apps.example.com",
            "--default-release-image=registry.example.com/release:1",
        )
        operator = await client.get(r.DEPLOYMENTS, "operator", "hypershift")
        assert operator["spec"]["template"]["spec"]["containers"][0]["image"] == "registry.example.com/hcp:2"

        world.hcp("install", "--image=registry.example.com/hcp:3")
        known = await client.get(r.CONFIGMAPS, "supported-versions", "hypershift")
        assert known["data"]["default-release"] == "registry.example.com/release:1"
        router = await client.get(r.DEPLOYMENTS, "router-default", "openshift-ingress")
        assert "--domain=apps.example.com" in router["spec"]["template"]["spec"]["containers"][0]["args"]

        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "clusters"}})
        await client.create(support.rendered_cluster("clusters"))
        refused = world.hcp("uninstall", code=1)
        assert "clusters/demo" in refused.stderr
        assert await client.get(r.DEPLOYMENTS, "operator", "hypershift")

        await client.delete(r.HOSTEDCLUSTERS, "demo", "clusters")
        world.hcp("uninstall")

        async def no_kinds() -> bool:
            left = [crd["metadata"]["name"] for crd in await client.list(r.CRDS)]
            return not [name for name in left if "hypershift" in name or "route" in name]

        await eventually(no_kinds, "its kinds are gone")
        roles = [one["metadata"]["name"] for one in await client.list(r.CLUSTERROLES)]
        assert not [name for name in roles if "hypershift" in name or "hcp" in name]
        assert not [
            one["metadata"]["name"]
            for one in await client.list(r.PRIORITYCLASSES)
            if one["metadata"]["name"].startswith("hypershift")
        ]
        assert "hypershift" not in [one["metadata"]["name"] for one in await client.list(r.NAMESPACES)]
        world.hcp("uninstall")


async def test_an_image_is_asked_for_once_and_then_kept(world: World) -> None:
    refused = world.hcp("install", code=1)
    assert "which image" in refused.stderr
    assert "--image" in refused.stderr
    assert "applied" not in refused.stdout
    async with world.client() as client:
        assert await client.get_or_none(r.NAMESPACES, "hypershift") is None
        world.hcp("install", "--development")
        world.hcp("install", code=1)
        world.hcp("install", "--image=registry.example.com/hcp:1")
        world.hcp("install", "--replicas=2")
        operator = await client.get(r.DEPLOYMENTS, "operator", "hypershift")
        assert operator["spec"]["replicas"] == 2
        assert operator["spec"]["template"]["spec"]["containers"][0]["image"] == "registry.example.com/hcp:1"


async def test_what_a_published_release_needs_is_remembered(world: World, tmp_path: Path) -> None:
    """The line that `release push` prints, and then runs of install that name none of it."""
    secret, bundle = tmp_path / "auth.json", tmp_path / "ca.pem"
    secret.write_text('{"auths": {"registry.example.com": {"auth": "YTpi"}}}')
    bundle.write_bytes(pki.new_ca("registry").cert_pem)
    world.hcp(
        *("install", "--image=registry.example.com/hcp@sha256:" + "a" * 64, "--supported-versions=1.36"),
        *("--default-release-image=registry.example.com/release:1", f"--pull-secret={secret}"),
        f"--additional-trust-bundle={bundle}",
    )
    async with world.client() as client:
        before = await versions(client)
        world.hcp("install")
        assert await versions(client) == before
        known = await client.get(r.CONFIGMAPS, "supported-versions", "hypershift")
        assert json.loads(known["data"]["supported-versions"]) == {"versions": ["1.36"]}
        assert known["data"]["default-release"] == "registry.example.com/release:1"
        account = await client.get(r.SERVICEACCOUNTS, "operator", "hypershift")
        assert account["imagePullSecrets"] == [{"name": "pull-secret"}]
        operator = await client.get(r.DEPLOYMENTS, "operator", "hypershift")
        assert [one["name"] for one in operator["spec"]["template"]["spec"]["volumes"]] == ["tmp", "trust"]
        world.hcp("install", "--pull-secret=", "--additional-trust-bundle=", "--supported-versions=1.36,1.35")
        account = await client.get(r.SERVICEACCOUNTS, "operator", "hypershift")
        assert not account.get("imagePullSecrets")
        known = await client.get(r.CONFIGMAPS, "supported-versions", "hypershift")
        assert json.loads(known["data"]["supported-versions"]) == {"versions": ["1.36", "1.35"]}
    refused = world.hcp("install", "--supported-versions=1.20", code=1)
    assert "1.36" in refused.stderr


async def test_force_keeps_hosted_clusters(world: World) -> None:
    world.hcp("install", "--image=registry.example.com/hcp:1")
    async with world.client() as client:
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "clusters"}})
        await client.create(support.rendered_cluster("clusters"))
        done = world.hcp("uninstall", "--force")
        assert "nobody looks after them" in done.stdout
        assert await client.get(r.HOSTEDCLUSTERS, "demo", "clusters")


async def test_an_existing_router_is_left_alone(world: World) -> None:
    from hcp.router import manifests
    from hcp.router.crd import route_crd

    async with world.client() as client:
        await support.install(client, [route_crd()])
        for obj in manifests.objects("registry.example.com/theirs:1"):
            await client.apply(obj)
        done = world.hcp("install", "--image=registry.example.com/hcp:1")
        assert "router-default" not in done.stdout
        found = await client.get(r.DEPLOYMENTS, "router-default", "openshift-ingress")
        assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "registry.example.com/theirs:1"
        world.hcp("uninstall")
        theirs = await client.get(r.DEPLOYMENTS, "router-default", "openshift-ingress")
        assert await client.has(r.ROUTES)
        theirs["spec"]["template"]["spec"]["containers"][0]["args"] = ["serve"]
        await client.replace(theirs)
        refused = world.hcp("install", "--image=registry.example.com/hcp:1", "--router", code=1)
        assert "router of its own" in refused.stderr


async def test_scopes_and_waiting(world: World) -> None:
    done = world.hcp("install", "--install-scope=crds")
    assert "CustomResourceDefinition" in done.stdout
    assert "Deployment" not in done.stdout
    world.hcp("install", "--install-scope=crds", "--wait-until-available", code=1)
    slow = world.hcp("install", "--image=x.example.com/a:1", "--wait-until-available", "--timeout=1s", code=3)
    assert "operator is not available" in slow.stderr


def render(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([HCP, "install", "render", *words], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def test_render_needs_no_cluster(tmp_path: Path) -> None:
    secret = tmp_path / "pull.json"
    secret.write_text('{"auths": {}}')
    text = render("--router", f"--pull-secret={secret}").stdout
    found: list[dict[str, Any]] = [one for one in yaml.safe_load_all(text) if one]
    assert "Secret" not in {one["kind"] for one in found}
    assert found[0]["kind"] == "CustomResourceDefinition"
    crds = render("--outputs=crds", "--format=json").stdout
    assert {one["kind"] for one in json.loads(crds)["items"]} == {"CustomResourceDefinition"}
    out = tmp_path / "out.yaml"
    render(f"--pull-secret={secret}", "--render-sensitive", f"--output-file={out}")
    assert "kind: Secret" in out.read_text()
    assert out.stat().st_mode & 0o777 == 0o600


def test_render_template() -> None:
    assert "--template needs --render-sensitive" in render("--template", code=1).stderr
    found = yaml.safe_load(
        render("--template", "--render-sensitive", "--image=r.example.com/x:1").stdout.split("\n---")[0]
    )
    assert found["kind"] == "Template"
    assert found["parameters"] == [{"name": "OPERATOR_IMAGE", "value": "r.example.com/x:1"}]
    images = [
        container["image"]
        for obj in found["objects"]
        if obj["kind"] == "Deployment"
        for container in obj["spec"]["template"]["spec"]["containers"]
    ]
    assert set(images) == {"${OPERATOR_IMAGE}"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--namespace=other",), "namespace"),
        (("--image=a b",), "image reference"),
        (("--image-pull-policy=sometimes",), "image-pull-policy"),
        (("--limit-crd-install=mars",), "limit-crd-install"),
        (("--limit-crd-install=aws",), "kubevirt"),
        (("--replicas=-1",), "--replicas"),
        (("--pull-secret=/does/not/exist",), "--pull-secret"),
        (("--image=a", "--hypershift-image=b"), "none of the others"),
        (("--development", "--replicas=2"), "--development"),
    ],
)
def test_bad_command_lines(words: tuple[str, ...], said: str) -> None:
    assert said in render(*words, code=1).stderr


def test_flags_without_effect_say_so() -> None:
    assert "no webhooks" in render("--enable-defaulting-webhook", "--outputs=resources").stderr
