"""Reads and writes past every cache, in a folder: `python3 disk_speed.py FOLDER`. Runs inside a pod, on its own.

One line of JSON: MB/s in blocks of 1 MiB one after the other, and operations per second in blocks of 4 KiB anywhere.
"""

import json
import mmap
import os
import random
import sys
import time
from pathlib import Path

SIZE, LARGE, SMALL, SECONDS = 64 << 20, 1 << 20, 4 << 10, 3.0


def main(folder: str) -> None:
    path = Path(folder) / "disk-speed"
    buffer = mmap.mmap(-1, LARGE)  # at an address that the disk can reach
    buffer.write(os.urandom(LARGE))
    found = {}
    file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_DIRECT, 0o600)
    try:
        for name, call in (("write", os.pwritev), ("read", os.preadv)):
            began = time.monotonic()
            for place in range(0, SIZE, LARGE):
                call(file, [buffer], place)
            os.fsync(file)
            found[f"sequential {name} MB/s"] = round(SIZE / 1e6 / (time.monotonic() - began), 1)
        small = memoryview(buffer)[:SMALL]
        for name, call in (("write", os.pwritev), ("read", os.preadv)):
            began, count = time.monotonic(), 0
            while time.monotonic() - began < SECONDS:
                call(file, [small], random.randrange(SIZE // SMALL) * SMALL)
                count += 1
            found[f"random {name} IOPS"] = round(count / (time.monotonic() - began))
        small.release()
    finally:
        os.close(file)
        path.unlink()
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
