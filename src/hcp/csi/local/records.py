"""What is known of each volume and snapshot, one small file per piece, written in one step."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Generic, TypeVar

from hcp.errors import HcpError

_ID = re.compile(r"(vol|snap)-[0-9a-f]{32}")


@dataclass(frozen=True)
class Volume:
    id: str
    name: str
    size: int
    block: bool
    snapshot: str = ""
    """The snapshot it was made from."""
    clone_of: str = ""


@dataclass(frozen=True)
class Snapshot:
    id: str
    name: str
    source: str
    size: int
    block: bool
    created: float


Record = TypeVar("Record", Volume, Snapshot)


def volume_id(name: str) -> str:
    """A request that comes again finds what it made the first time; names may be long and of any letters."""
    return f"vol-{sha256(name.encode()).hexdigest()[:32]}"


def snapshot_id(name: str) -> str:
    return f"snap-{sha256(name.encode()).hexdigest()[:32]}"


def is_id(text: str) -> bool:
    """Nothing else may become part of a path."""
    return _ID.fullmatch(text) is not None


class Records(Generic[Record]):
    def __init__(self, folder: Path, kind: type[Record]) -> None:
        self.folder = folder
        self.kind: type[Record] = kind

    def get(self, key: str) -> Record | None:
        if not is_id(key):
            return None
        try:
            return self._read(self.folder / f"{key}.json")
        except FileNotFoundError:
            return None

    def all(self) -> list[Record]:
        """In the order of their ids, which stays the same while others come and go."""
        return [found for path in sorted(self.folder.glob("*.json")) if (found := self.get(path.stem)) is not None]

    def put(self, record: Record) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{record.id}.json"
        staging = path.with_suffix(".part")
        with staging.open("w") as file:
            file.write(json.dumps(asdict(record), sort_keys=True) + "\n")
            file.flush()
            os.fsync(file.fileno())
        staging.replace(path)

    def remove(self, key: str) -> None:
        if is_id(key):
            (self.folder / f"{key}.json").unlink(missing_ok=True)

    def _read(self, path: Path) -> Record:
        text = path.read_text()
        try:
            made: Record = self.kind(**json.loads(text))
            return made
        except (ValueError, TypeError) as error:
            raise HcpError(f"The record {path} cannot be read", cause=str(error)) from error
