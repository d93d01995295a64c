"""A change that the API server makes to new objects of one kind by itself: a policy and what puts it to work."""

from __future__ import annotations

from hcp.api.manifests import Object


def on_creation(name: str, kind: Object, condition: tuple[str, str], patch: str) -> list[Object]:
    """`condition`: a name and an expression. `patch`: an expression for a JSON patch; if it fails, nothing changes."""
    common = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    policy = {
        "matchConstraints": {"resourceRules": [{**kind, "operations": ["CREATE"]}]},
        "matchConditions": [{"name": condition[0], "expression": condition[1]}],
        "failurePolicy": "Ignore",
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
    }
    return [
        {**common, "kind": "MutatingAdmissionPolicy", "spec": policy},
        {**common, "kind": "MutatingAdmissionPolicyBinding", "spec": {"policyName": name}},
    ]
