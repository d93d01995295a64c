"""The file of a backup: what was written comes back, and nothing else is believed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest

from hcp.backup import content, sealing
from hcp.backup.content import Reader, Snapshot, Whole, Writer
from hcp.backup.sealing import KEY, PASSPHRASE, PIECE, BrokenBackup, Lock

LOCKS = [Lock(), Lock(PASSPHRASE, b"correct horse battery"), Lock(KEY, b"k" * 32)]
OBJECTS: list[dict[str, Any]] = [{"kind": "Secret", "data": {"a": "cGFzc3dvcmQ="}}]


def database(size: int) -> bytes:
    data = os.urandom(size)
    return data + hashlib.sha256(data).digest()


async def written(lock: Lock, data: bytes, objects: list[dict[str, Any]] | None = None) -> bytes:
    out = bytearray()

    async def put(piece: bytes) -> None:
        out.extend(piece)

    writer = Writer(lock, {"cluster": "clusters/demo"}, put)
    await writer.objects(OBJECTS if objects is None else objects)
    for start in range(0, len(data), 100_000):
        await writer.snapshot(data[start : start + 100_000])
    await writer.end(Snapshot(writer.size, writer.sha256, 5, 7, 3, 11, 2))
    return bytes(out)


async def chunks(raw: bytes, size: int = 70_000) -> AsyncIterator[bytes]:
    for start in range(0, len(raw), size):
        yield raw[start : start + size]


async def read(lock: Lock, raw: bytes) -> tuple[bytes, Whole]:
    reader = Reader(lock, chunks(raw))
    found = b"".join([piece async for piece in reader.snapshot()])
    assert reader.whole is not None
    return found, reader.whole


@pytest.mark.parametrize("lock", LOCKS, ids=["plain", "passphrase", "key"])
@pytest.mark.parametrize("size", [0, 1, PIECE - 33, 3 * PIECE + 17])
async def test_what_was_written_comes_back(lock: Lock, size: int) -> None:
    data = database(size)
    raw = await written(lock, data)
    found, whole = await read(lock, raw)
    assert found == data
    assert whole.objects == OBJECTS
    assert whole.snapshot.sha256 == hashlib.sha256(data).hexdigest()
    assert whole.header.told == {"cluster": "clusters/demo"}


@pytest.mark.parametrize("lock", LOCKS[1:], ids=["passphrase", "key"])
async def test_an_encrypted_file_shows_nothing_of_what_is_in_it(lock: Lock) -> None:
    raw = await written(lock, database(1000))
    assert b"cGFzc3dvcmQ=" not in raw
    assert lock.secret not in raw
    assert raw != await written(lock, database(1000))


@pytest.mark.parametrize("lock", [LOCKS[0], LOCKS[2]], ids=["plain", "key"])
async def test_one_bit_anywhere_is_noticed(lock: Lock) -> None:
    raw = await written(lock, database(PIECE + 500))
    places = [*range(0, 400, 23), len(raw) // 2, PIECE, *range(len(raw) - 60, len(raw), 17)]
    for place in places:
        changed = bytearray(raw)
        changed[place] ^= 1
        with pytest.raises(BrokenBackup):
            await read(lock, bytes(changed))


@pytest.mark.parametrize("lock", [LOCKS[0], LOCKS[2]], ids=["plain", "key"])
async def test_a_file_that_ends_early_or_late_is_refused(lock: Lock) -> None:
    raw = await written(lock, database(2 * PIECE))
    for end in (0, 5, 100, PIECE, len(raw) - 1):
        with pytest.raises(BrokenBackup):
            await read(lock, raw[:end])
    with pytest.raises(BrokenBackup, match="stands behind its end"):
        await read(lock, raw + b"x")


async def test_pieces_of_another_file_or_place_are_refused() -> None:
    lock = LOCKS[2]
    one, two = await written(lock, database(4 * PIECE)), await written(lock, database(4 * PIECE))
    header = one.index(b"\n", len(sealing.MAGIC)) + 1
    with pytest.raises(BrokenBackup):
        await read(lock, one[:header] + two[header:])
    pieces, at = [], header
    while at < len(one):
        length, _ = sealing.length_of(one[at : at + 4])
        pieces.append(one[at : at + 4 + length])
        at += 4 + length
    swapped = [pieces[0], pieces[2], pieces[1], *pieces[3:]]
    with pytest.raises(BrokenBackup, match="piece 2 is not genuine"):
        await read(lock, one[:header] + b"".join(swapped))
    with pytest.raises(BrokenBackup, match="piece 3 is not genuine"):
        await read(lock, one[:header] + b"".join([*pieces[:2], *pieces[3:]]))


async def test_a_wrong_passphrase_is_said_and_so_is_a_missing_one() -> None:
    raw = await written(LOCKS[1], database(10))
    with pytest.raises(BrokenBackup, match="passphrase or key is another one"):
        await read(Lock(PASSPHRASE, b"wrong horse battery"), raw)
    with pytest.raises(BrokenBackup, match="encrypted with a passphrase"):
        await read(Lock(), raw)
    with pytest.raises(BrokenBackup, match="encrypted with a passphrase"):
        await read(LOCKS[2], raw)


async def test_a_plain_file_is_not_taken_for_an_encrypted_one() -> None:
    raw = await written(Lock(), database(10))
    with pytest.raises(BrokenBackup, match="nothing proves who wrote it"):
        await read(LOCKS[1], raw)


async def test_a_snapshot_that_etcd_did_not_finish_is_neither_written_nor_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Exception, match="did not arrive whole"):
        await written(Lock(), database(100)[:-1])
    monkeypatch.setattr(content._OwnSum, "right", True)
    raw = await written(Lock(), database(100)[:-1])
    monkeypatch.undo()
    with pytest.raises(BrokenBackup, match="sum that etcd put into its snapshot"):
        await read(Lock(), raw)


async def test_more_objects_than_a_cluster_can_have_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = await written(Lock(), database(10), [{"a": "x" * 5000}])
    monkeypatch.setattr(content, "MOST_OBJECTS", 1000)
    with pytest.raises(BrokenBackup, match="more objects"):
        await read(Lock(), raw)


async def test_a_snapshot_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = await written(Lock(), database(3 * PIECE))
    monkeypatch.setattr(content, "LARGEST_SNAPSHOT", 2 * PIECE)
    with pytest.raises(BrokenBackup, match="larger than etcd can be"):
        await read(Lock(), raw)


def test_a_header_asks_for_no_work() -> None:
    assert sealing.read_header(b"hcp-ba") is None
    for start in (b"tar", sealing.MAGIC + b"x" * 20_000, sealing.MAGIC + b"[1]\n", sealing.MAGIC + b"[" * 9000 + b"\n"):
        with pytest.raises(BrokenBackup):
            sealing.read_header(start)
