"""Image references as Hypothesis makes them, and small layers."""

from __future__ import annotations

import gzip
import io
import tarfile

from hypothesis import strategies as st

from hcp.oci import Reference

DIGEST = "sha256:" + "0123456789abcdef" * 4


hosts = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?(\.[a-z]{2,5}){1,2}", fullmatch=True)


named = st.one_of(hosts, st.sampled_from(["localhost", "[fd00::1]", "10.0.0.1"]))


registries = st.one_of(
    st.just("localhost"),
    st.just("docker.io"),
    hosts,
    st.tuples(
        st.one_of(hosts, st.just("localhost"), st.just("[fd00::1]"), st.just("10.0.0.1")), st.integers(1, 65535)
    ).map(lambda pair: f"{pair[0]}:{pair[1]}"),
)


parts = st.from_regex(r"[a-z0-9]{1,6}((\.|_|__|-{1,2})[a-z0-9]{1,6}){0,2}", fullmatch=True)


repositories = st.lists(parts, min_size=2, max_size=4).map("/".join)


tags = st.one_of(st.none(), st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}", fullmatch=True))


digests = st.one_of(st.none(), st.from_regex(r"sha256:[0-9a-f]{64}", fullmatch=True))


references = st.builds(Reference, registries, repositories, tags, digests)


def layer(files: dict[str, bytes | None], *, compress: bool = True) -> io.BytesIO:
    """A layer of files; None makes an empty entry, as whiteouts are."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for path, content in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(content or b"")
            archive.addfile(info, io.BytesIO(content or b""))
    data = raw.getvalue()
    return io.BytesIO(gzip.compress(data) if compress else data)
