"""What an installation consists of."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hcp.api import names
from hcp.errors import HcpError
from hcp.install import base, manifests, operator, privileges, rights
from hcp.install.options import Options

FULL = Options(
    image="registry.example.com/hcp:1",
    router=True,
    router_domain="apps.example.com",
    pull_secret=b'{"auths": {}}',
    trust_bundle="-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
    default_release="registry.example.com/release:1.36.3",
    admin_rbac=True,
    monitoring="All",
)


def find(kind: str, name: str, options: Options = FULL) -> dict[str, Any]:
    for obj in manifests.resources(options, monitors=True):
        if obj["kind"] == kind and obj["metadata"]["name"] == name:
            return obj
    raise AssertionError(f"no {kind} {name}")


def pods() -> list[dict[str, Any]]:
    return [one["spec"]["template"]["spec"] for one in manifests.resources(FULL) if one["kind"] == "Deployment"]


def test_the_same_options_give_the_same_manifests() -> None:
    assert manifests.resources(FULL) == manifests.resources(FULL)
    assert manifests.crds(FULL) == manifests.crds(FULL)


def test_order_namespace_before_what_is_in_it_and_rights_before_processes() -> None:
    seen: set[str] = set()
    kinds = []
    for obj in manifests.resources(FULL):
        kinds.append(obj["kind"])
        if obj["kind"] == "Namespace":
            seen.add(obj["metadata"]["name"])
        elif obj["metadata"].get("namespace"):
            assert obj["metadata"]["namespace"] in seen
    assert kinds.index("ClusterRoleBinding") < kinds.index("Deployment")


def test_nothing_is_named_twice() -> None:
    seen = [
        (obj["kind"], obj["metadata"].get("namespace"), obj["metadata"]["name"]) for obj in manifests.resources(FULL)
    ]
    assert len(seen) == len(set(seen))


def test_priorities() -> None:
    found = {one["metadata"]["name"]: (one["value"], one["preemptionPolicy"]) for one in base.priority_classes()}
    assert found == {
        "hypershift-control-plane": (100000000, "Never"),
        "hypershift-etcd": (100002000, "Never"),
        "hypershift-api-critical": (100001000, "Never"),
        "hypershift-operator": (100003000, "PreemptLowerPriority"),
    }


@pytest.mark.parametrize("pod", pods(), ids=lambda pod: pod["serviceAccountName"])
def test_every_pod_is_restricted(pod: dict[str, Any]) -> None:
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    for container in pod["containers"]:
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["image"] == FULL.image
        assert container["resources"]["requests"]


def test_the_ignition_server_reads_only_its_own_namespace() -> None:
    bound = [
        one
        for one in manifests.resources(FULL)
        if one["kind"].endswith("RoleBinding") and one["subjects"][0]["name"] == "ignition-server"
    ]
    assert [one["kind"] for one in bound] == ["RoleBinding"]


def test_nobody_may_do_everything() -> None:
    for obj in manifests.resources(FULL):
        for rule in obj.get("rules", []):
            assert "*" not in rule["apiGroups"], obj["metadata"]["name"]
            assert "escalate" not in rule["verbs"]
            assert "impersonate" not in rule["verbs"]


def test_pods_can_only_be_reached_where_they_have_to_be() -> None:
    found = {
        one["metadata"]["name"]: one["spec"] for one in manifests.resources(FULL) if one["kind"] == "NetworkPolicy"
    }
    assert found["default-deny"] == {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": []}
    assert found["ignition-server"]["ingress"][0] == {"ports": [{"protocol": "TCP", "port": 9090}]}
    assert all("from" in rule for rule in found["operator-metrics"]["ingress"])


def test_supported_versions_name_the_default_release() -> None:
    found = find("ConfigMap", names.SUPPORTED_VERSIONS)
    assert json.loads(found["data"]["supported-versions"]) == {"versions": list(names.SUPPORTED_KUBERNETES)}
    assert found["data"][names.DEFAULT_RELEASE_KEY] == FULL.default_release
    assert found["metadata"]["labels"][names.LABEL_SUPPORTED_VERSIONS] == "true"
    assert names.DEFAULT_RELEASE_KEY not in base.supported_versions(Options())["data"]


def test_the_router_is_only_there_when_asked_for() -> None:
    assert "routes.route.openshift.io" in [crd["metadata"]["name"] for crd in manifests.crds(FULL)]
    assert "routes.route.openshift.io" not in [crd["metadata"]["name"] for crd in manifests.crds(Options())]
    assert not [one for one in manifests.resources(Options()) if one["metadata"]["name"] == "router-default"]
    router = find("Deployment", "router-default")
    assert "--domain=apps.example.com" in router["spec"]["template"]["spec"]["containers"][0]["args"]
    assert manifests.INSTALLED in router["metadata"]["annotations"]


def test_the_operator_knows_where_the_router_takes_connections_by_name() -> None:
    ports = {one["name"]: one["port"] for one in find("Service", "router-default")["spec"]["ports"]}
    pod = find("Deployment", "router-default")["spec"]["template"]["spec"]["containers"][0]
    assert ports == {"http": 80, "https": 443, "named": 6443}
    assert "--named-port=8444" in pod["args"]
    assert {"name": "named", "containerPort": 8444, "protocol": "TCP"} in pod["ports"]
    (operator,) = [
        one
        for one in manifests.resources(Options(named_route_port=6443))
        if one["kind"] == "Deployment" and one["metadata"]["name"] == "operator"
    ]
    assert "--named-route-port=6443" in operator["spec"]["template"]["spec"]["containers"][0]["args"]


def test_given_files_reach_the_operator() -> None:
    container = find("Deployment", "operator")["spec"]["template"]["spec"]["containers"][0]
    assert {"name": "SSL_CERT_FILE", "value": "/etc/hcp/trust/ca-bundle.crt"} in container["env"]
    assert find("ServiceAccount", "operator")["imagePullSecrets"] == [{"name": "pull-secret"}]
    assert find("Secret", "pull-secret")["type"] == "kubernetes.io/dockerconfigjson"


def test_environment_is_trimmed_and_overrides_nothing() -> None:
    options = Options(environment={" A ": " b ", "MY_NAME": "x", "": "y", "C": " "})
    env = operator.deployment(options)["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": "A", "value": "b"} in env
    assert [one["name"] for one in env].count("MY_NAME") == 1
    assert not [one for one in env if one["name"] in ("", "C")]


def test_the_service_that_the_owner_of_a_base_domain_makes_is_read_by_its_name() -> None:
    verbs = [set(one["verbs"]) for one in rights.operator_rules() if "services" in one["resources"]]
    assert any("get" in one for one in verbs)


def test_admin_roles_are_optional() -> None:
    assert find("ClusterRole", "hypershift-readers")
    assert not [one for one in rights.objects(Options()) if one["metadata"]["name"] == "hypershift-readers"]


@pytest.mark.parametrize(
    ("options", "words"),
    [({"namespace": "other"}, "namespace"), ({"pull_policy": "Sometimes"}, "pull policy"), ({"image": "a b"}, "image")],
)
def test_bad_options(options: dict[str, str], words: str) -> None:
    with pytest.raises(HcpError, match=words):
        Options(**options)  # type: ignore[arg-type]


def test_every_privilege_has_a_rule_and_a_place_in_the_list() -> None:
    listed = {one.name for one in privileges.BY_ANNOTATION} | {privileges.TOLERATIONS}
    assert listed == set(names.PRIVILEGES)
    rules = find("ValidatingAdmissionPolicy", privileges.POLICY)["spec"]["validations"]
    for name in names.PRIVILEGES:
        assert any(f".name({name!r}).check('use')" in one["expression"] for one in rules)


def test_without_policies_none_is_rendered() -> None:
    kinds = {obj["kind"] for obj in manifests.resources(Options(policies=False))}
    assert "ValidatingAdmissionPolicy" not in kinds
    assert find("ClusterRole", privileges.ALLOWED)["rules"] == []
    allowed = find("ClusterRole", privileges.ALLOWED, Options(allowed_privileges=("images",)))
    assert allowed["rules"][0]["resourceNames"] == ["images"]


def test_every_annotation_that_gives_an_image_a_priority_or_pod_security_is_guarded() -> None:
    guarded = {name for one in privileges.BY_ANNOTATION for name in one.annotations}
    known = {value for key, value in vars(names).items() if key.startswith("ANNOTATION_")}
    catalogs = {name for name in known if "catalog" in name}  # of the guest, and without effect
    told = {names.ANNOTATION_SKIP_RELEASE_VALIDATION}
    powers = {name for name in known if any(word in name for word in ("image", "priority", "pod-security"))}
    assert powers - catalogs - told <= guarded
