"""People log in to a hosted cluster: dex itself, and a kube-apiserver that believes it and is never started anew."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import guest_nodes
from tests.support import management as s
from tests.support.api_server import ApiServer, free_port
from tests.support.cli_runner import Runner
from tests.support.eventually import eventually
from tests.support.hosted_operator import Running, gone, hands, says
from tests.support.login import CLIENT_SECRET, HASH, PASSWORD, HostedLogin, Provider
from tests.support.registry import Registry

from hcp.api.paths import at
from hcp.controlplane import authentication, oauth
from hcp.controlplane.params import LOGIN_IMAGE
from hcp.kube import Client, untrusted_kubeconfig
from hcp.kube import resources as k

Object = dict[str, Any]
NAME, NS = "entry", "clusters-entry"
BROWSER = Path(__file__).parents[1] / "support" / "browser.py"
pytestmark = pytest.mark.timeout(1800)


class Place:
    """A hosted cluster whose API answers, and somebody who types."""

    def __init__(self, admin: Client, hosted: HostedLogin, guest: Client, runner: Runner) -> None:
        self.admin, self.hosted, self.guest, self.runner = admin, hosted, guest, runner

    async def serves(self) -> None:
        """The OAuth server runs, and the API server has read that it does."""

        async def deployed() -> Object | None:
            return await self.admin.get_or_none(k.DEPLOYMENTS, oauth.COMPONENT, NS)

        await eventually(deployed, "the OAuth server is wanted")
        await self.hosted.start_server()
        await s.report_ready(self.admin, NS)

        async def believed() -> bool:
            config = await self.admin.get(k.CONFIGMAPS, authentication.CONFIG, NS)
            return bool(json.loads(config["data"][authentication.FILE])["jwt"])

        await eventually(believed, "its tokens are to be believed")

    async def status(self) -> Object:
        found: Object = (await self.admin.get(k.HOSTEDCLUSTERS, NAME, "clusters")).get("status") or {}
        return found

    # The operator runs in this very loop, so nobody may hold it up.

    async def login(self, *words: str) -> None:
        await asyncio.to_thread(self.runner.ok, "login", "--name", NAME, *words)

    async def refused(self, *words: str) -> bool:
        return "refuses the login" in await asyncio.to_thread(self.runner.fails, "login", "--name", NAME, *words)

    def _kubectl(self, *words: str) -> str:
        env = {**self.runner.env, "KUBECONFIG": str(self.runner.folder / f"{NAME}.kubeconfig")}
        command = [str(self.hosted._bin_dir / "kubectl"), *words]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=120)
        return done.stdout.strip()

    async def kubectl(self, *words: str) -> str:
        return await asyncio.to_thread(self._kubectl, *words)

    async def who(self) -> str:
        return await self.kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")

    async def is_known_as(self, user: str) -> None:
        """The API server reads its file and the server's keys at its own pace."""

        async def known() -> bool:
            await self.hosted.refresh()
            return await self.who() == user

        await eventually(known, f"the token is that of {user}")


@pytest.fixture
async def begin(
    server: ApiServer,
    admin: Client,
    operator: Callable[[], Running],
    registry: Registry,
    tmp_path: Path,
    bin_dir: Path,
) -> AsyncIterator[Callable[..., Any]]:
    """Gives what makes the cluster, with fields of the test's."""
    hosted = HostedLogin(tmp_path, bin_dir, admin, NS)
    guests: list[Client] = []

    async def made(**spec: Any) -> Place:
        operator()
        image = await s.push_release(registry, tmp_path, "1.36.3", (*s.COMPONENTS, LOGIN_IMAGE))
        port = free_port()
        services = [
            {"service": name, "servicePublishingStrategy": {"type": kind}}
            for name, kind in (("APIServer", "LoadBalancer"), ("Ignition", "Route"), ("Konnectivity", "Route"))
        ]
        node_port = {"type": "NodePort", "nodePort": {"address": "127.0.0.1"}}
        services.append({"service": "OAuthServer", "servicePublishingStrategy": node_port})
        networking = {
            "networkType": "Other",
            "serviceNetwork": [{"cidr": "172.31.0.0/16"}],
            "apiServer": {"port": port},
        }
        await s.create(admin, NAME, image, registry, networking=networking, services=services, **spec)

        async def deployed() -> bool:
            return await admin.get_or_none(k.DEPLOYMENTS, "kube-apiserver", NS) is not None

        await eventually(deployed, "the API server is deployed", hands(admin, NS))
        await hosted.start(admin, NS, port)
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
            await s.report_ready(admin, NS, only=name)
        await eventually(lambda: says(admin, NAME, "ConfigOperatorReconciliationSucceeded", "True"), "the inside")
        secret = await admin.get(k.SECRETS, f"{NAME}-admin-kubeconfig", "clusters")
        guest = Client(untrusted_kubeconfig.load(base64.b64decode(secret["data"]["kubeconfig"])))
        guests.append(guest)
        return Place(admin, hosted, guest, Runner(server.kubeconfig, tmp_path))

    try:
        yield made
    finally:
        for one in guests:
            await one.close()
        hosted.stop()
        await admin.delete(k.HOSTEDCLUSTERS, NAME, "clusters", missing_ok=True)
        await eventually(lambda: gone(admin, NAME), "all is gone")


async def test_kubeadmin_logs_in_from_the_first_node_on_and_loses_its_rights_with_its_secret(
    begin: Callable[..., Any],
) -> None:
    place: Place = await begin()
    assert await place.admin.get_or_none(k.DEPLOYMENTS, oauth.COMPONENT, NS) is None, "nobody would log in yet"
    assert await place.admin.get_or_none(k.SECRETS, f"{NAME}-kubeadmin-password", "clusters") is None
    api = place.hosted.api.pid
    await guest_nodes.join(place.guest, "one")
    await place.serves()
    assert place.hosted.api.pid == api and place.hosted.api.poll() is None

    async def told() -> bool:
        return bool((await place.status()).get("kubeadminPassword"))

    await eventually(told, "the status names the password")
    status = await place.status()
    assert status["oauthCallbackURLTemplate"].endswith("/callback")
    assert await says(place.admin, NAME, "ValidIDPConfiguration", "True")

    await place.login()
    await place.is_known_as("kube:admin")
    assert await place.kubectl("auth", "can-i", "*", "*", "--all-namespaces") == "yes"

    wrong = "not-the-password-of-anybody"
    assert await place.refused("-p", wrong)
    assert place.hosted.counted("refused") == 1
    assert place.hosted.counted("accepted") >= 1
    secret = await place.admin.get(k.SECRETS, status["kubeadminPassword"]["name"], "clusters")
    password = base64.b64decode(secret["data"]["password"]).decode()
    assert len(password) == 23
    said = place.hosted.log.read_text() + (place.hosted._directory / "kube-apiserver.log").read_text()
    assert wrong not in said and password not in said

    async def marked() -> bool:
        live = await place.admin.get(k.SECRETS, "kubeadmin-password", NS)
        return bool(live["metadata"].get("annotations"))

    await eventually(marked, "it is known that the guest has its Secret")
    await place.guest.delete(k.SECRETS, "kubeadmin", "kube-system")

    async def powerless() -> bool:
        return await place.kubectl("auth", "can-i", "get", "nodes") == "no"

    await eventually(powerless, "the rights are gone with the Secret")
    assert await place.who() == "kube:admin", "the token itself still says who it was"

    async def forgotten() -> bool:
        left = await place.admin.get_or_none(k.SECRETS, f"{NAME}-kubeadmin-password", "clusters")
        return left is None and "kubeadminPassword" not in await place.status()

    await eventually(forgotten, "nor is there a password")
    assert await place.guest.get_or_none(k.SECRETS, "kubeadmin", "kube-system") is None

    async def ended() -> bool:
        return await place.admin.get_or_none(k.DEPLOYMENTS, oauth.COMPONENT, NS) is None

    await eventually(ended, "nobody is left who could log in, so nothing runs for it")
    assert place.hosted.api.pid == api and place.hosted.api.poll() is None, "kube-apiserver was never started anew"


def _hashes() -> dict[str, str]:
    """One user for each kind of hash; the password of all is the same."""
    sha = base64.b64encode(hashlib.sha1(PASSWORD.encode()).digest()).decode()
    done = subprocess.run(["openssl", "passwd", "-apr1", PASSWORD], capture_output=True, text=True, check=True)
    return {"alice": HASH, "carol": f"{{SHA}}{sha}", "dave": done.stdout.strip()}


async def _give(admin: Client, kind: str, name: str, data: dict[str, str]) -> None:
    body = {"data": data} if kind == "ConfigMap" else {"stringData": data}
    meta = {"name": name, "namespace": "clusters"}
    await admin.apply({"apiVersion": "v1", "kind": kind, "metadata": meta, **body})


async def test_users_of_files_and_of_another_issuer_log_in_without_any_node(
    begin: Callable[..., Any], admin: Client, tmp_path: Path
) -> None:
    provider = Provider(tmp_path)
    users = _hashes()
    await _give(admin, "Secret", "people", {"htpasswd": "".join(f"{name}:{text}\n" for name, text in users.items())})
    await _give(admin, "Secret", "client", {"clientSecret": CLIENT_SECRET})
    await _give(admin, "ConfigMap", "provider-ca", {"ca.crt": provider.ca.cert_pem.decode()})
    openid = {"clientID": "ours", "clientSecret": {"name": "client"}, "issuer": provider.issuer}
    providers = [
        {"name": "people", "type": "HTPasswd", "htpasswd": {"fileData": {"name": "people"}}},
        {"name": "partner", "type": "OpenID", "openID": {**openid, "ca": {"name": "provider-ca"}}},
        {"name": "odd", "type": "Keystone", "keystone": {"url": "https://keystone.test"}},
    ]
    place: Place = await begin(configuration={"oauth": {"identityProviders": providers}})
    try:

        async def called_back() -> str:
            return str((await place.status()).get("oauthCallbackURLTemplate") or "")

        provider.start(await eventually(called_back, "where the provider has to send people back to"))
        await place.serves()
        assert await says(place.admin, NAME, "ValidIDPConfiguration", "False"), "one provider cannot be used"
        assert "odd" in (await s.condition(admin, NAME, "ValidIDPConfiguration"))["message"]
        assert "kubeadminPassword" not in await place.status(), "who sets up OAuth has users of their own"

        for name in users:
            await place.login("-u", name, "-p", PASSWORD)
            await place.is_known_as(name)
        assert await place.kubectl("auth", "can-i", "get", "nodes") == "no", "rights are for others to give"
        assert await place.refused("-u", "nobody", "-p", PASSWORD)

        file = next((tmp_path / ".kube" / "cache" / "hcp-login").glob("*.json"))
        held = json.loads(file.read_text())
        file.write_text(json.dumps({**held, "ends": 0}))
        token = ("login", "token", "--session", str(file), "-o", "token")
        fresh = (await asyncio.to_thread(place.runner.ok, *token)).out.strip()
        assert fresh != held["id_token"], "a token that is over is renewed"

        people = "".join(f"{name}:{text}\n" for name, text in users.items() if name != "alice")
        await _give(admin, "Secret", "people", {"htpasswd": people})

        async def refused() -> bool:
            await place.hosted.refresh()
            words = ("login", "--name", NAME, "-u", "alice", "-p", PASSWORD)
            return (await asyncio.to_thread(place.runner.run, *words)).code != 0

        await eventually(refused, "who left the file cannot log in")

        place.runner.env |= {
            "BROWSER": f"{sys.executable} {BROWSER} %s",
            "LOGIN_BY": "partner",
            "LOGIN_NAME": "bob@example.com",
            "LOGIN_PASSWORD": PASSWORD,
        }
        await place.login("--web")
        await place.is_known_as("bob")
    finally:
        provider.stop()


async def test_the_tokens_of_an_issuer_of_the_owners_are_believed_without_an_oauth_server(
    begin: Callable[..., Any], admin: Client, tmp_path: Path
) -> None:
    provider = Provider(tmp_path)
    provider.start("http://127.0.0.1/unused")
    await _give(admin, "ConfigMap", "issuer-ca", {"ca-bundle.crt": provider.ca.cert_pem.decode()})
    issuer = {"issuerURL": provider.issuer, "audiences": ["ours"], "issuerCertificateAuthority": {"name": "issuer-ca"}}
    mappings = {"username": {"claim": "preferred_username", "prefixPolicy": "Prefix", "prefix": {"prefixString": "p:"}}}
    oidc = {"name": "own", "issuer": issuer, "claimMappings": mappings}
    try:
        place: Place = await begin(configuration={"authentication": {"type": "OIDC", "oidcProviders": [oidc]}})
        await guest_nodes.join(place.guest, "one")
        from hcp.cli.login.oauth import Server

        ca = provider.ca.cert_pem.decode()
        asked = {"grant_type": "password", "username": "bob@example.com", "password": PASSWORD}
        tokens = Server(provider.issuer, ca).tokens(
            **asked, client_id="ours", client_secret=CLIENT_SECRET, scope="openid profile"
        )
        live = await place.admin.get(k.SECRETS, f"{NAME}-admin-kubeconfig", "clusters")
        text = base64.b64decode(live["data"]["kubeconfig"])
        config = json.loads(text)
        config["users"][0]["user"] = {"token": tokens["id_token"]}
        (tmp_path / f"{NAME}.kubeconfig").write_text(json.dumps(config))
        await place.is_known_as("p:bob")
        assert await place.admin.get_or_none(k.DEPLOYMENTS, oauth.COMPONENT, NS) is None
        assert await says(place.admin, NAME, "ValidIDPConfiguration", "True")
        assert at(await place.status(), "kubeadminPassword") is None
    finally:
        provider.stop()
