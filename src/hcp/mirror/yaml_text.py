"""YAML by libyaml where it is there: of a hundred images, or of a chart repository, the rest of Python's takes longer
than asking the registries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO, Any

Text = str | bytes | IO[bytes]


def load(text: Text) -> Any:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(text, Loader=loader)  # noqa: S506 - a safe one, whichever it is


def load_all(text: Text) -> Iterator[Any]:
    import yaml

    return iter(yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


def dump(documents: Iterable[dict[str, Any]]) -> str:
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump_all(documents, Dumper=dumper, sort_keys=False, explicit_start=True)
    return text
