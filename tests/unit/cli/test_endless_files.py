"""A file without an end takes no more memory than a file that fits."""

from __future__ import annotations

import pytest

from hcp.cli.engine import files
from hcp.cli.engine.command import UsageError


@pytest.mark.parametrize("flag", ["pull-secret", "ssh-key"])
def test_a_file_without_an_end_is_refused(flag: str) -> None:
    with pytest.raises(UsageError, match="cannot be used") as refused:
        files.read(flag, "/dev/zero")
    assert "1 MiB" in str(refused.value.cause)
