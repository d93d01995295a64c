"""Takes a snapshot from standard input for `filling`, which waits for it: `python3 -m hcp.backup.receiving SHA256`."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import signal
import sys
from pathlib import Path

from hcp.backup.filling import FILE, ROOT, WORK
from hcp.backup.limits import LARGEST_SNAPSHOT

_CHUNK = 1024 * 1024


def main(words: list[str], *, waiting: int = 1) -> int:
    """`waiting`: the process that waits, which is the first one of its container."""
    wanted, root = words[0], Path(words[1]) if len(words) > 1 else ROOT
    if (root / "data" / "member").is_dir():
        print("already")
        return 0
    work = root / WORK
    work.mkdir(mode=0o700, exist_ok=True)
    with (work / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print("somebody else is sending the snapshot already", file=sys.stderr)
            return 1
        part = work / f"{FILE}.part"
        digest = hashlib.sha256()
        size = 0
        with part.open("wb") as out:
            while (chunk := sys.stdin.buffer.read(_CHUNK)) and size <= LARGEST_SNAPSHOT:
                size += len(chunk)
                digest.update(chunk)
                out.write(chunk)
            out.flush()
            os.fsync(out.fileno())
        if digest.hexdigest() != wanted:
            part.unlink()
            print(f"the snapshot did not arrive whole ({size} bytes)", file=sys.stderr)
            return 1
        part.rename(work / FILE)
    with contextlib.suppress(ProcessLookupError):
        os.kill(waiting, signal.SIGUSR1)
    print(size)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
