"""How backups are called: `NAMESPACE_CLUSTER_TIME`. No Kubernetes name has an underscore, so it can be read back."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from dataclasses import dataclass

from hcp.errors import HcpError

SUFFIX = ".hcpbackup"
_STAMP = "%Y%m%dT%H%M%SZ"
_LABEL = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"(?P<namespace>{_LABEL})_(?P<cluster>{_LABEL})_(?P<stamp>[0-9]{{8}}T[0-9]{{6}}Z)")


@dataclass(frozen=True, order=True, slots=True)
class Name:
    """One backup; sorted by cluster, then by age."""

    namespace: str
    cluster: str
    stamp: str

    def __str__(self) -> str:
        return f"{self.namespace}_{self.cluster}_{self.stamp}"

    @property
    def file(self) -> str:
        return f"{self}{SUFFIX}"

    @property
    def created(self) -> dt.datetime:
        return dt.datetime.strptime(self.stamp, _STAMP).replace(tzinfo=dt.UTC)

    @property
    def told_time(self) -> str:
        return self.created.strftime("%Y-%m-%dT%H:%M:%SZ")

    def of(self, namespace: str, cluster: str) -> bool:
        return (self.namespace, self.cluster) == (namespace, cluster)


def new(namespace: str, cluster: str, now: dt.datetime) -> Name:
    return Name(namespace, cluster, now.strftime(_STAMP))


def read(text: str) -> Name | None:
    """The name in this text, or None: a store may hold files of others, and a name never holds a path."""
    found = _NAME.fullmatch(text)
    if found is None:
        return None
    name = Name(found["namespace"], found["cluster"], found["stamp"])
    try:
        _ = name.created
    except ValueError:  # the thirtieth of February
        return None
    return name


def from_file(file: str) -> Name | None:
    return read(file.removesuffix(SUFFIX)) if file.endswith(SUFFIX) else None


def asked(text: str) -> Name:
    """What a person typed; the ending of the file is allowed."""
    name = read(text.removesuffix(SUFFIX))
    if name is None:
        raise HcpError(
            f"{text!r} is no name of a backup",
            cause="such names look like clusters_demo_20260131T020000Z",
            hint="hcp backup list shows those in a store",
        )
    return name


def newest(found: Iterable[Name], namespace: str, cluster: str) -> Name | None:
    return max((name for name in found if name.of(namespace, cluster)), default=None)
