"""`login`: find both servers, get tokens, write the kubeconfig."""

from __future__ import annotations

import base64
import getpass
import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hcp.api import names
from hcp.cli.engine.command import Call, UsageError
from hcp.cli.engine.terminal import note
from hcp.cli.login import session
from hcp.cli.login.oauth import Server
from hcp.errors import HcpError
from hcp.pki.kubeconfigs import kubeconfig_yaml

CALLBACK = "/callback"
ADMINISTRATOR = "kubeadmin"


@dataclass(frozen=True)
class Place:
    """A cluster to log in to; with `password` where the administrator's could be read."""

    name: str
    api: str
    oauth: Server
    password: str = ""


async def run(call: Call) -> int:
    place = await _asked(call) if call.text("name") else _told(call)
    if call.switch("web"):
        from hcp.cli.login.web import by_browser

        answer = by_browser(place.oauth)
    else:
        answer = place.oauth.by_password(call.text("username"), _password(call, place))
    held = session.made(place.oauth, answer, _again(call))
    who = str(session.claims(held.id_token).get("preferred_username") or call.text("username"))
    where = session.path_for(place.api, place.oauth.issuer, who)
    session.write(where, held)
    target = Path(call.text("to") or f"{place.name}.kubeconfig")
    _write(target, kubeconfig_yaml(config(place, who, where, _program(call))))
    note(f"Logged in to {place.name} as {who}")
    print(f"export KUBECONFIG={shlex.quote(str(_here(target)))}")
    return 0


def config(place: Place, user: str, where: Path, program: str) -> dict[str, Any]:
    """A kubeconfig that holds no secret: the program prints the tokens."""
    cluster: dict[str, Any] = {"server": place.api}
    if place.oauth.ca:
        cluster["certificate-authority-data"] = base64.b64encode(place.oauth.ca.encode()).decode()
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": program,
        "args": ["login", "token", "--session", str(where)],
        "interactiveMode": "Never",
        "provideClusterInfo": False,
        "installHint": "The command hcp renews the login.",
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": place.name, "cluster": cluster}],
        "users": [{"name": user, "user": {"exec": plugin}}],
        "contexts": [{"name": place.name, "context": {"cluster": place.name, "user": user, "namespace": "default"}}],
        "current-context": place.name,
        "preferences": {},
    }


async def _asked(call: Call) -> Place:
    """Where the servers are, as the management cluster knows it."""
    from hcp.cli.shared.cluster import connect
    from hcp.cli.shared.kubeconfigs import find_cluster
    from hcp.kube.resources import CONFIGMAPS

    name, namespace = call.text("name"), call.text("namespace")
    async with connect(call) as client:
        found = await find_cluster(client, call.prog, namespace, name)
        status = found.get("status") or {}
        issuer = call.text("issuer") or str(status.get("oauthCallbackURLTemplate") or "").removesuffix(CALLBACK)
        endpoint = status.get("controlPlaneEndpoint") or {}
        if not issuer or not endpoint:
            raise HcpError(
                f"hosted cluster {namespace}/{name} has no OAuth server",
                cause="it starts with the first node or identity provider, in releases that have one",
                hint=f"{call.prog} create kubeconfig --name {name} -n {namespace} gives the administrator's kubeconfig",
            )
        host = str(endpoint["host"])
        api = call.text("server") or f"https://{f'[{host}]' if ':' in host else host}:{endpoint['port']}"
        ca = _ca_of(call)
        if not ca:
            hosted = names.control_plane_namespace(namespace, name)
            bundle = await client.get_or_none(CONFIGMAPS, "root-ca", hosted)
            ca = str(((bundle or {}).get("data") or {}).get("ca.crt") or "")
        return Place(name, api, Server(issuer, ca), await _administrators(call, client, found))


async def _administrators(call: Call, client: Any, found: dict[str, Any]) -> str:
    from hcp.kube.resources import SECRETS

    secret = ((found.get("status") or {}).get("kubeadminPassword") or {}).get("name")
    wanted = call.text("username") == ADMINISTRATOR and not call.switch("web") and not call.text("password")
    if not secret or not wanted:
        return ""
    try:
        live = await client.get_or_none(SECRETS, secret, found["metadata"]["namespace"])
    except HcpError:  # not everybody may read it
        return ""
    return base64.b64decode(((live or {}).get("data") or {}).get(names.KUBEADMIN_KEY) or "").decode()


def _told(call: Call) -> Place:
    if not call.text("server") or not call.text("issuer"):
        hint = f"{call.prog} login --name NAME asks the management cluster; without it --server and --issuer are needed"
        raise UsageError("which cluster?", hint=hint)
    name = call.text("server").removeprefix("https://").replace(":", "-").strip("/")
    return Place(name, call.text("server"), Server(call.text("issuer").rstrip("/"), _ca_of(call)))


def _ca_of(call: Call) -> str:
    file = call.text("certificate-authority")
    if not file:
        return ""
    try:
        return Path(file).read_text()
    except (OSError, ValueError) as exc:
        raise HcpError(f"the certificate authority {file} cannot be read", cause=str(exc)) from exc


def _password(call: Call, place: Place) -> str:
    given = call.text("password")
    if given == "-":
        return sys.stdin.readline().rstrip("\n")
    if given or place.password:
        return given or place.password
    if not sys.stdin.isatty():
        raise UsageError("no password is given", hint="-p - reads it from stdin")
    return getpass.getpass(f"Password of {call.text('username')}: ", stream=sys.stderr)


def _again(call: Call) -> str:
    """The same command without the password."""
    words = [call.prog, "login"]
    for flag in ("name", "server", "issuer", "certificate-authority", "username", "namespace", "to"):
        if call.changed(flag):
            words += [f"--{flag}", call.text(flag)]
    return shlex.join([*words, "--web"] if call.switch("web") else words)


def _program(call: Call) -> str:
    """Where this very command is: kubectl may be started in another environment."""
    own = Path(sys.argv[0])
    if own.name in ("hcp", "hypershift") and own.exists():
        return str(own.resolve())
    return shutil.which(call.prog) or call.prog


def _here(path: Path) -> Path:
    return Path.cwd() / path


def _write(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
