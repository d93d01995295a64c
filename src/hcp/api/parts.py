"""Pieces of schema that several kinds share."""

from __future__ import annotations

from collections.abc import Iterable

from hcp.api.schema import (
    DNS_SUBDOMAIN_PATTERN,
    MAX_NAME,
    Rule,
    Schema,
    array,
    integer,
    mapping,
    obj,
    rule,
    string,
    time,
)

PLATFORMS = ("AWS", "Azure", "IBMCloud", "KubeVirt", "Agent", "PowerVS", "None", "OpenStack", "GCP")

_IPV4 = r"((25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])"
_IPV6 = r"[0-9a-fA-F]{0,4}(:[0-9a-fA-F]{0,4}){2,7}(:" + _IPV4 + r")?"
CIDR_PATTERN = rf"^({_IPV4}/([0-9]|[12][0-9]|3[0-2])|{_IPV6}/([0-9]|[1-9][0-9]|1[01][0-9]|12[0-8]))$"
IP_PATTERN = rf"^({_IPV4}|{_IPV6})$"
_HOST_PATTERN = r"[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?)*"
HOST_OR_IP_PATTERN = rf"^({_IPV4}|{_IPV6}|{_HOST_PATTERN})$"
# As they stand inside a CEL rule, where a backslash is written twice.
_DOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
LABEL_KEY = rf"^({_DOMAIN}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?$"
LABEL_VALUE = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"


def cidr(doc: str = "") -> Schema:
    return string(doc, min_len=1, max_len=50, pattern=CIDR_PATTERN)


def hostname(doc: str = "", *, min_len: int | None = 1, rules: Iterable[Rule] = ()) -> Schema:
    return string(doc, min_len=min_len, max_len=MAX_NAME, pattern=DNS_SUBDOMAIN_PATTERN, rules=rules)


def local_ref(doc: str, *, rules: Iterable[Rule] = ()) -> Schema:
    """A reference by name inside the object's own namespace; an empty name means no reference."""
    return obj({"name": string("Name of the object.", max_len=MAX_NAME, default="")}, doc, rules=rules, atomic=True)


def key_ref(doc: str, *, rules: Iterable[Rule] = ()) -> Schema:
    """A reference to one key of a Secret."""
    fields = {
        "name": string("Name of the Secret.", max_len=MAX_NAME),
        "key": string("Key inside the Secret.", max_len=MAX_NAME),
    }
    return obj(fields, doc, required=("name", "key"), rules=rules)


def release(doc: str) -> Schema:
    image = string(
        "Pull specification of a release image.",
        min_len=1,
        max_len=MAX_NAME,
        rules=[rule(r"self.matches('^\\w\\S+$')", "image must be a pull specification without spaces")],
    )
    return obj({"image": image}, doc, required=("image",))


def paused_until() -> Schema:
    return string(
        "Stops reconciliation until a date in RFC3339 form, or for as long as it is true.",
        max_len=64,
        rules=[
            rule(
                "self == '' || self in ['true', 'false', 'True', 'False'] || self.matches("
                r"'^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$')",
                "pausedUntil must be a date in RFC3339 format or one of true, false, True, False",
            )
        ],
    )


def tolerations(doc: str) -> Schema:
    fields = {
        "key": string("Taint key; empty with operator Exists means every taint.", max_len=317),
        "operator": string("How the value is compared.", enum=("Exists", "Equal", "Lt", "Gt")),
        "value": string("Taint value.", max_len=MAX_NAME),
        "effect": string("Taint effect; empty means all.", enum=("", "NoSchedule", "PreferNoSchedule", "NoExecute")),
        "tolerationSeconds": integer("How long NoExecute is tolerated.", maximum=2**53, fmt="int64"),
    }
    return array(obj(fields), doc, max_items=25)


def labels(doc: str, limit: int) -> Schema:
    return mapping(string(max_len=317), doc, max_props=limit)


def taint() -> Schema:
    fields = {
        "key": string(
            "Key of the taint.",
            min_len=1,
            max_len=MAX_NAME,
            rules=[rule(f"self.matches('{LABEL_KEY}')", "key must be a qualified name such as example.org/gpu")],
        ),
        "value": string(
            "Value of the taint.",
            max_len=MAX_NAME,
            rules=[rule(f"self.matches('{LABEL_VALUE}')", "value must be letters, digits, -, _ and .")],
        ),
        "effect": string("What it does.", enum=("NoSchedule", "PreferNoSchedule", "NoExecute")),
    }
    return obj(fields, required=("key", "effect"))


def conditions() -> Schema:
    """Standard conditions, one per type."""
    fields = {
        "type": string("What the condition is about.", min_len=1, max_len=316),
        "status": string("True, False or Unknown.", enum=("True", "False", "Unknown")),
        "reason": string(
            "One word for machines.", min_len=1, max_len=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
        ),
        "message": string("A sentence for people.", max_len=32768),
        "lastTransitionTime": time("When the status last changed."),
        "observedGeneration": integer("The generation it speaks about.", minimum=0, fmt="int64"),
    }
    item = obj(fields, required=("type", "status", "reason", "message", "lastTransitionTime"))
    return array(item, "What is known about the object.", max_items=100, keys=("type",))


def desired_release(doc: str) -> Schema:
    fields = {
        "version": string("Version of the release."),
        "image": string("Pull specification of the release."),
        "url": string("Page about the release."),
        "channels": array(string(), "Channels that hold the release."),
        "architecture": string("Architecture the release was picked for."),
    }
    return obj(fields, doc, keep_unknown=True)


def version_history() -> Schema:
    fields = {
        "state": string("Completed, or Partial while it is being rolled out.", enum=("Completed", "Partial")),
        "startedTime": time("When the roll-out began."),
        "completionTime": {**time("When it was complete; null before that."), "nullable": True},
        "version": string("Version of the release."),
        "image": string("Pull specification of the release."),
        "verified": {"type": "boolean", "description": "Whether the release's signature was checked."},
        "acceptedRisks": string("Checks that were overridden."),
    }
    item = obj(fields, required=("state", "startedTime", "image"))
    return array(item, "Releases that were rolled out, newest first.", max_items=100)


def version_status(doc: str, *, full: bool) -> Schema:
    fields: dict[str, Schema] = {
        "desired": desired_release("The release that is being reconciled to."),
        "history": version_history(),
        "observedGeneration": integer("The generation it speaks about.", fmt="int64"),
    }
    if full:
        update = obj({}, keep_unknown=True)
        fields["availableUpdates"] = {
            **array(update, "Releases this one may be upgraded to."),
            "nullable": True,
        }
        fields["conditionalUpdates"] = array(update, "Releases with known risks.")
    return obj(fields, doc)


def endpoint(doc: str) -> Schema:
    fields = {"host": string("Host name or address."), "port": integer("Port.")}
    return obj(fields, doc, required=("host", "port"))
