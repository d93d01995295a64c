"""YAML that somebody else wrote, read without giving its writer power over the reader.

The fast parser follows nesting with the machine's own stack: a hundred thousand brackets end the process. Aliases make
a small document grow without limit. Both are looked for in the stream of events, which costs nothing of either, before
anything is built.
"""

from __future__ import annotations

from typing import Any

from hcp.errors import HcpError

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 64


def load(
    data: bytes | str, source: str, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH, aliases: bool = False
) -> list[Any]:
    """Every document of the text; `source` names it in errors, as the beginning of a sentence."""
    import yaml

    raw = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
    if len(raw) > max_bytes:
        raise HcpError(f"{source} has {len(raw)} bytes, {max_bytes} are the most that is read")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check(yaml, yaml.parse(raw, Loader=loader), source, max_depth, aliases)
        return list(yaml.load_all(raw, Loader=loader))
    except (yaml.YAMLError, UnicodeError, ValueError, RecursionError, TypeError) as exc:
        raise HcpError(f"{source} is not valid YAML", cause=" ".join(str(exc).split())[:300]) from exc


def _check(yaml: Any, events: Any, source: str, max_depth: int, aliases: bool) -> None:
    depth = 0
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > max_depth:
                raise HcpError(f"{source} is nested deeper than {max_depth} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.AliasEvent) and not aliases:
            raise HcpError(f"{source} uses a YAML alias (*{event.anchor}); write the value out")
