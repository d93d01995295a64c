"""Programs of others against a hosted API server: OpenShift's `oc` and kubelogin, with dex behind them."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import guest_nodes
from tests.support.eventually import eventually
from tests.support.login import HASH, PASSWORD
from tests.support.login_place import BROWSER, NAME, NS, Place, give

from hcp import payload
from hcp.api.names import OAUTH_CLIENT
from hcp.kube import Client
from hcp.kube import resources as k

pytestmark = pytest.mark.timeout(2400)
KUBEADMIN = "kube:admin"
SCOPES = ("profile", "email", "groups", "offline_access")


class Desk:
    """Somebody with these programs, and a kubeconfig that begins empty."""

    def __init__(self, place: Place, folder: Path) -> None:
        self._place, self.folder = place, folder
        built = payload.ensure(["oc", "kubelogin"])
        self.env = {
            "PATH": f"{built['oc'] / 'bin'}:{built['kubelogin'] / 'bin'}:{place.runner.env['PATH']}",
            "HOME": str(folder),
            "KUBECONFIG": str(folder / "config"),
        }
        self.ca = folder / "ca.crt"

    async def prepare(self) -> None:
        bundle = await self._place.admin.get(k.CONFIGMAPS, "root-ca", NS)
        self.ca.write_text(bundle["data"]["ca.crt"])

    async def server(self) -> str:
        endpoint = (await self._place.status())["controlPlaneEndpoint"]
        return f"https://{endpoint['host']}:{endpoint['port']}"

    async def issuer(self) -> str:
        return str((await self._place.status())["oauthCallbackURLTemplate"]).removesuffix("/callback")

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, env=self.env, cwd=self.folder, capture_output=True, text=True, check=False, timeout=180
        )

    async def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return await asyncio.to_thread(self._run, *words)

    async def ok(self, *words: str) -> str:
        done = await self.run(*words)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def _with_browser(self, name: str, password: str, *words: str) -> str:
        """Runs a program that waits for a browser, and is the browser."""
        started = subprocess.Popen(
            words, env=self.env, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert started.stderr is not None
        said = ""
        for line in started.stderr:
            said += line
            if "http://localhost:" in line:
                break
        else:
            raise AssertionError(f"{words}: {said}")
        url = f"http://localhost:{line.partition('http://localhost:')[2].split()[0]}"
        env = {**self.env, "LOGIN_NAME": name, "LOGIN_PASSWORD": password}
        subprocess.run([sys.executable, str(BROWSER), url], env=env, check=True, timeout=180)
        out, err = started.communicate(timeout=180)
        assert started.returncode == 0, f"{words}: {out}{said}{err}"
        return out

    async def with_browser(self, name: str, password: str, *words: str) -> str:
        return await asyncio.to_thread(self._with_browser, name, password, *words)


async def _kubeadmin(place: Place) -> str:
    name = (await place.status())["kubeadminPassword"]["name"]
    secret = await place.admin.get(k.SECRETS, name, "clusters")
    return base64.b64decode(secret["data"]["password"]).decode()


async def test_oc_reads_the_cluster_and_logs_in_by_token_and_by_a_browser(
    begin: Callable[..., Any], tmp_path: Path
) -> None:
    place: Place = await begin()
    desk = Desk(place, tmp_path / "desk")
    desk.folder.mkdir()
    await guest_nodes.join(place.guest, "one")
    await place.serves()
    await desk.prepare()
    await place.login()
    await place.is_known_as(KUBEADMIN)

    session = next((tmp_path / ".kube" / "cache" / "hcp-login").glob("*.json"))
    words = ("login", "token", "--session", str(session), "-o", "token")
    token = (await asyncio.to_thread(place.runner.ok, *words)).out.strip()
    server = await desk.server()
    said = await desk.ok("oc", "login", server, "--token", token, "--certificate-authority", str(desk.ca))
    assert f'as "{KUBEADMIN}" using the token provided' in said
    assert (await desk.ok("oc", "whoami")).strip() == KUBEADMIN

    async def told() -> str:
        return await desk.ok("oc", "get", "clusterversion,nodes,co")

    async def whole() -> str | None:
        text = await told()
        return text if "clusteroperator.config.openshift.io/authentication" in text else None

    table = await eventually(whole, "the cluster tells about itself")
    for line in ("clusterversion.config.openshift.io/version", "node/one", "clusteroperator.config.openshift.io/dns"):
        assert line in table, table
    operators = json.loads(await desk.ok("oc", "get", "co", "-o", "json"))["items"]
    assert {"authentication", "etcd", "kube-apiserver"} <= {one["metadata"]["name"] for one in operators}
    upgrade = await desk.ok("oc", "adm", "upgrade")
    assert "1.36.3" in upgrade or "An upgrade is in progress" in upgrade, upgrade
    refused = await desk.run("oc", "adm", "upgrade", "--clear")
    assert refused.returncode == 0 or "hcp upgrade cluster" in refused.stderr, refused.stderr
    changed = await desk.run("oc", "patch", "clusterversion", "version", "--type=merge", '-p={"spec":{"channel":"x"}}')
    assert "hcp upgrade cluster" in changed.stderr, "whoever tries is told where to change it"

    password = await _kubeadmin(place)
    cannot = await desk.run(
        "oc", "login", server, "-u", "kubeadmin", "-p", password, "--certificate-authority", str(desk.ca)
    )
    assert cannot.returncode != 0, "kube-apiserver serves no OAuth of its own: docs/limits.md"

    (tmp_path / "desk" / "config").unlink()
    plugin = ("--exec-plugin=oc-oidc", f"--issuer-url={await desk.issuer()}", f"--client-id={OAUTH_CLIENT}")
    trust = (f"--certificate-authority={desk.ca}", f"--oidc-certificate-authority={desk.ca}")
    scopes = f"--extra-scopes={','.join(SCOPES)}"
    said = await desk.with_browser("kubeadmin", password, "oc", "login", server, *plugin, scopes, *trust)
    assert f'as "{KUBEADMIN}" from an external oidc issuer' in said
    assert (await desk.ok("oc", "whoami")).strip() == KUBEADMIN, "the plugin has a token and asks nobody again"
    assert "node/one" in await desk.ok("oc", "get", "nodes", "-o", "name")
    everything = place.hosted.log.read_text() + place.hosted.api_log.read_text()
    assert password not in everything and token not in everything


async def test_kubelogin_gives_tokens_that_are_believed(
    begin: Callable[..., Any], admin: Client, tmp_path: Path
) -> None:
    await give(admin, "Secret", "people", {"htpasswd": f"alice:{HASH}\n"})
    provider = {"name": "people", "type": "HTPasswd", "htpasswd": {"fileData": {"name": "people"}}}
    place: Place = await begin(configuration={"oauth": {"identityProviders": [provider]}})
    desk = Desk(place, tmp_path / "desk")
    desk.folder.mkdir()
    await place.serves()
    await desk.prepare()
    plugin = [
        "get-token",
        f"--oidc-issuer-url={await desk.issuer()}",
        f"--oidc-client-id={OAUTH_CLIENT}",
        f"--certificate-authority={desk.ca}",
        *(f"--oidc-extra-scope={one}" for one in SCOPES),
    ]
    where = ("--skip-open-browser", "--listen-address=localhost:0")
    out = await desk.with_browser("alice", PASSWORD, "kubelogin", *plugin, *where)
    assert json.loads(out)["status"]["token"]
    again = await desk.ok("kubelogin", *plugin, *where)
    assert json.loads(again)["status"] == json.loads(out)["status"], "it keeps the token"

    by_password = ("--grant-type=password", "--username=alice", f"--password={PASSWORD}")
    exec_ = {"apiVersion": "client.authentication.k8s.io/v1", "command": "kubelogin", "interactiveMode": "Never"}
    user = {"exec": {**exec_, "args": [*plugin, *by_password]}}
    cluster = {"server": await desk.server(), "certificate-authority": str(desk.ca)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": "alice", "user": user}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": "alice"}}],
        "current-context": NAME,
    }
    (desk.folder / "config").write_text(json.dumps(config))

    async def known() -> bool:
        await place.hosted.refresh()
        return (await desk.ok("oc", "whoami")).strip() == "alice"

    await eventually(known, "the API server knows her by what kubelogin gives")
