"""`kubeadmin` inside the guest: its rights last as long as the Secret that OpenShift's documentation says to delete."""

from __future__ import annotations

import base64
import contextlib

from hcp.api.paths import labels_of
from hcp.controlplane.authentication import KUBEADMIN, KUBEADMIN_USER
from hcp.guest.login_plan import GuestLogin
from hcp.guest.objects import LABELS, SYSTEM, GuestParams, Manifest, cluster_role_binding, obj, user
from hcp.guest.view import GuestView
from hcp.kube import Client
from hcp.kube.errors import NotFound
from hcp.kube.resources import CLUSTERROLEBINDINGS, SECRETS

SECRET = BINDING = KUBEADMIN


def objects(g: GuestParams, *, there: bool) -> list[Manifest]:
    """`there`: whether the guest has the Secret. One that was deleted is not made again."""
    login = g.login
    if login is None or not _wanted(login, there=there):
        return []
    data = {"data": {KUBEADMIN: base64.b64encode(login.kubeadmin.encode()).decode()}}
    return [
        obj("v1", "Secret", SECRET, {"type": "Opaque", **data}, SYSTEM),
        cluster_role_binding(BINDING, "cluster-admin", user(KUBEADMIN_USER)),
    ]


def _wanted(login: GuestLogin, *, there: bool) -> bool:
    return bool(login.kubeadmin) and (there or not login.given)


def has_secret(view: GuestView) -> bool:
    return view.kubeadmin.get(SECRET, SYSTEM) is not None


async def remove_unwanted(client: Client, view: GuestView, login: GuestLogin) -> None:
    """Rights first."""
    if _wanted(login, there=has_secret(view)):
        return
    for informer, resource, ns in (
        (view.administrators, CLUSTERROLEBINDINGS, None),
        (view.kubeadmin, SECRETS, SYSTEM),
    ):
        live = informer.get(KUBEADMIN, ns)
        if live is not None and labels_of(live).items() >= LABELS.items():
            with contextlib.suppress(NotFound):
                await client.delete(resource, KUBEADMIN, ns)
