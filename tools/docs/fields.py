"""A page for each kind of the API, out of the schema: every field with its meaning, and what a change of it does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tools.docs.markdown import cell, code, table

from hcp.api import generate
from hcp.api.effects import effect
from hcp.api.schema import DURATION_PATTERN
from hcp.hostedcluster import ignored_fields

FOLDER = "reference"
INDEX = f"{FOLDER}/fields.md"
Schema = dict[str, Any]
FIXED = "cannot change"
EMPTY = '""'
OTHER_PLATFORMS = frozenset(
    f"platform.{name}" for name in ("aws", "azure", "ibmcloud", "agent", "powervs", "openstack", "gcp")
)
# Rules of a spec as a whole that keep one of its fields.
FIXED_BY_SPEC = {"HostedCluster": frozenset({"services"})}
WITHOUT_EFFECT = {"HostedCluster": frozenset(path for path, _ in ignored_fields.UNACTED)}
PARTLY = dict(ignored_fields.PARTLY)


@dataclass(frozen=True)
class Field:
    path: str
    schema: Schema
    required: bool
    fixed: bool


def kinds() -> dict[str, dict[str, Any]]:
    return {crd["spec"]["names"]["kind"]: crd for crd in generate.crds()}


def schema_of(crd: dict[str, Any], part: str) -> Schema:
    found: Schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"].get(part) or {}
    return found


def page_of(kind: str) -> str:
    return f"{FOLDER}/{kind.lower()}.md"


def pages() -> dict[str, str]:
    found = {page_of(kind): _page(kind, crd) for kind, crd in kinds().items()}
    return {INDEX: _index(), **found}


def navigation() -> list[dict[str, str]]:
    return [{"All kinds": INDEX}, *({kind: page_of(kind)} for kind in kinds())]


def fields(schema: Schema, path: str = "", *, fixed: bool = False) -> Iterator[Field]:
    """Every field below a schema, blocks before what is in them."""
    needed = schema.get("required") or ()
    for name, value in (schema.get("properties") or {}).items():
        here = f"{path}.{name}" if path else name
        stays = fixed or _immutable(value)
        yield Field(here, value, name in needed, stays)
        inner = value.get("items") if value.get("type") == "array" else value
        if isinstance(inner, dict):
            yield from fields(inner, here, fixed=stays)


def change(kind: str, field: Field) -> str:
    """What a change of a spec's field does; empty when nobody has said it."""
    path = field.path
    if field.fixed or _under(path, FIXED_BY_SPEC.get(kind, frozenset())):
        return FIXED
    if _under(path, OTHER_PLATFORMS):
        return "kept as given"
    if _under(path, WITHOUT_EFFECT.get(kind, frozenset())):
        return "kept without effect"
    known = effect(kind, path)
    if known is not None:
        return known.text
    # A block is as its fields are.
    return "see its fields" if _fields_inside(field.schema) else ""


def _fields_inside(schema: Schema) -> bool:
    return bool(schema.get("properties") or (schema.get("items") or {}).get("properties"))


def _under(path: str, known: frozenset[str]) -> bool:
    return any(path == one or path.startswith(f"{one}.") for one in known)


def _immutable(schema: Schema) -> bool:
    return any(rule["rule"] == "self == oldSelf" for rule in schema.get("x-kubernetes-validations") or ())


INTRODUCTION = """\
# Fields

Every field of `hypershift.openshift.io/v1beta1`, from the schema that the API server checks with. People write
HostedClusters and NodePools; the other two are written by the operator for Cluster API and other tools.
"""
EXPLANATION = """
The column *a change* says what is set in motion when the field of a running cluster is changed: which parts of the
control plane get new pods (they *roll*, one replica after the other), and whether machines are replaced. A field that
is *kept without effect* is stored and named by the condition
[AllFieldsHonoured](../troubleshooting/conditions.md#allfieldshonoured).
"""


def _index() -> str:
    rows = []
    for kind, crd in kinds().items():
        names = crd["spec"]["names"]
        doc = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"]
        rows.append((f"[{kind}]({kind.lower()}.md)", ", ".join(map(code, names.get("shortNames", ()))), cell(doc)))
    return "\n".join([INTRODUCTION, *table(("kind", "short names", "what it is"), rows), EXPLANATION])


def _page(kind: str, crd: dict[str, Any]) -> str:
    version = crd["spec"]["versions"][0]
    lines = [f"# {kind}", "", version["schema"]["openAPIV3Schema"]["description"]]
    columns = [
        (cell(column["name"]), code(column["jsonPath"]), "`-o wide`" if column.get("priority") else "always")
        for column in version.get("additionalPrinterColumns") or ()
    ]
    if columns:
        lines += ["", "## Columns of kubectl get", "", *table(("column", "from", "shown"), columns)]
    for part in ("spec", "status"):
        schema = schema_of(crd, part)
        if schema.get("properties"):
            lines += ["", f"## {part}", "", *_part(kind, part, schema)]
    return "\n".join([*lines, ""])


def _part(kind: str, part: str, schema: Schema) -> list[str]:
    lines = _rules(schema)
    simple: list[Field] = []
    blocks: list[Field] = []
    for field in fields(schema):
        (simple if "." not in field.path and not _fields_inside(field.schema) else blocks).append(field)
    if simple:
        lines += _table(kind, part, simple)
    tops = dict.fromkeys(field.path.partition(".")[0] for field in blocks)
    for top in tops:
        inside = [field for field in blocks if field.path == top or field.path.startswith(f"{top}.")]
        lines += ["", f"### {part}.{top}", "", str(inside[0].schema.get("description") or ""), ""]
        lines += _table(kind, part, inside)
        for field in inside:
            lines += _rules(field.schema, field.path)
    return lines


def _table(kind: str, part: str, found: list[Field]) -> list[str]:
    if part == "status" or kind not in ("HostedCluster", "NodePool"):
        rows = [(_path(f.path), _type(f.schema), cell(f.schema.get("description") or "")) for f in found]
        return table(("field", "type", "meaning"), rows)
    full = [
        (
            _path(f.path) + (" **required**" if f.required else ""),
            _type(f.schema),
            cell(f.schema.get("description") or "") + _default(f.schema) + _partly(f.path),
            cell(change(kind, f)),
        )
        for f in found
    ]
    return table(("field", "type", "meaning", "a change"), full)


def _path(path: str) -> str:
    """A long name may be broken after a dot, and nowhere else."""
    return f"<code>{path.replace('.', '.<wbr>')}</code>"


def _partly(path: str) -> str:
    return f" It {cell(PARTLY[path])}." if path in PARTLY else ""


def _type(schema: Schema) -> str:
    if schema.get("enum"):
        return " / ".join(code(one) if one else '`""`' for one in schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return "quantity" if "pattern" in schema else "number or percentage"
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items') or {})}"
    if "additionalProperties" in schema:
        return "map of text"
    if schema.get("type") == "object":
        return "object" if schema.get("properties") else "object, as given"
    if schema.get("format") == "date-time":
        return "time"
    if schema.get("pattern") == DURATION_PATTERN:
        return "duration"
    return _bounded(schema)


def _bounded(schema: Schema) -> str:
    if schema.get("type") != "integer":
        return {"string": "text", "boolean": "true / false"}.get(str(schema.get("type")), str(schema.get("type")))
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None and high is None:
        return "number"
    if high is None or high >= 2**31 - 1:
        return f"number, {low} or more" if low is not None else "number"
    return f"number, {low} to {high}" if low is not None else f"number, at most {high}"


def _default(schema: Schema) -> str:
    value = schema.get("default")
    if value is None or isinstance(value, (dict, list)):
        return ""
    return f" Default: {code(str(value).lower() if isinstance(value, bool) else str(value) or EMPTY)}."


def _rules(schema: Schema, path: str = "") -> list[str]:
    """Rules that are more than `cannot change`."""
    told = [r["message"] for r in schema.get("x-kubernetes-validations") or () if r["rule"] != "self == oldSelf"]
    if not told:
        return []
    head = f"Rules of `{path}`:" if path else "Rules:"
    return ["", head, "", *(f"- {cell(message)}" for message in told), ""]
