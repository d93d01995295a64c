"""What a driver can answer instead of a result, with the code by which the caller decides whether to ask again.

Codes are words, so that what merely names them does not import gRPC.
"""

from __future__ import annotations

import errno
from typing import ClassVar

from hcp.errors import HcpError
from hcp.kube import errors as kube


class CsiError(HcpError):
    code: ClassVar[str] = "INTERNAL"


class InvalidArgument(CsiError):
    """The request can never be right."""

    code = "INVALID_ARGUMENT"


class NotFound(CsiError):
    code = "NOT_FOUND"


class AlreadyExists(CsiError):
    """The name is taken by something else than what is asked for."""

    code = "ALREADY_EXISTS"


class FailedPrecondition(CsiError):
    """Not in the state it is in, such as a volume still in use."""

    code = "FAILED_PRECONDITION"


class OutOfRange(CsiError):
    """A size, or a token of a list, that cannot be."""

    code = "OUT_OF_RANGE"


class ResourceExhausted(CsiError):
    """No room left, or no place to attach another volume."""

    code = "RESOURCE_EXHAUSTED"


class Aborted(CsiError):
    """Somebody works on the same volume: ask again."""

    code = "ABORTED"


class Unavailable(CsiError):
    """Not at this moment: ask again."""

    code = "UNAVAILABLE"


class PermissionDenied(CsiError):
    code = "PERMISSION_DENIED"


# What an API server answers, as the caller of a driver should take it; the first that fits.
_OF_API: tuple[tuple[type[kube.ApiError], str], ...] = (
    (kube.NotFound, "NOT_FOUND"),
    (kube.AlreadyExists, "ALREADY_EXISTS"),
    (kube.Conflict, "ABORTED"),
    (kube.Forbidden, "PERMISSION_DENIED"),
    (kube.Invalid, "INVALID_ARGUMENT"),
    (kube.ApiError, "UNAVAILABLE"),
)


def code_of(error: BaseException) -> str:
    """The gRPC code that an exception means."""
    if isinstance(error, CsiError):
        return error.code
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ResourceExhausted.code
    return next((code for kind, code in _OF_API if isinstance(error, kind)), "INTERNAL")
