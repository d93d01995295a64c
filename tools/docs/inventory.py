"""Which condition types, reasons and metrics the source can write, found by reading it.

A page about each would be out of date with the next change; this list is what tests hold the pages against.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import hcp
from hcp.api import conditions

SOURCE = Path(hcp.__file__).parent
# Who writes conditions and serves metrics. The command line only reads them.
WRITERS = ("guest", "hostedcluster", "ignition", "kubevirt", "nodepool", "operator", "router", "runtime")
WORD = re.compile(r"(?=.*[a-z])[A-Z][A-Za-z]*[A-Z][A-Za-z]*")
FIRST_REASON = "AS_EXPECTED"
METRICS = ("Counter", "Gauge", "Histogram")


def writers() -> list[Path]:
    return [SOURCE / "api" / "pause.py", *(path for room in WRITERS for path in sorted((SOURCE / room).rglob("*.py")))]


def _constants() -> tuple[dict[str, str], dict[str, str]]:
    """Types and reasons of `hcp.api.conditions`, by their Python name: first all types, then all reasons."""
    known = {name: value for name, value in vars(conditions).items() if name.isupper() and isinstance(value, str)}
    names = list(known)
    cut = names.index(FIRST_REASON)
    return {n: known[n] for n in names[:cut]}, {n: known[n] for n in names[cut:]}


def _used() -> set[str]:
    """Names of `hcp.api.conditions` that a writer uses, under whatever alias."""
    found = set()
    for path in writers():
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                found.add(node.attr)
            elif isinstance(node, ast.ImportFrom) and node.module == "hcp.api.conditions":
                found.update(alias.name for alias in node.names)
    return found


def condition_types() -> set[str]:
    types, _ = _constants()
    used = _used()
    return {value for name, value in types.items() if name in used} | set(_named_types())


def reasons() -> set[str]:
    _, known = _constants()
    used = _used()
    return {value for name, value in known.items() if name in used} | set(_literal_reasons())


def _named_types() -> Iterator[str]:
    """Types that are not in `hcp.api.conditions`: given to `set_condition`, or the key of a verdict."""
    for tree, own in _trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _name(node.func) == "set_condition" and len(node.args) > 1:
                yield from _words(node.args[1], own)
            elif isinstance(node, ast.Dict):
                for key, value in zip(node.keys, node.values, strict=True):
                    if isinstance(key, ast.Name) and isinstance(value, ast.Call) and _name(value.func) == "_verdict":
                        yield from _words(key, own)


# Where a reason stands among the arguments of a call: in verdicts, refusals, waits and events.
ARGUMENT = {"_verdict": 2, "set_condition": 3, "event": 2, "Waiting": 0, "Wait": 0, "refused": 0, "warn": 0}


def _literal_reasons() -> Iterator[str]:
    """Reasons that are not in `hcp.api.conditions`."""
    for tree, own in _trees():
        for node in ast.walk(tree):
            for place in _places(node):
                yield from _words(place, own)


def _places(node: ast.AST) -> Iterator[ast.expr]:
    """Expressions that are a reason where they stand."""
    match node:
        case ast.Call(func=func, args=args):
            at = ARGUMENT.get(_name(func), -2 if _name(func) in ("set", "refuse") else None)
            if at is not None and len(args) > max(at, 1):
                yield args[at]
        case ast.Tuple(elts=[status, reason, _]) if _is_status(status):
            yield reason
        case ast.Tuple(elts=[ast.Attribute(), *_, last]):
            yield last
        case ast.Return(value=ast.Tuple(elts=[reason, _])):
            yield reason
        case ast.keyword(arg=str(name), value=value) if name.endswith("reason"):
            yield value
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=value) if any(_name(n) == "reason" for n in names):
            yield from (one for part in ast.walk(value) if isinstance(part, ast.Tuple) for one in part.elts)
        case ast.Assign(targets=[target], value=value) if _name(target).endswith("reason"):
            yield value


def _trees() -> Iterator[tuple[ast.Module, dict[str, str]]]:
    for path in writers():
        tree = ast.parse(path.read_text())
        yield tree, _module_words(tree)


def _is_status(node: ast.expr) -> bool:
    """True, False, "Unknown" or something worked out: the first of a verdict."""
    if isinstance(node, ast.Constant):
        return node.value in (True, False, "True", "False", "Unknown")
    return isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Compare, ast.UnaryOp, ast.BoolOp))


def _module_words(tree: ast.Module) -> dict[str, str]:
    """Constants of a file that are one word of a condition."""
    return {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name) and WORD.fullmatch(node.value.value)
    }


def _words(node: ast.expr, own: dict[str, str]) -> Iterator[str]:
    """The words an expression can be: a text, a constant of the file, either side of `a if b else c` and `a or b`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and WORD.fullmatch(node.value):
        yield node.value
    elif isinstance(node, ast.Name) and node.id in own:
        yield own[node.id]
    elif isinstance(node, ast.IfExp):
        yield from _words(node.body, own)
        yield from _words(node.orelse, own)
    elif isinstance(node, ast.BoolOp):
        for one in node.values:
            yield from _words(one, own)


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def metrics() -> dict[str, tuple[str, str, tuple[str, ...]]]:
    """Kind, help text and labels of every metric, by name: those that the modules of all writers register."""
    from hcp.runtime.metrics import REGISTRY

    for path in writers():
        if any(f"{kind}(" in path.read_text() for kind in METRICS):
            importlib.import_module(".".join(("hcp", *path.relative_to(SOURCE).with_suffix("").parts)))
    return {name: (one.kind, one.help, one.labels) for name, one in REGISTRY._metrics.items()}
