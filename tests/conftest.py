"""What holds for every test: property tests have no deadline, because a busy machine is not a failure."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("hcp", deadline=None)
settings.load_profile("hcp")
