"""The default ingress of a guest: our router, which ends TLS for the cluster's own domain, behind node ports."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from hcp.api import manifests as m
from hcp.api.names import ROUTER_NAMESPACE
from hcp.guest import canary
from hcp.guest.ingress_plan import GuestIngress
from hcp.guest.objects import LABELS, GuestParams, Manifest, obj
from hcp.router import crd, manifests, status_policy

NAME = manifests.NAME
# As HyperShift calls it; people look their node ports up there.
SERVICE = "router-nodeport-default"
CERTIFICATE = "default-ingress-cert"
# As OpenShift has it.
CLASS, CLASS_CONTROLLER = "openshift-default", "openshift.io/ingress-to-route"


def objects(g: GuestParams) -> list[Manifest]:
    """Nothing in a cluster without nodes, or without the capability."""
    if g.ingress is None:
        return []
    return router(g.ingress, highly_available=g.highly_available, marks=g.trust_mark)


def router(given: GuestIngress, *, highly_available: bool = False, marks: Mapping[str, str] = {}) -> list[Manifest]:
    """The same wherever it runs: `marks` are annotations that start its pods anew."""
    return [
        _ours(manifests.namespace()),
        _ours(crd.route_crd()),
        *(_ours(one) for one in status_policy.objects()),
        *(_ours(one) for one in manifests.rights(ends_tls=True)),
        obj(
            "networking.k8s.io/v1",
            "IngressClass",
            CLASS,
            {"spec": {"controller": CLASS_CONTROLLER}},
        ),
        _certificate(given),
        _deployment(given, highly_available, marks),
        _service(),
        *canary.objects(given.image, given.domain),
    ]


def _ours(manifest: Manifest) -> Manifest:
    metadata = manifest["metadata"]
    return {**manifest, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **LABELS}}}


def _certificate(given: GuestIngress) -> Manifest:
    data = {"tls.crt": given.certificate, "tls.key": given.key}
    encoded = {name: base64.b64encode(value).decode() for name, value in data.items()}
    return obj("v1", "Secret", CERTIFICATE, {"type": "kubernetes.io/tls", "data": encoded}, ROUTER_NAMESPACE)


def _deployment(given: GuestIngress, highly_available: bool, marks: Mapping[str, str]) -> Manifest:
    made = manifests.deployment(
        given.image,
        domain=given.domain,
        replicas=2 if highly_available else 1,
        options=(f"--default-certificate={ROUTER_NAMESPACE}/{CERTIFICATE}", f"--ingress-class={CLASS}"),
    )
    pod = made["spec"]["template"]["spec"]
    pod["nodeSelector"] = {"kubernetes.io/os": "linux"}
    selector = made["spec"]["selector"]
    pod["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": selector,
        }
    ]
    if marks:
        made["spec"]["template"]["metadata"]["annotations"] |= marks
    return _ours(made)


def _service() -> Manifest:
    ports = {"http": 80, "https": 443}
    return m.service(SERVICE, ROUTER_NAMESPACE, ports, labels=LABELS, selector=manifests.POD_LABELS, kind="NodePort")
