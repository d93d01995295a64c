"""The rule: what a program needs lies where its loader looks for it. Pure.

An artifact may be started on any Linux, so it brings everything but the C library, whose loader is the one thing that
cannot be brought along: the kernel starts it by its absolute path. A root file system or image has to hold that too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from posixpath import basename, dirname, join

from hcp.payload.linking.tree import Tree

# What "any Linux" means: the C library's own family. libcrypt, libz, libgcc_s and libstdc++ are not in it:
# distributions have them in other versions, or do not install them.
EVERYWHERE = frozenset(
    (
        *("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1"),
        *("libresolv.so.2", "libanl.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"),
    )
)
FOLDERS = tuple(
    f"{prefix}{folder}"
    for folder in ("lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "lib64", "lib")
    for prefix in ("", "usr/", "usr/local/")
)
# Plug-ins that Debian ships in a package without asking for their libraries; nothing of ours loads them.
OPTIONAL = frozenset(("q_atm.so",))  # tc's scheduler for ATM networks
_HERE = ("$ORIGIN", "${ORIGIN}")


@dataclass(frozen=True, order=True)
class Missing:
    """A library (or loader) that a file asks for and would not find."""

    file: str
    library: str


def missing(tree: Tree, *, whole_system: bool) -> list[Missing]:
    """What is not found, for every file of the tree."""
    return sorted(item for path in tree.files for item in missing_of(tree, path, whole_system=whole_system))


def missing_of(tree: Tree, path: str, *, whole_system: bool, ask_for: Tree | None = None) -> Iterator[Missing]:
    """What one file lacks. `ask_for`: the tree the file is from, when it is not (yet) in the one it will run in."""
    if whole_system and basename(path) in OPTIONAL:
        return
    elf = (ask_for or tree).files[path]
    folders = search_folders(path, elf.search)
    if whole_system:
        # Libraries in a folder of their own are loaded by a program that has found the folder, and its loader keeps
        # what it has loaded: systemd's are made so.
        folders += [*FOLDERS, *([] if elf.interpreter else [dirname(path)])]
    for library in elf.needed:
        if not whole_system and library in EVERYWHERE:
            continue
        if find_library(tree, library, folders) is None:
            yield Missing(path, library)
    if whole_system and elf.interpreter and tree.find(elf.interpreter) is None:
        yield Missing(path, elf.interpreter)


def find_library(tree: Tree, library: str, folders: Iterable[str]) -> str | None:
    if "/" in library:
        return tree.find(library)
    return next((found for folder in folders if (found := tree.find(join(folder, library)))), None)


def search_folders(path: str, search: Iterable[str]) -> list[str]:
    """The folders written into a file, `$ORIGIN` replaced by where the file is."""
    folders = []
    for folder in search:
        for word in _HERE:
            folder = folder.replace(word, f"/{dirname(path)}")  # noqa: PLW2901
        folders.append(folder)
    return folders
