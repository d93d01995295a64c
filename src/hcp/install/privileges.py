"""What a HostedCluster or NodePool may ask for only with a right of its own.

The right is `use` on a name of the resource `privileges.hypershift.openshift.io`, which exists for this purpose alone.
An admission policy asks for it when such a value is added or changed; values that stay, or go, need none, so a team can
edit a cluster that an administrator has given something. Cluster administrators have every right already.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hcp.api import names
from hcp.api.manifests import Object, cluster_binding, cluster_role, group
from hcp.install.options import Options

RESOURCE = "privileges"
VERB = "use"
POLICY = f"privileges.{names.GROUP}"
NAMESPACES_POLICY = f"hosted-namespaces.{names.GROUP}"
# The operator's own: nobody else says whose a hosted namespace is.
HOSTED_NAMESPACES = "hosted-namespaces"
# The role of everybody who may use hosted clusters: the list of `hcp install --allow-privileges`.
ALLOWED = "hypershift-allowed-privileges"
EVERYBODY = "system:authenticated"


@dataclass(frozen=True, slots=True)
class Privilege:
    """Annotations, whole or by how they begin, that need the right of this name."""

    name: str
    annotations: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()


BY_ANNOTATION = (
    Privilege("pod-security", (names.ANNOTATION_POD_SECURITY,)),
    Privilege(
        "priority-classes",
        (
            names.ANNOTATION_CONTROL_PLANE_PRIORITY,
            names.ANNOTATION_API_CRITICAL_PRIORITY,
            names.ANNOTATION_ETCD_PRIORITY,
        ),
    ),
    Privilege(
        "images",
        (
            names.ANNOTATION_CONTROL_PLANE_OPERATOR_IMAGE,
            names.ANNOTATION_CAPI_MANAGER_IMAGE,
            names.ANNOTATION_CAPI_KUBEVIRT_IMAGE,
            names.ANNOTATION_AUTOSCALER_IMAGE,
            names.ANNOTATION_KONNECTIVITY_SERVER_IMAGE,
            names.ANNOTATION_KONNECTIVITY_AGENT_IMAGE,
            names.ANNOTATION_HAPROXY_IMAGE,
            names.ANNOTATION_IMAGE_OVERRIDES,
        ),
    ),
    Privilege("resource-requests", prefixes=(names.ANNOTATION_RESOURCE_OVERRIDE_PREFIX,)),
    Privilege("kept-namespaces", (names.ANNOTATION_SKIP_DELETE_NAMESPACE,)),
)
TOLERATIONS = "tolerations"


def policies() -> list[Object]:
    """The two policies and their bindings."""
    clusters = [*(_by_annotation(one) for one in BY_ANNOTATION), _tolerations()]
    marks = [names.ANNOTATION_CLUSTER, names.ANNOTATION_CLUSTER_UID]
    return [
        *_policy(
            POLICY,
            {"apiGroups": [names.GROUP], "apiVersions": ["*"], "resources": ["hostedclusters", "nodepools"]},
            [
                ("before", "oldObject == null ? {} : oldObject.metadata.?annotations.orValue({})"),
                ("after", "object.metadata.?annotations.orValue({})"),
                ("new", "variables.after.filter(k, variables.before[?k] != optional.of(variables.after[k]))"),
                ("tolerated", "oldObject == null ? [] : oldObject.?spec.?tolerations.orValue([])"),
            ],
            clusters,
        ),
        *_policy(
            NAMESPACES_POLICY,
            {"apiGroups": [""], "apiVersions": ["*"], "resources": ["namespaces"]},
            [
                ("before", "oldObject == null ? {} : oldObject.metadata.?annotations.orValue({})"),
                ("after", "object.metadata.?annotations.orValue({})"),
            ],
            [
                {
                    "expression": f"{_list(marks)}.all(k, variables.before[?k] == variables.after[?k]) || "
                    f"{_may(HOSTED_NAMESPACES, namespaced=False)}",
                    "message": f"the annotations {' and '.join(marks)} of a namespace are the operator's: they say "
                    "whose control plane it holds",
                    "reason": "Forbidden",
                }
            ],
        ),
    ]


def allowed(options: Options) -> list[Object]:
    """What everybody may use, by the decision of whoever installs; written also when it is nothing, to take it back."""
    listed = sorted(options.allowed_privileges)
    rules = [_rule(listed)] if listed else []
    return [cluster_role(ALLOWED, rules), cluster_binding(ALLOWED, group(EVERYBODY))]


def operator_rule() -> Object:
    return _rule([HOSTED_NAMESPACES])


def objects(options: Options) -> list[Object]:
    return [*(policies() if options.policies else []), *allowed(options)]


def _rule(listed: list[str]) -> Object:
    return {"apiGroups": [names.GROUP], "resources": [RESOURCE], "resourceNames": listed, "verbs": [VERB]}


def _by_annotation(privilege: Privilege) -> Object:
    tests = [f"k in {_list(privilege.annotations)}"] if privilege.annotations else []
    tests += [f"k.startsWith({prefix!r})" for prefix in privilege.prefixes]
    touched = f"variables.new.filter(k, {' || '.join(tests)})"
    return {
        "expression": f"{touched}.size() == 0 || {_may(privilege.name)}",
        "messageExpression": f"'annotation ' + {touched}.join(', ') + {_advice(privilege.name)!r}",
        "reason": "Forbidden",
    }


def _tolerations() -> Object:
    added = "object.?spec.?tolerations.orValue([]).all(t, t in variables.tolerated)"
    return {
        "expression": f"{added} || {_may(TOLERATIONS)}",
        "message": f"spec.tolerations{_advice(TOLERATIONS)}",
        "reason": "Forbidden",
    }


def _advice(name: str) -> str:
    return (
        f" needs the right to {VERB} {RESOURCE}.{names.GROUP}/{name}: an administrator gives it by a Role, "
        f"or to everybody with hcp install --allow-privileges {name}"
    )


def _may(name: str, *, namespaced: bool = True) -> str:
    where = ".namespace(request.namespace)" if namespaced else ""
    return f"authorizer.group({names.GROUP!r}).resource({RESOURCE!r}){where}.name({name!r}).check({VERB!r}).allowed()"


def _list(words: Iterable[str]) -> str:
    return f"[{', '.join(repr(word) for word in words)}]"


def _policy(name: str, what: Object, variables: list[tuple[str, str]], validations: list[Object]) -> list[Object]:
    group_version = "admissionregistration.k8s.io/v1"
    rules = [{**what, "operations": ["CREATE", "UPDATE"]}]
    return [
        {
            "apiVersion": group_version,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": rules},
                "variables": [{"name": key, "expression": text} for key, text in variables],
                "validations": validations,
            },
        },
        {
            "apiVersion": group_version,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        },
    ]
