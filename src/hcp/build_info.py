"""What this program is: its version, the source it runs from, and the commit that source was taken from.

`__version__` in `hcp/__init__.py` is the only place where the version is written. Two programs of one version can
still be of different source between releases, so a hash of the source goes with it: it is the same in a checkout, in
an installed wheel and in the operator's image, and nothing has to be written down when one of them is built.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from hcp import __version__

UNKNOWN = "<unknown>"
PACKAGE = Path(__file__).resolve().parent
# Written into a wheel by setup.py.
COMMIT_FILE = "commit.txt"


def source_files(root: Path = PACKAGE) -> list[Path]:
    """The files of our package that run in a pod: no caches, no build recipes."""
    recipes = root / "payload" / "recipes"
    return sorted(
        path
        for path in root.rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and recipes not in path.parents
        and path != root / COMMIT_FILE
    )


def identity(root: Path = PACKAGE) -> str:
    """Version and source in one word, such as 0.1.0+3fa2b1c09d1e."""
    digest = sha256()
    for path in source_files(root):
        name = path.relative_to(root).as_posix()
        digest.update(f"{name}\0{sha256(path.read_bytes()).hexdigest()}\n".encode())
    return f"{__version__}+{digest.hexdigest()[:12]}"


def commit(root: Path = PACKAGE) -> str:
    """From the file that a wheel carries, else from the checkout the program runs from."""
    try:
        return (root / COMMIT_FILE).read_text().strip() or UNKNOWN
    except OSError:
        pass
    try:
        return _head(root.parent.parent / ".git")
    except OSError:
        return UNKNOWN


def _head(git: Path) -> str:
    """The commit that is checked out in a repository, or in one of its further working trees."""
    if git.is_file():
        git = git.parent / git.read_text().removeprefix("gitdir:").strip()
    head = (git / "HEAD").read_text().strip()
    if not head.startswith("ref: "):
        return head or UNKNOWN
    ref = head[5:]
    shared = git / "commondir"
    common = git / shared.read_text().strip() if shared.exists() else git
    if (common / ref).exists():
        return (common / ref).read_text().strip()
    for line in (common / "packed-refs").read_text().splitlines():
        if line.endswith(f" {ref}"):
            return line.split(" ")[0]
    return UNKNOWN
