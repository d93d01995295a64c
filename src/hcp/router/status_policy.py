"""Who may write what the router decided: pure builders.

A Route's status says which host it holds and since when, and the router believes it after a restart. Whoever has all
rights in one namespace could write there too; this takes only those at their word who may do so in every namespace.
"""

from __future__ import annotations

from hcp.api.manifests import Object

NAME = "hcp-route-claims"
_ALLOWED = "authorizer.group('route.openshift.io').resource('routes').subresource('status').check('update').allowed()"
_KEPT = "has(oldObject.status) == has(object.status) && (!has(object.status) || oldObject.status == object.status)"


def objects() -> list[Object]:
    rule = {
        "apiGroups": ["route.openshift.io"],
        "apiVersions": ["v1"],
        "operations": ["UPDATE"],
        "resources": ["routes/status"],
    }
    refusal = {
        "expression": f"({_KEPT}) || {_ALLOWED}",
        "message": "the status of a Route says which host it holds: only its router writes it",
        "reason": "Forbidden",
    }
    common = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": NAME}}
    return [
        {
            **common,
            "kind": "ValidatingAdmissionPolicy",
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [rule]},
                "validations": [refusal],
            },
        },
        {
            **common,
            "kind": "ValidatingAdmissionPolicyBinding",
            "spec": {"policyName": NAME, "validationActions": ["Deny"]},
        },
    ]
