"""Values that no schema refuses, or only a newer one, so that what all clusters share fails for everybody."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import pytest
from cryptography import x509
from tests.support import crds as crds_support
from tests.support import management as s
from tests.support.api_server import ApiServer
from tests.support.eventually import eventually
from tests.support.security.attacker import Attacker, enter

from hcp.api import generate
from hcp.ignition.certs import SERVING_SECRET, read_pair
from hcp.kube import Client
from hcp.kube import resources as k
from hcp.kube.errors import Invalid

Object = dict[str, Any]
NAMESPACE = "hypershift"


def services(kind: str, where: Object) -> list[Object]:
    """The services of a cluster, with another way to its bootstrap server."""
    entries = copy.deepcopy(crds_support.rendered_cluster("x")["spec"]["services"])
    for entry in entries:
        if entry["service"] == "Ignition":
            entry["servicePublishingStrategy"] = {"type": kind, **where}
    return list(entries)


def published(host: str) -> list[Object]:
    return services("Route", {"route": {"hostname": host}})


def by_node(address: str) -> list[Object]:
    return services("NodePort", {"nodePort": {"address": address, "port": 30443}})


def without_patterns(schema: Any) -> Any:
    """As a definition from before the patterns, or another operator's, has it."""
    if isinstance(schema, dict):
        return {
            key: without_patterns(value) for key, value in schema.items() if key != "pattern" or isinstance(value, dict)
        }
    return [without_patterns(one) for one in schema] if isinstance(schema, list) else schema


async def certified(admin: Client) -> set[str]:
    """The names in the bootstrap server's certificate."""
    secret = await admin.get_or_none(k.SECRETS, SERVING_SECRET, NAMESPACE)
    if secret is None:
        return set()
    found = x509.load_pem_x509_certificate(read_pair(secret, "tls.crt", "tls.key").cert_pem)
    return set(
        found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value.get_values_for_type(x509.DNSName)
    )


async def good_cluster(admin: Client, team: Attacker, name: str) -> None:
    """A cluster of another team that gets all it needs: its name, its namespace, a good condition."""
    host = f"ignition.{name}.example.com"
    await team.cluster(name, services=published(host))
    await eventually(lambda: _has(admin, host))
    await eventually(lambda: _said(team, name, "ValidConfiguration", "True"))
    await eventually(lambda: admin.get_or_none(k.SERVICES, "kube-apiserver", team.hosted(name)))


async def _has(admin: Client, host: str) -> bool:
    return host in await certified(admin)


async def _said(team: Attacker, name: str, kind: str, status: str) -> str:
    found = await team.condition(name, kind)
    return str(found.get("message") or "-") if found.get("status") == status else ""


async def _said_of(team: Attacker, name: str, kind: str, words: str) -> bool:
    return words in await _said(team, name, kind, "False")


async def test_the_schema_refuses_names_that_are_none(attacker: Attacker) -> None:
    for address in ("bücher", "a b", "x\n", "-"):
        with pytest.raises(Invalid, match="address"):
            await attacker.cluster("refused", services=by_node(address))


BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "umlaut": ({"services": by_node("bücher")}, "ValidConfiguration", "cannot be the name of a host"),
    "long": ({"services": by_node("x" * 64 + ".example.com")}, "ValidConfiguration", "cannot be the name of a host"),
    "lines": ({"services": by_node("a\nb")}, "ValidConfiguration", "cannot be the name of a host"),
    "proxy": (
        {"configuration": {"proxy": {"httpProxy": "::not-a-proxy", "httpsProxy": "http://[:1"}}},
        "ValidConfiguration",
        "configuration.proxy.httpProxy",
    ),
    "mirrors": (
        {"imageContentSources": [{"source": 'x"\n[a]', "mirrors": ["::", "a b", "../.."]}]},
        "ValidReleaseImage",
        "cannot be reached",
    ),
}


async def test_bad_values_are_said_where_they_are_and_hurt_nobody_else(
    admin: Client, attacker: Attacker, management: ApiServer, operator: s.OperatorProcess
) -> None:
    team = await enter(admin, management)
    async with team.client:
        await good_cluster(admin, team, "before")
        for definition in generate.crds():
            await crds_support.install(admin, [without_patterns(definition)])
        for name, (spec, _, _) in BAD.items():
            # A kind is served as it was for a moment longer.
            await eventually(partial(attacker.cluster, name, **spec), f"{name} is stored")
        huge = await attacker.cluster("huge")
        annotations = {f"hypershift.openshift.io/{number}": "x" * 60_000 for number in range(4)}
        body = {"metadata": {"annotations": annotations}}
        await attacker.client.patch(k.HOSTEDCLUSTERS, huge["metadata"]["name"], attacker.namespace, body)
        await good_cluster(admin, team, "after")
        for name, (_, condition, words) in BAD.items():
            await eventually(partial(_said_of, attacker, name, condition, words), f"{name}: {words}")
        assert "ignition.before.example.com" in await certified(admin)
        # An edit of a good cluster is acted on, with all of them there.
        pause = {"spec": {"pausedUntil": "true"}}
        await team.client.patch(k.HOSTEDCLUSTERS, "before", team.namespace, pause)
        await eventually(lambda: _said(team, "before", "ReconciliationActive", "False"))
    assert "Traceback" not in management.log("operator")
    assert not operator.ended
