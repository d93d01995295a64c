"""What is remembered of storing everything anew: for which move, which kinds are done, and where to go on.

It lies in the hosted namespace, so that whoever goes on, after a restart too, begins where the last one ended, and
does nothing where all is done.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hcp.api import names
from hcp.api.paths import at
from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube.resources import CONFIGMAPS

NAME = "storage-migration"
_KEY = "state.json"


@dataclass(frozen=True)
class Move:
    """A Kubernetes minor that a cluster has reached."""

    minor: str
    # Tells this arrival from another one at the same minor.
    mark: str
    # The minor it came from; empty when it came from one that was never complete.
    before: str = ""


@dataclass(frozen=True)
class Record:
    """How far it is."""

    mark: str = ""
    minor: str = ""
    complete: bool = False
    # Kind → fingerprint of the version that all its objects lie in.
    done: Mapping[str, str] = field(default_factory=dict)
    # The kind that is being gone through, and where its next page begins.
    kind: str = ""
    after: str = ""
    # Kind → why objects of it, or all, are not stored anew.
    refused: Mapping[str, str] = field(default_factory=dict)

    def following(self, move: Move) -> Record:
        """The record to go on with: what is known of the minor just left stays true for kinds that it did not move."""
        if self.mark == move.mark:
            return self
        known = self.complete and self.minor == move.before
        return Record(move.mark, move.minor, done=self.done if known else {})

    def with_done(self, kind: str, written: str) -> Record:
        return replace(self, done={**self.done, kind: written})


async def load(client: Client, namespace: str) -> Record:
    """An empty one where there is none, or nobody can read it: then everything is looked at once more."""
    live = await client.get_or_none(CONFIGMAPS, NAME, namespace)
    try:
        return Record(**json.loads((at(live, "data") or {}).get(_KEY, "{}")))
    except (ValueError, TypeError):
        return Record()


async def save(client: Client, namespace: str, record: Record) -> None:
    try:
        await client.apply(manifest(namespace, record))
    except HcpError as error:
        raise HcpError("How far the migration of what is stored is cannot be written down", cause=str(error)) from error


def manifest(namespace: str, record: Record) -> dict[str, Any]:
    state = {
        "mark": record.mark,
        "minor": record.minor,
        "complete": record.complete,
        "done": dict(sorted(record.done.items())),
        "kind": record.kind,
        "after": record.after,
        "refused": dict(sorted(record.refused.items())),
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": NAME,
            "namespace": namespace,
            "labels": {names.LABEL_CONTROL_PLANE_NAMESPACE: namespace, names.LABEL_MANAGED_BY: names.MANAGED_BY},
        },
        "data": {_KEY: json.dumps(state)},
    }
