"""Who may write what the router decided: pure builders.

A Route's status says which host it holds and since when, and the router believes it after a restart. Whoever has all
rights in one namespace could write there too; this takes only those at their word who may do so in every namespace.
"""

from __future__ import annotations

from collections.abc import Iterable

from hcp.api.manifests import Object

NAME = "hcp-route-claims"
# Who may write the status of every Route is the router of the cluster.
IS_ROUTER = "authorizer.group('route.openshift.io').resource('routes').subresource('status').check('update').allowed()"
_KEPT = "has(oldObject.status) == has(object.status) && (!has(object.status) || oldObject.status == object.status)"


def objects() -> list[Object]:
    refusal = {
        "expression": f"({_KEPT}) || {IS_ROUTER}",
        "message": "the status of a Route says which host it holds: only its router writes it",
        "reason": "Forbidden",
    }
    return policy(NAME, "routes/status", ["UPDATE"], [refusal])


def policy(name: str, resource: str, operations: list[str], refusals: Iterable[Object]) -> list[Object]:
    """A policy about Routes, and its binding."""
    rule = {
        "apiGroups": ["route.openshift.io"],
        "apiVersions": ["v1"],
        "operations": operations,
        "resources": [resource],
    }
    common = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    return [
        {
            **common,
            "kind": "ValidatingAdmissionPolicy",
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [rule]},
                "validations": list(refusals),
            },
        },
        {
            **common,
            "kind": "ValidatingAdmissionPolicyBinding",
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        },
    ]
