"""Calls to one etcd member: about itself and about who else is one, over the JSON gateway it serves beside gRPC."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import aiohttp

from hcp.kube import Client, ClusterConfig
from hcp.kube.config import UserAuth
from hcp.kube.errors import ApiError, Call, ServerFailure
from hcp.kube.transport import Broken, Retry

NOSPACE = "NOSPACE"
_COMPACTED = "has been compacted"
# How long a member may say nothing while it sends its data.
_SILENCE = aiohttp.ClientTimeout(total=None, connect=10, sock_read=60)
# No piece of a snapshot is as long as this, written as text.
_LONGEST_LINE = 4 * 1024**2


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What a member's data is like at one revision: equal ones hold the same."""

    revision: int
    keys: int
    hash: int
    # What is older than this was forgotten, and counts for the hash.
    compacted: int


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
    # It gets all data, but has no vote yet.
    learner: bool = False
    # Alarms of the whole cluster, as this member knows them.
    errors: tuple[str, ...] = ()

    @property
    def full(self) -> bool:
        return any(NOSPACE in text for text in self.errors)

    @property
    def waste(self) -> int:
        """What defragmentation would give back."""
        return max(0, self.size - self.used)


@dataclass(frozen=True, slots=True)
class Peer:
    """A member as the others know it. One without a name was added and has never started."""

    id: str
    url: str
    name: str = ""
    learner: bool = False


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
        learner=bool(answer.get("isLearner")),
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

    async def members(self) -> list[Peer]:
        """As a majority knows them; without one there is no answer."""
        return _peers(await self._call("/v3/cluster/member/list", linearizable=True))

    async def add_learner(self, url: str) -> None:
        await self._call("/v3/cluster/member/add", peerURLs=[url], isLearner=True)

    async def promote(self, member_id: str) -> None:
        """Refused while it is behind."""
        await self._call("/v3/cluster/member/promote", ID=member_id)

    async def remove(self, member_id: str) -> None:
        """Refused where the rest would have no majority."""
        await self._call("/v3/cluster/member/remove", ID=member_id)

    async def hand_over(self, member_id: str) -> None:
        """Have another member lead; only the leader does it."""
        await self._call("/v3/maintenance/transfer-leadership", targetID=member_id)

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

    async def fingerprint(self, revision: int) -> Fingerprint:
        """Of everything as it was at a revision that is not forgotten yet."""
        found = await self._call("/v3/maintenance/hashkv", revision=str(revision))
        whole = {"key": "AA==", "range_end": "AA==", "count_only": True, "revision": str(revision)}
        count = await self._call("/v3/kv/range", **whole)
        return Fingerprint(
            revision, int(count.get("count") or 0), int(found.get("hash") or 0), int(found.get("compact_revision") or 0)
        )

    async def snapshot(self) -> AsyncIterator[bytes]:
        """The whole database as it is at this moment, with etcd's own checksum at its end, piece by piece."""
        path = "/v3/maintenance/snapshot"
        call = Call("post", path, server=self._url)
        try:
            async with self._client.transport.open(call, "POST", path, data=b"{}", limits=_SILENCE) as response:
                async for line in _lines(response.content):
                    yield _piece(line)
        except Retry as busy:
            raise busy.error from None
        except Broken as exc:
            raise ServerFailure("etcd ended the connection in the middle of its snapshot", cause=str(exc)) from exc

    async def _call(self, path: str, **body: Any) -> dict[str, Any]:
        answer = await self._client.raw("POST", path, body=body)
        return answer if isinstance(answer, dict) else {}


def _peers(answer: dict[str, Any]) -> list[Peer]:
    return [
        Peer(
            id=str(one.get("ID") or ""),
            url=str(next(iter(one.get("peerURLs") or ()), "")),
            name=str(one.get("name") or ""),
            learner=bool(one.get("isLearner")),
        )
        for one in answer.get("members") or ()
    ]


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    rest = b""
    async for chunk in content.iter_any():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if line:
                yield line
        if len(rest) > _LONGEST_LINE:
            raise ServerFailure("etcd sent a piece of its snapshot that is too long")
    if rest:
        yield rest


def _piece(line: bytes) -> bytes:
    """The bytes in one message of the gateway; an error in the middle of the stream is one of its messages too."""
    try:
        found = json.loads(line)
        if "error" in found:
            raise ServerFailure("etcd could not finish its snapshot", cause=str(found["error"].get("message")))
        return base64.b64decode(found["result"].get("blob") or "", validate=True)
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise ServerFailure("etcd sent a piece of its snapshot that cannot be read", cause=str(exc)) from exc
