"""Which commit this program was made from."""

from __future__ import annotations

from pathlib import Path

UNKNOWN = "<unknown>"


def commit() -> str:
    """From the file an image or package build leaves, else from the checkout the program runs from."""
    package = Path(__file__).resolve().parents[2]
    try:
        return (package / "commit.txt").read_text().strip() or UNKNOWN
    except OSError:
        pass
    git = package.parent.parent / ".git"
    try:
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head or UNKNOWN
        ref = head[5:]
        loose = git / ref
        if loose.exists():
            return loose.read_text().strip()
        for line in (git / "packed-refs").read_text().splitlines():
            if line.endswith(f" {ref}"):
                return line.split(" ")[0]
    except OSError:
        pass
    return UNKNOWN
