"""Maintenance calls to one etcd member, over the JSON gateway it serves beside gRPC."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from hcp.kube import Client, ClusterConfig
from hcp.kube.config import UserAuth
from hcp.kube.errors import ApiError

NOSPACE = "NOSPACE"
_COMPACTED = "has been compacted"


@dataclass(frozen=True, slots=True)
class Identity:
    """How a client shows who it is, and whom it trusts. All PEM."""

    ca: bytes
    cert: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Member:
    """What a member says about itself; sizes in bytes."""

    url: str
    id: str
    leader: bool
    revision: int
    size: int
    used: int
    quota: int
    # Alarms of the whole cluster, as this member knows them.
    errors: tuple[str, ...] = ()

    @property
    def full(self) -> bool:
        return any(NOSPACE in text for text in self.errors)

    @property
    def waste(self) -> int:
        """What defragmentation would give back."""
        return max(0, self.size - self.used)


def member(url: str, answer: dict[str, Any]) -> Member:
    """Read the answer to a status call; the gateway writes 64 bit numbers as text and leaves zeroes out."""
    header = answer.get("header") or {}
    own = str(header.get("member_id") or "")
    return Member(
        url=url,
        id=own,
        leader=bool(own) and own == str(answer.get("leader") or ""),
        revision=int(header.get("revision") or 0),
        size=int(answer.get("dbSize") or 0),
        used=int(answer.get("dbSizeInUse") or 0),
        quota=int(answer.get("dbSizeQuota") or 0),
        errors=tuple(str(text) for text in answer.get("errors") or ()),
    )


class Etcd:
    """One member. Made for a look and closed after it: an idle etcd costs no open connection."""

    def __init__(self, url: str, identity: Identity) -> None:
        auth = UserAuth(cert_pem=identity.cert, key_pem=identity.key)
        self._url = url
        self._client = Client(ClusterConfig(server=url, ca_pem=identity.ca, auth=auth))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self._client.close()

    async def status(self) -> Member:
        return member(self._url, await self._call("/v3/maintenance/status"))

    async def compact(self, revision: int) -> None:
        """Forget what was before this revision. That somebody else did it already is as good."""
        try:
            await self._call("/v3/kv/compaction", revision=str(revision), physical=True)
        except ApiError as exc:
            if _COMPACTED not in str(exc):
                raise

    async def defragment(self) -> None:
        """Give back what compaction freed. The member answers nobody while it does."""
        await self._call("/v3/maintenance/defragment")

    async def disarm(self) -> None:
        """End the NOSPACE alarm of every member; an alarm must be named with the member that raised it."""
        answer = await self._call("/v3/maintenance/alarm", action="GET")
        for alarm in answer.get("alarms") or []:
            if alarm.get("alarm") == NOSPACE:
                body = {"memberID": alarm.get("memberID"), "alarm": NOSPACE}
                await self._call("/v3/maintenance/alarm", action="DEACTIVATE", **body)

    async def _call(self, path: str, **body: Any) -> dict[str, Any]:
        answer = await self._client.raw("POST", path, body=body)
        return answer if isinstance(answer, dict) else {}
