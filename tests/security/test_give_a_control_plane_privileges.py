"""A namespace user asks for more than a hosted cluster: other pod security, priority, images, places, requests.

Each needs a right of its own: the policies are those of `hcp install`, and a real API server asks.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support import crds as crds_support
from tests.support.api_server import ApiServer, account_token
from tests.support.eventually import eventually
from tests.support.security.attacker import Attacker

from hcp.api import names
from hcp.api.manifests import account, cluster_binding, cluster_role, rule, service_account
from hcp.install import privileges
from hcp.kube import Client, ClusterConfig
from hcp.kube import resources as k
from hcp.kube.config import UserAuth
from hcp.kube.errors import Forbidden

Object = dict[str, Any]
HCP = Path(sys.executable).parent / "hcp"
TOLERATE_ALL = [{"operator": "Exists"}]
ASKED = {
    "pod-security": {names.ANNOTATION_POD_SECURITY: "privileged"},
    "priority-classes": {names.ANNOTATION_ETCD_PRIORITY: "system-node-critical"},
    "images": {names.ANNOTATION_KONNECTIVITY_SERVER_IMAGE: "evil.example/x:1"},
    "resource-requests": {f"{names.ANNOTATION_RESOURCE_OVERRIDE_PREFIX}kube-apiserver.kube-apiserver": "memory=1Ti"},
    "kept-namespaces": {names.ANNOTATION_SKIP_DELETE_NAMESPACE: "true"},
}


def install(server: ApiServer, *flags: str) -> None:
    command: list[str | Path] = [
        HCP,
        "install",
        "--image=x.example.com/hcp:1",
        "--development",
        f"--kubeconfig={server.kubeconfig}",
    ]
    subprocess.run([*command, *flags], check=True, capture_output=True)


@pytest.fixture
async def guarded(management: ApiServer, admin: Client, attacker: Attacker) -> Attacker:
    """The attacker, once the policies are in force: a server takes them up a moment after they are written."""
    install(management)
    ns = attacker.namespace
    pool = crds_support.rendered_pool(ns, "probe")
    pool["metadata"]["annotations"] = {names.ANNOTATION_HAPROXY_IMAGE: "evil.example/x:1"}
    probes = [asked("probe", ns, annotations) for annotations in ASKED.values()]
    # Each policy by itself: one may count before another.
    for probe in (*probes, asked("probe", ns, {}, tolerations=TOLERATE_ALL), pool):

        async def refused(probe: Object = probe) -> bool:
            return not await accepted(attacker.client, probe)

        await eventually(refused, "the policies are in force")
    return attacker


async def accepted(client: Client, obj: Object) -> bool:
    """Whether the server would take it; rights and policies are taken up a moment after they are written."""
    try:
        await client.create(obj, dry_run=True)
    except Forbidden:
        return False
    return True


def asked(name: str, namespace: str, annotations: dict[str, str], **spec: Any) -> Object:
    made = crds_support.changed(crds_support.rendered_cluster(namespace, name), "spec.release.image", "127.0.0.1:1/x:1")
    made["metadata"]["annotations"] = annotations
    made["spec"] |= {"infraID": f"{name}-id", **spec}
    return made


@pytest.mark.parametrize("privilege", ASKED)
async def test_a_privilege_by_annotation_is_refused_by_its_name(
    guarded: Attacker, admin: Client, privilege: str
) -> None:
    team, ns = guarded.client, guarded.namespace
    [annotation] = ASKED[privilege]
    with pytest.raises(Forbidden) as refused:
        await team.create(asked("made", ns, ASKED[privilege]))
    assert f"annotation {annotation} needs the right to use" in str(refused.value.cause)
    assert f"privileges.hypershift.openshift.io/{privilege}" in str(refused.value.cause)
    # Nor later, on a cluster that is there.
    await team.create(asked("plain", ns, {"note": "mine"}))
    with pytest.raises(Forbidden, match="as it is"):
        await team.patch(k.HOSTEDCLUSTERS, "plain", ns, {"metadata": {"annotations": ASKED[privilege]}})
    with pytest.raises(Forbidden, match="as it is"):
        live = await team.get(k.HOSTEDCLUSTERS, "plain", ns)
        await team.replace({**live, "metadata": {**live["metadata"], "annotations": ASKED[privilege]}})
    # An administrator may; the team may edit such a cluster, and take the privilege away, but not make it another.
    await admin.patch(k.HOSTEDCLUSTERS, "plain", ns, {"metadata": {"annotations": ASKED[privilege]}})
    await team.patch(k.HOSTEDCLUSTERS, "plain", ns, {"metadata": {"annotations": {"note": "still mine"}}})
    with pytest.raises(Forbidden, match="as it is"):
        await team.patch(k.HOSTEDCLUSTERS, "plain", ns, {"metadata": {"annotations": {annotation: "another"}}})
    await team.patch(k.HOSTEDCLUSTERS, "plain", ns, {"metadata": {"annotations": {annotation: None}}})
    await team.delete(k.HOSTEDCLUSTERS, "plain", ns)


async def test_an_image_for_nodes_is_refused_too(guarded: Attacker) -> None:
    pool = crds_support.rendered_pool(guarded.namespace, "workers")
    pool["metadata"]["annotations"] = {names.ANNOTATION_HAPROXY_IMAGE: "evil.example/x:1"}
    with pytest.raises(Forbidden, match="as it is") as refused:
        await guarded.client.create(pool)
    assert "privileges.hypershift.openshift.io/images" in str(refused.value.cause)


async def test_places_that_keep_others_off_are_refused(guarded: Attacker, admin: Client) -> None:
    team, ns = guarded.client, guarded.namespace
    with pytest.raises(Forbidden) as refused:
        await team.create(asked("made", ns, {}, tolerations=TOLERATE_ALL))
    assert "spec.tolerations needs the right" in str(refused.value.cause)
    await team.create(asked("placed", ns, {}))
    await admin.patch(k.HOSTEDCLUSTERS, "placed", ns, {"spec": {"tolerations": TOLERATE_ALL}})
    await team.patch(k.HOSTEDCLUSTERS, "placed", ns, {"spec": {"channel": "x"}})
    with pytest.raises(Forbidden, match="as it is"):
        more = [*TOLERATE_ALL, {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]
        await team.patch(k.HOSTEDCLUSTERS, "placed", ns, {"spec": {"tolerations": more}})
    await team.patch(k.HOSTEDCLUSTERS, "placed", ns, {"spec": {"tolerations": None}})


async def test_who_has_the_right_may_and_only_what_it_names(guarded: Attacker, admin: Client) -> None:
    team, ns = guarded.client, guarded.namespace
    right = {"apiGroups": [names.GROUP], "resources": ["privileges"], "resourceNames": ["images"], "verbs": ["use"]}
    rbac = "rbac.authorization.k8s.io"
    inside = {"name": "images", "namespace": ns}
    await admin.create({"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": inside, "rules": [right]})
    await admin.create(
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": inside,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "images"},
            "subjects": [account("team", ns)],
        }
    )
    await eventually(lambda: accepted(team, asked("images", ns, ASKED["images"])), "the right counts")
    with pytest.raises(Forbidden):
        await team.create(asked("security", ns, ASKED["pod-security"]))


async def test_what_the_administrator_allows_at_install_everybody_may(
    management: ApiServer, guarded: Attacker, admin: Client
) -> None:
    team, ns = guarded.client, guarded.namespace
    install(management, "--allow-privileges=priority-classes")
    install(management)  # running it again keeps the list
    role = await admin.get(k.CLUSTERROLES, privileges.ALLOWED)
    assert [rule["resourceNames"] for rule in role["rules"]] == [["priority-classes"]]
    wanted = asked("allowed", ns, ASKED["priority-classes"])
    await eventually(lambda: accepted(team, wanted), "what is allowed is taken")
    with pytest.raises(Forbidden):
        await team.create(asked("other", ns, ASKED["images"]), dry_run=True)
    install(management, "--allow-privileges=")
    assert not (await admin.get(k.CLUSTERROLES, privileges.ALLOWED)).get("rules")


@pytest.fixture
async def labeller(admin: Client, management: ApiServer) -> AsyncIterator[Client]:
    """Somebody with every right on namespaces, and none on what is in them."""
    await admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "desk"}})
    for obj in (
        service_account("labeller", "desk"),
        cluster_role("labeller", [rule("", "namespaces", ["*"])]),
        cluster_binding("labeller", account("labeller", "desk")),
    ):
        await admin.apply(obj)
    token = await account_token(admin, "labeller", "desk")
    ca = (management.directory / "ca.crt").read_bytes()
    async with Client(ClusterConfig(management.url, ca_pem=ca, auth=UserAuth(token=token))) as made:
        yield made


async def test_nobody_else_says_whose_a_hosted_namespace_is(guarded: Attacker, labeller: Client) -> None:
    """A namespace of the attacker's with the mark of a cluster would get that cluster's keys."""
    live = await guarded.client.create(asked("victim", guarded.namespace, {}))
    forged = {
        names.ANNOTATION_CLUSTER: f"{guarded.namespace}/victim",
        names.ANNOTATION_CLUSTER_UID: live["metadata"]["uid"],
    }
    name = guarded.hosted("victim")
    metadata: Object = {"name": name, "annotations": forged}

    async def refused() -> bool:
        """Rights and policies count a moment after they are written; till then it is only tried."""
        try:
            await labeller.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}, dry_run=True)
        except Forbidden as error:
            return "are the operator's" in str(error.cause)
        return False

    await eventually(refused, "it is refused by name")
    with pytest.raises(Forbidden, match="as it is"):
        await labeller.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    plain: Object = {"name": name, "annotations": {"note": "mine"}}
    await labeller.create({"apiVersion": "v1", "kind": "Namespace", "metadata": plain})
    with pytest.raises(Forbidden, match="as it is"):
        await labeller.patch(k.NAMESPACES, name, None, {"metadata": {"annotations": forged}})
    await labeller.patch(k.NAMESPACES, name, None, {"metadata": {"labels": {"colour": "blue"}}})
