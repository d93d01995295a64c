"""People log in to a hosted cluster: dex itself, and a kube-apiserver that believes it and is never started anew."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import guest_nodes
from tests.support import management as s
from tests.support.eventually import eventually
from tests.support.hosted_operator import says
from tests.support.login import CLIENT_SECRET, HASH, PASSWORD, Provider
from tests.support.login_place import BROWSER, NAME, NS, Place, give

from hcp.api.paths import at
from hcp.controlplane import oauth
from hcp.kube import Client
from hcp.kube import resources as k

pytestmark = pytest.mark.timeout(1800)


def claims(folder: Path) -> dict[str, Any]:
    """What the token of the one who is logged in says of itself."""
    (file,) = (folder / ".kube" / "cache" / "hcp-login").glob("*.json")
    body = json.loads(file.read_text())["id_token"].split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return found


async def test_kubeadmin_logs_in_from_the_first_node_on_and_loses_its_rights_with_its_secret(
    begin: Callable[..., Any], tmp_path: Path
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

    token = claims(tmp_path)
    assert 0 < token["exp"] - token["iat"] <= 15 * 60

    wrong = "not-the-password-of-anybody"
    for number in (1, 2, 3):
        assert await place.refused("-p", wrong)
        assert place.hosted.counted("refused") == number
    assert place.hosted.counted("accepted") >= 1
    secret = await place.admin.get(k.SECRETS, status["kubeadminPassword"]["name"], "clusters")
    password = base64.b64decode(secret["data"]["password"]).decode()
    assert len(password) == 23
    said = place.hosted.log.read_text() + place.hosted.api_log.read_text()
    assert wrong not in said and password not in said

    async def marked() -> bool:
        live = await place.admin.get(k.SECRETS, "kubeadmin-password", NS)
        return bool(live["metadata"].get("annotations"))

    await eventually(marked, "it is known that the guest has its Secret")
    # A new one, so that it outlives what follows.
    await place.login()
    await place.is_known_as("kube:admin")
    # Its keys are in memory: others from now on, which the API server has to ask for.
    await place.hosted.start_server()

    async def back() -> bool:
        try:
            await place.login()
        except AssertionError:
            return False
        return True

    await eventually(back, "the OAuth server is there again")
    await place.is_known_as("kube:admin")

    token = claims(tmp_path)
    await place.guest.delete(k.SECRETS, "kubeadmin", "kube-system")

    async def unbound() -> bool:
        return await place.guest.get_or_none(k.CLUSTERROLEBINDINGS, "kubeadmin") is None

    await eventually(unbound, "its binding goes with the Secret")

    async def powerless() -> bool:
        return await place.kubectl("auth", "can-i", "get", "nodes") == "no"

    await eventually(powerless, "and the rights with the binding")
    assert await place.who() == "kube:admin", "the token itself still says who it was"
    assert claims(tmp_path) == token and time.time() < token["exp"], "nobody waited for it to end"

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


async def test_users_of_files_and_of_another_issuer_log_in_without_any_node(
    begin: Callable[..., Any], admin: Client, tmp_path: Path
) -> None:
    provider = Provider(tmp_path)
    users = _hashes()
    await give(admin, "Secret", "people", {"htpasswd": "".join(f"{name}:{text}\n" for name, text in users.items())})
    await give(admin, "Secret", "client", {"clientSecret": CLIENT_SECRET})
    await give(admin, "ConfigMap", "provider-ca", {"ca.crt": provider.ca.cert_pem.decode()})
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
        await give(admin, "Secret", "people", {"htpasswd": people})

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
    await give(admin, "ConfigMap", "issuer-ca", {"ca-bundle.crt": provider.ca.cert_pem.decode()})
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
