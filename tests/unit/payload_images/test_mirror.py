"""Another suite of Debian comes from the archive that this machine already uses."""

from __future__ import annotations

from hcp.payload.rootfs_mirror import KEYRING, source_lines

TARGETS = [
    "Debian bookworm main http://archive.example/debian/",
    "Debian bookworm-updates main http://archive.example/debian/",
    "Debian bookworm-security main http://security.example/debian-security/",
    "Node nodistro main http://node.example/",
]


def test_main_and_security_of_the_suite() -> None:
    assert source_lines("trixie", TARGETS) == [
        f"deb [signed-by={KEYRING}] http://archive.example/debian/ trixie main",
        f"deb [signed-by={KEYRING}] http://security.example/debian-security/ trixie-security main",
    ]


def test_without_security_only_main() -> None:
    assert len(source_lines("bookworm", TARGETS[:1])) == 1


def test_a_machine_that_is_no_debian_leaves_it_to_the_tool() -> None:
    assert source_lines("bookworm", ["Ubuntu noble main http://ubuntu.example/", "broken"]) == []
