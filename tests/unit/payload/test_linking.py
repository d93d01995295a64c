"""Programs find their libraries wherever they are started; an artifact where they would not is refused."""

from __future__ import annotations

import struct
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.unit.elves import elf
from tests.support.unit.workshop import Workshop

from hcp.errors import HcpError
from hcp.oci.writer import ImageConfig, Layer, write_image
from hcp.payload import BuildContext
from hcp.payload.debian import library_packages
from hcp.payload.linking import hints
from hcp.payload.linking.check import demand, inspect
from hcp.payload.linking.elf import Elf, read_elf
from hcp.payload.linking.hints import named_after, package_hint
from hcp.payload.linking.report import check_all
from hcp.payload.linking.rules import Missing
from hcp.payload.registry import default_registry
from hcp.payload.versions import table

LOADER = "/lib64/ld-linux-x86-64.so.2"


@pytest.fixture(autouse=True)
def known_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """What apt and dpkg would say; asking them takes seconds."""
    monkeypatch.setattr(hints, "_installed_owner", {"libinstalled.so.1": "libinstalled1"}.get)
    monkeypatch.setattr(hints, "_exists", {"liblua5.3-0", "libnew2t64"}.__contains__)


def artifact(root: Path, **files: bytes) -> Path:
    for name, content in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def test_what_a_program_needs_is_read() -> None:
    data = elf("libfoo.so.1", "libc.so.6", search="$ORIGIN/../lib:/opt", interpreter=LOADER, glibc="2.34")
    assert read_elf(data) == Elf(("libfoo.so.1", "libc.so.6"), ("$ORIGIN/../lib", "/opt"), "", LOADER, (2, 34))


def test_a_real_program_is_read() -> None:
    found = read_elf(Path(sys.executable).resolve().read_bytes())
    assert found is not None
    assert "libc.so.6" in found.needed
    assert found.interpreter.startswith("/lib")
    assert found.glibc >= (2, 2)


@pytest.mark.parametrize("data", [b"", b"#!/bin/sh\n", b"\x7fELF\x01\x01" + bytes(60), elf(kind=1)])
def test_other_files_are_no_programs(data: bytes) -> None:
    assert read_elf(data) is None


def test_a_program_that_is_cut_off_is_said(tmp_path: Path) -> None:
    with pytest.raises(HcpError, match="bin/tool is a damaged program"):
        inspect(artifact(tmp_path, bin__tool=elf("libc.so.6")[:200]))


@pytest.mark.parametrize(
    ("search", "library", "lacking"),
    [
        ("$ORIGIN/../lib", "lib__libfoo.so.1", []),
        ("${ORIGIN}/../lib", "lib__libfoo.so.1", []),
        ("", "lib__libfoo.so.1", ["libfoo.so.1"]),  # it is there, but the loader does not look there
        ("$ORIGIN/../lib", "lib__libbar.so.1", ["libfoo.so.1"]),
        ("/usr/lib", "usr__lib__libother.so", ["libfoo.so.1"]),  # a folder of the machine is not the artifact's
    ],
)
def test_a_library_counts_only_where_the_loader_looks(
    tmp_path: Path, search: str, library: str, lacking: list[str]
) -> None:
    root = artifact(tmp_path, bin__tool=elf("libfoo.so.1", "libc.so.6", search=search), **{library: elf("libc.so.6")})
    assert [item.library for item in inspect(root).missing] == lacking


def test_a_library_of_a_library_counts_too(tmp_path: Path) -> None:
    root = artifact(
        tmp_path,
        bin__tool=elf("libfoo.so.1", search="$ORIGIN/../lib"),
        **{"lib__libfoo.so.1": elf("libbar.so.2", search="$ORIGIN")},
    )
    assert inspect(root).missing == (Missing("lib/libfoo.so.1", "libbar.so.2"),)
    (root / "lib" / "libbar.so.2").symlink_to("libbar.so.2.0")
    artifact(tmp_path, **{"lib__libbar.so.2.0": elf("libc.so.6")})
    assert inspect(root).missing == ()


def test_static_programs_and_the_c_library_are_fine_anywhere(tmp_path: Path) -> None:
    root = artifact(tmp_path, bin__a=elf("libc.so.6", "libm.so.6", interpreter=LOADER), bin__b=elf(static=True))
    assert inspect(root).missing == ()


def test_a_build_with_an_unresolved_library_fails(workshop: Workshop) -> None:
    def during(ctx: BuildContext) -> None:
        (ctx.out / "bin" / "tool").write_bytes(elf("liblua5.3.so.0", "libc.so.6"))

    workshop.add("tool", during=during)
    with pytest.raises(HcpError, match=r"bin/tool needs liblua5\.3\.so\.0 \(by its name Debian package liblua5\.3-0\)"):
        workshop.engine().ensure(["tool"])
    assert workshop.engine().find("tool") is None


def test_a_program_that_runs_only_in_a_root_file_system_is_looked_up_there(workshop: Workshop, tmp_path: Path) -> None:
    def during(ctx: BuildContext) -> None:
        (ctx.out / "bin" / "tool").write_bytes(elf("libvirt.so.0", interpreter=LOADER))

    def system(ctx: BuildContext) -> None:
        layer = Layer("system")
        layer.file("usr/lib64/ld-linux-x86-64.so.2", elf())
        layer.symlink("lib64", "usr/lib64")
        if with_library:
            layer.file("usr/lib/x86_64-linux-gnu/libvirt.so.0.1", elf())
            layer.symlink("usr/lib/x86_64-linux-gnu/libvirt.so.0", "libvirt.so.0.1")
        write_image(ctx.out / "image", "system", [layer], ImageConfig())

    for name, with_library in (("good", True), ("bad", False)):
        workshop.add(f"rootfs-{name}", during=system)
        workshop.add(f"tool-{name}", during=during)
        workshop.change(f"tool-{name}", outputs=("bin/tool",), runs_in={"bin/tool": f"rootfs-{name}"})
        workshop.engine().ensure([f"rootfs-{name}", f"tool-{name}"])
        report = check_all([f"tool-{name}"], workshop.registry, workshop.store)
        expected = {} if with_library else {f"tool-{name}": [Missing("bin/tool", "libvirt.so.0")]}
        assert report.missing == expected


def image(root: Path, *layers: Layer) -> Path:
    write_image(root / "image", "test", layers, ImageConfig())
    return root


def layer_of(**files: bytes) -> Layer:
    layer = Layer("test")
    for name, content in files.items():
        layer.file(name.replace("__", "/"), content)
    return layer


def test_an_image_holds_its_loader_and_the_c_library_too(tmp_path: Path) -> None:
    layer = layer_of(bin__tool=elf("libc.so.6", interpreter=LOADER))
    lacking = {item.library for item in inspect(image(tmp_path, layer)).missing}
    assert lacking == {"libc.so.6", LOADER}


def test_libraries_in_a_folder_of_their_own_find_each_other_but_programs_do_not(tmp_path: Path) -> None:
    files = {"lib__private__libcore.so": elf("libshared.so"), "lib__private__libshared.so": elf()}
    assert inspect(image(tmp_path / "good", layer_of(**files))).missing == ()
    loader = {"lib64__ld-linux-x86-64.so.2": elf(), "lib__private__tool": elf("libshared.so", interpreter=LOADER)}
    found = inspect(image(tmp_path / "bad", layer_of(**files, **loader))).missing
    assert found == (Missing("lib/private/tool", "libshared.so"),)


def test_an_official_image_is_left_alone_but_not_an_official_program(tmp_path: Path) -> None:
    demand("image", image(tmp_path / "image", layer_of(bin__tool=elf("libplugin.so.1"))), official=True)
    with pytest.raises(HcpError, match="libplugin"):
        demand("tool", artifact(tmp_path / "tool", bin__tool=elf("libplugin.so.1")), official=True)


def test_a_layer_that_hides_a_library_is_noticed(tmp_path: Path) -> None:
    base = layer_of(bin__tool=elf("libfoo.so.1"), **{"usr__lib__libfoo.so.1": elf()})
    assert inspect(image(tmp_path / "good", base)).missing == ()
    upper = Layer("hides")
    upper.whiteout("usr/lib/libfoo.so.1")
    base = layer_of(bin__tool=elf("libfoo.so.1"), **{"usr__lib__libfoo.so.1": elf()})
    assert inspect(image(tmp_path / "bad", base, upper)).missing == (Missing("bin/tool", "libfoo.so.1"),)


def test_the_message_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(HcpError) as caught:
        demand("haproxy", artifact(tmp_path, bin__tool=elf("libnosuchthing.so.7")))
    assert "bin/tool needs libnosuchthing.so.7" in str(caught.value)
    assert "unpack" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("library", "package"),
    [
        ("liblua5.3.so.0", "liblua5.3-0"),
        ("libnetfilter_conntrack.so.3", "libnetfilter-conntrack3"),
        ("libstdc++.so.6", "libstdc++6"),
        ("libgcc_s.so.1", "libgcc-s1"),
        ("libpcre2-8.so.0", "libpcre2-8-0"),
        ("libdevmapper.so.1.02.1", "libdevmapper1.02.1"),
        ("libz.so.1", "zlib1g"),
        ("libcrypto.so.3", "libssl3"),
        ("plugin.so", None),
    ],
)
def test_packages_are_named_after_their_libraries(library: str, package: str | None) -> None:
    assert named_after(library) == package


def test_where_a_library_is_from_is_said_as_far_as_it_is_known() -> None:
    assert package_hint("libinstalled.so.1") == "Debian package libinstalled1"
    assert package_hint("libnew.so.2") == "by its name Debian package libnew2t64"
    assert "no Debian package of that name is known" in package_hint("libnosuchthing.so.7")


def test_library_packages_among_the_dependencies() -> None:
    depends = "dpkg (>= 1.17.14), libc6 (>= 2.34), libsystemd0 | libelogind0, adduser, libssl3:amd64 (>= 3), zlib1g,"
    assert library_packages(depends) == ("libsystemd0", "libssl3", "zlib1g")


# NSS loads its own parts by name while it runs: no file says that it needs them.
LOADED = {"usr/lib/*-linux-gnu/libsoftokn3.so", "usr/lib/*-linux-gnu/libfreebl*.so"}


def test_no_recipe_takes_single_libraries_by_hand() -> None:
    """The builder finds them, all of them; a list by hand was complete only on the machine it was written on."""
    taken = [
        (name, pattern)
        for name, entry in table()["component"].items()
        for members in entry.get("unpack", {}).values()
        for pattern in members
        if ".so" in pattern and pattern not in LOADED
    ]
    assert taken == []


def _with_cgo() -> list[tuple[str, str]]:
    found = []
    for name, entry in table()["component"].items():
        commands = entry["commands"] if entry.get("cgo") else entry.get("cgo_commands", ())
        found += [(name, command) for command in commands]
    return found


# Started in these root file systems only, which are held to the rule with the program in them.
ELSEWHERE = {"ignition": "rootfs-node", "virt-launcher": "rootfs-virt"}


@pytest.mark.parametrize(("name", "command"), _with_cgo())
def test_go_programs_with_cgo_are_under_the_rule(workshop: Workshop, name: str, command: str) -> None:
    def build(ctx: BuildContext) -> None:
        (ctx.out / "bin").mkdir()
        (ctx.out / "bin" / command).write_bytes(elf("libblkid.so.1", "libc.so.6", interpreter=LOADER))

    recipe = default_registry().get(name)
    outputs = (f"bin/{command}",)
    workshop.registry.register(replace(recipe, build=build, deps=(), downloads=(), outputs=outputs))
    if command in ELSEWHERE:
        assert recipe.runs_in == {f"bin/{command}": ELSEWHERE[command]}
        workshop.engine().ensure([name])
    else:
        with pytest.raises(HcpError, match=f"bin/{command} needs libblkid"):
            workshop.engine().ensure([name])


def test_a_cut_off_table_is_an_error() -> None:
    data = bytearray(elf("libc.so.6"))
    struct.pack_into("<H", data, 56, 200)
    with pytest.raises(ValueError, match="cut off"):
        read_elf(bytes(data))
