"""The router for Routes, at the address that the apps domain carries."""

from __future__ import annotations

from hcp.api.manifests import Object
from hcp.local.addons.waiting import CONTROL_PLANE_LABEL
from hcp.local.network.addresses import Addresses
from hcp.router import manifests
from hcp.router.crd import route_crd


def definitions() -> list[Object]:
    return [route_crd()]


def objects(plan: Addresses, image: str) -> list[Object]:
    found = manifests.objects(image, domain=plan.apps_domain)
    for obj in found:
        if obj["kind"] == "Service":
            obj["spec"]["loadBalancerIP"] = plan.primary.router
            if plan.six is not None:
                obj["spec"]["ipFamilyPolicy"] = "PreferDualStack"
        if obj["kind"] == "Deployment":
            # Where the address is answered: a node that goes away does not take the way to all others with it.
            obj["spec"]["template"]["spec"]["nodeSelector"] = {CONTROL_PLANE_LABEL: ""}
    return found
