"""What a cluster is given for the Gateway API's tests: the router of hosted clusters, a class, the tests. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hcp import pki
from hcp.api import manifests as m
from hcp.guest import ingress
from hcp.guest.ingress_plan import GuestIngress
from hcp.router.gateway.listeners import CONTROLLER
from hcp.router.ingresses import ANY_HOST

Object = dict[str, Any]
NAMESPACE = NAME = "gateway-conformance"
CLASS = "hcp"
LEFT_BEHIND = tuple(f"gateway-conformance-{one}" for one in ("infra", "app-backend", "web-backend"))
PROFILES = ("GATEWAY-HTTP", "GATEWAY-TLS")
# What the tests' manifests ask for, and which image of ours stands in for it.
INSTEAD = {"registry.k8s.io/gateway-api/echo-basic": "echo-basic", "registry.k8s.io/coredns/coredns": "coredns"}
_WHOLE_RUN = 3 * 3600


def router(domain: str, image: str) -> list[Object]:
    """What a hosted cluster has, with a certificate as its operator makes it."""
    names = (f"*.{domain}",)
    made = pki.issue(pki.new_ca("conformance"), names[0], dns=names, usage="server")
    return ingress.router(GuestIngress(domain, image, made.cert_pem, made.key_pem))


def gateway_class() -> Object:
    """Tests have routes without a host: an administrator permits them."""
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "GatewayClass",
        "metadata": {"name": CLASS, "annotations": {ANY_HOST: "true"}},
        "spec": {"controllerName": CONTROLLER},
    }


def suite(images: Mapping[str, str], hosts: Mapping[str, str], focus: str, more: Iterable[str] = ()) -> list[Object]:
    """The tests as a pod, which finds the router by its name. `hosts`: names and their addresses."""
    instead = ",".join(f"{theirs}={images[ours]}" for theirs, ours in INSTEAD.items())
    words = {
        "test.v": "true",
        # They wait for answers more than they compute.
        "test.parallel": "16",
        "test.timeout": f"{_WHOLE_RUN}s",
        "gateway-class": CLASS,
        "conformance-profiles": ",".join(PROFILES),
        # All Gateways have one address here: who asks for a name first has it, so one test after the other.
        "disable-parallel-tests": "true",
        **({"run-test": focus} if focus else {}),
    }
    pod = {
        "serviceAccountName": NAME,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "hostAliases": [{"ip": address, "hostnames": [name]} for name, address in hosts.items()],
        "containers": [
            {
                "name": NAME,
                "image": images[NAME],
                "args": [*(f"-{key}={value}" for key, value in words.items()), *more],
                "env": [{"name": "IMAGES", "value": instead}],
            }
        ],
    }
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        m.service_account(NAME, NAMESPACE),
        m.cluster_binding(NAME, m.account(NAME, NAMESPACE), "cluster-admin"),
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": pod},
    ]
