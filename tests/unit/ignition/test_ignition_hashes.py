from hypothesis import given
from hypothesis import strategies as st

from hcp.ignition.hashes import fnv32a, hash_simple, limited_name


def test_known_fnv_values() -> None:
    assert fnv32a(b"") == 0x811C9DC5
    assert fnv32a(b"a") == 0xE40C292C
    assert fnv32a(b"foobar") == 0xBF9CF968


def test_bytes_are_hashed_as_go_prints_them() -> None:
    assert hash_simple(b"\x01\x02\x03") == hash_simple("[1 2 3]")
    assert hash_simple("") == "811c9dc5"


@given(st.text("abc-", min_size=1, max_size=80), st.text("xyz", min_size=1, max_size=80), st.integers(20, 60))
def test_names_fit_and_short_ones_are_kept(base: str, suffix: str, longest: int) -> None:
    name = limited_name(base, suffix, longest)
    assert len(name) <= longest
    if len(base) + len(suffix) + 1 <= longest:
        assert name == f"{base}-{suffix}"
