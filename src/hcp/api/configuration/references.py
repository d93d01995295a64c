"""References as the configuration kinds of OpenShift write them: a name that has to be there."""

from __future__ import annotations

from hcp.api.schema import MAX_NAME, Schema, obj, string


def named(doc: str) -> Schema:
    return obj({"name": string("Name of the object.", max_len=MAX_NAME)}, doc, required=("name",))
