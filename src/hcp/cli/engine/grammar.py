"""The structured flag values of `create cluster` and `create nodepool`.

Each function takes what was typed and returns the part of the object it stands for. What cannot be read is refused
with the flag, the value and what is allowed.
"""

from __future__ import annotations

from hcp.api.names import subdomain_problem
from hcp.cli.engine.command import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ALNUM = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
MAX_MAPPINGS = 50
MAX_DEVICES = 10
MAX_NETWORKS = 20
ACCESS_MODES = ("ReadWriteOnce", "ReadWriteMany", "ReadOnly", "ReadWriteOncePod")
OPERATORS = ("Exists", "Equal", "")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute", "")
DEVICE_FORM = "NAME or NAME,count:N with N of at least 1"
NETWORK_FORM = "name:NAMESPACE/NETWORK"
TOLERATION_FORM = (
    "field=value[,field=value] with the fields key, value, operator (Exists, Equal), effect (NoSchedule, "
    "PreferNoSchedule, NoExecute) and tolerationSeconds (a whole number)"
)


def refuse(flag: str, value: str, why: str, allowed: str) -> UsageError:
    return UsageError(f'invalid argument "{value}" for "--{flag}" flag', cause=why, hint=f"--{flag} takes {allowed}")


def class_mapping(flag: str, kind: str, suffix: str, value: str) -> dict[str, str]:
    """`INFRA/GUEST[,group=G]` for storage classes (suffix StorageClassName) and volume snapshot classes."""
    form = f"INFRA/GUEST or INFRA/GUEST,group=GROUP, the names of {kind} classes"
    parts = value.split("/")
    if len(parts) != 2:
        raise refuse(flag, value, f"invalid {kind} mapping [{value}]: exactly one / is needed", form)
    guest, *options = parts[1].split(",")
    group = ""
    for option in options:
        key, equals, text = option.partition("=")
        if not equals or "=" in text:
            raise refuse(flag, value, f"invalid {kind} mapping [{value}]: option {option!r} is not group=GROUP", form)
        if key.strip().lower() != "group":
            raise refuse(flag, value, f"invalid {kind} mapping [{value}]: unknown option {key.strip()!r}", form)
        group = group or text
    for side, name in (("infra", parts[0]), ("guest", guest)):
        problem = subdomain_problem(name)
        if problem:
            raise refuse(flag, value, f"invalid {kind} mapping [{value}]: the {side} class {name!r} {problem}", form)
    entry = {f"infra{suffix}": parts[0], f"guest{suffix}": guest}
    if group:
        entry["group"] = group
    return entry


def host_device(value: str) -> dict[str, Any]:
    """`NAME[,count:N]`; without a count one device is attached."""
    flag = "host-device-name"
    name, comma, option = value.partition(",")
    if not name:
        raise refuse(flag, value, f"invalid host device setting [{value}]: the device name is empty", DEVICE_FORM)
    count = 1
    if comma:
        key, colon, text = option.partition(":")
        if key != "count" or not colon or ":" in text or "," in text:
            raise refuse(flag, value, f"invalid host device setting [{value}]", DEVICE_FORM)
        digits = text[1:] if text[:1] in ("-", "+") else text
        if not (digits.isascii() and digits.isdigit()) or len(digits) > 9:
            raise refuse(flag, value, f"could not parse the device count [{value}]", DEVICE_FORM)
        count = int(text)
        if count < 1:
            raise refuse(flag, value, f"host device count must be at least 1, got [{count}]", DEVICE_FORM)
    return {"deviceName": name, "count": count}


def additional_network(value: str) -> dict[str, str]:
    """`name:NAMESPACE/NETWORK`, written as a list of parameters of which only `name` exists."""
    flag = "additional-network"
    prefix = f'failed to parse "--{flag}"'
    if not value:
        raise refuse(flag, value, f"{prefix}: the parameters are empty", NETWORK_FORM)
    name, unknown = "", []
    for piece in value.split(","):
        key, colon, text = piece.partition(":")
        if not colon:
            raise refuse(flag, value, f"{prefix}: {piece!r} needs a colon between parameter and value", NETWORK_FORM)
        if key == "name":
            name = text
        else:
            unknown.append(piece)
    if unknown:
        raise refuse(flag, value, f"{prefix}: unknown param(s): {','.join(unknown)}", NETWORK_FORM)
    parts = name.split("/")
    if len(parts) > 2 or not all(parts):
        raise refuse(flag, value, f"{prefix}: {name!r} is not NAMESPACE/NETWORK", NETWORK_FORM)
    for part in parts:
        problem = subdomain_problem(part)
        if problem:
            raise refuse(flag, value, f"{prefix}: {part!r} {problem}", NETWORK_FORM)
    return {"name": name}


def toleration(value: str) -> dict[str, Any]:
    """`field=value[,field=value]`; field names, operators and effects in any case."""
    flag = "toleration"
    found: dict[str, Any] = {}
    for piece in value.split(","):
        parts = piece.split("=")
        if len(parts) != 2:
            raise refuse(flag, value, f"invalid toleration cli argument. [{value}]", TOLERATION_FORM)
        field, text = parts[0].strip().lower(), parts[1].strip()
        if field in ("key", "value"):
            found[field] = text
        elif field == "operator":
            found[field] = _any_case(flag, value, "operator", text, OPERATORS)
        elif field == "effect":
            found[field] = _any_case(flag, value, "effect", text, EFFECTS)
        elif field == "tolerationseconds":
            digits = text[1:] if text[:1] in ("-", "+") else text
            if not (digits.isascii() and digits.isdigit()) or len(digits) > 18:
                raise refuse(flag, value, f"failed to parse tolerationSeconds [{text}]", TOLERATION_FORM)
            found["tolerationSeconds"] = int(text)
        else:
            raise refuse(flag, value, f"unknown field [{parts[0].strip()}]", TOLERATION_FORM)
    # The API leaves empty text fields out of the object.
    return {field: text for field, text in found.items() if text != ""}


def _any_case(flag: str, value: str, what: str, text: str, allowed: tuple[str, ...]) -> str:
    for known in allowed:
        if text.lower() == known.lower():
            return known
    raise refuse(flag, value, f"unknown {what} type [{text}]", TOLERATION_FORM)


def key_values(flag: str, noun: str, values: list[str]) -> dict[str, str]:
    """`--annotations` and `--labels`: KEY=VALUE, everything after the first equals sign is the value."""
    found = {}
    for value in values:
        key, equals, text = value.partition("=")
        if not equals:
            raise refuse(flag, value, f"invalid {noun}: {value}: there is no equals sign", "KEY=VALUE, repeated")
        if not key:
            raise refuse(flag, value, f"invalid {noun}: {value}: the key is empty", "KEY=VALUE, repeated")
        problem = key_problem(key) or (label_value_problem(text) if noun == "label" else "")
        if problem:
            raise refuse(flag, value, f"invalid {noun}: {value}: {problem}", "KEY=VALUE, repeated")
        found[key] = text
    return found


def selector(flag: str, pairs: dict[str, str]) -> dict[str, str]:
    """A map of label keys and values, checked so that the API cannot refuse it later."""
    for key, text in pairs.items():
        problem = key_problem(key) or label_value_problem(text)
        if problem:
            raise refuse(flag, f"{key}={text}", problem, "label pairs KEY=VALUE[,KEY=VALUE]")
    return pairs


def key_problem(key: str) -> str:
    """Why a label or annotation key is not one, or nothing."""
    prefix, slash, name = key.rpartition("/")
    if slash and (problem := subdomain_problem(prefix)):
        return f"the key's prefix {prefix!r} {problem}"
    if not name or not _qualified(name):
        return f"the key {key!r} needs letters, digits, '-', '_', '.', a letter or digit at both ends, at most 63"
    return ""


def label_value_problem(value: str) -> str:
    if value and not _qualified(value):
        return f"the value {value!r} needs letters, digits, '-', '_', '.', a letter or digit at both ends, at most 63"
    return ""


def _qualified(text: str) -> bool:
    return len(text) <= 63 and text[0] in ALNUM and text[-1] in ALNUM and all(c in ALNUM or c in "-_." for c in text)


def access_modes(value: str) -> list[str]:
    """A comma list of access modes of the root volume."""
    flag = "root-volume-access-modes"
    if not value:
        return []
    modes = value.split(",")
    for mode in modes:
        if mode not in ACCESS_MODES:
            raise refuse(flag, value, f"{mode!r} is no access mode", f"a comma list of {', '.join(ACCESS_MODES)}")
    return modes


def at_most(flag: str, values: list[str], limit: int) -> None:
    if len(values) > limit:
        raise UsageError(
            f"--{flag} is given {len(values)} times", cause=f"the last one is {values[-1]!r}", hint=f"at most {limit}"
        )
