"""What an API server was asked, from its audit log, held against the rights that were given."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

# apiGroup, resource with its subresource, verb
Right = tuple[str, str, str]
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [{"level": "Metadata"}],
}


@dataclass(frozen=True)
class Asked:
    """One request about an object."""

    user: str
    right: Right
    namespace: str
    name: str
    status: int


def flags(directory: Path) -> list[str]:
    """How kube-apiserver is told to keep the log that `read` reads."""
    policy = directory / "audit-policy.yaml"
    policy.write_text(yaml.safe_dump(POLICY))
    return [f"--audit-policy-file={policy}", f"--audit-log-path={directory / 'audit.log'}"]


def read(directory: Path) -> Iterator[Asked]:
    for line in (directory / "audit.log").read_text().splitlines():
        event = json.loads(line)
        what = event.get("objectRef") or {}
        if not what.get("resource"):
            continue
        kind = "/".join(part for part in (what["resource"], what.get("subresource")) if part)
        user = (event.get("impersonatedUser") or event["user"])["username"]
        status = int((event.get("responseStatus") or {}).get("code") or 0)
        # Applying what is not there yet takes the right to create it, too.
        for verb in ("patch", "create") if (event["verb"], status) == ("patch", 201) else (event["verb"],):
            right = (what.get("apiGroup", ""), kind, verb)
            yield Asked(user, right, what.get("namespace", ""), what.get("name", ""), status)


def used(requests: Iterable[Asked], user: str) -> set[Right]:
    """The rights that this user's requests needed and had; what follows a kind that is not installed would watch it."""
    mine = [one for one in requests if one.user == user and one.status not in (401, 403)]
    absent = {(*one.right[:2], "watch") for one in mine if one.right[2] == "list" and one.status == 404}
    return {one.right for one in mine} | absent


def refused(requests: Iterable[Asked], user: str) -> set[tuple[Right, str]]:
    """What this user asked for in vain, and where."""
    return {(one.right, one.namespace) for one in requests if one.user == user and one.status == 403}


def granted(rules: Iterable[Mapping[str, Any]]) -> set[Right]:
    """Every single right of some rules; a rule with a star has no end and cannot be compared."""
    found: set[Right] = set()
    for rule in rules:
        assert "*" not in (*rule["apiGroups"], *rule["resources"], *rule["verbs"]), f"a star in {rule}"
        found |= {(g, r, v) for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]}
    return found


def listed(rights: Iterable[Right]) -> list[str]:
    """In words, for a failing test."""
    return sorted(f"{verb} {kind}{'.' if group else ''}{group}" for group, kind, verb in rights)
