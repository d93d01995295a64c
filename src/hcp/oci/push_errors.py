"""What can go wrong while an image is pushed, told so that a person knows which registry and what to do."""

from __future__ import annotations

from hcp.errors import HcpError
from hcp.oci.errors import ImageError, ImageUnauthorized, RegistryUntrusted
from hcp.oci.reference import Reference

AGAIN = "run it again when the registry answers: what has arrived is not sent again"


class PushError(HcpError):
    """An image did not reach the registry."""


def failed(ref: Reference, error: ImageError, *, with_login: bool) -> PushError:
    """The error of a request, in the words of somebody who pushes."""
    what = f"pushing {ref.repository} to the registry {ref.registry} failed"
    if isinstance(error, ImageUnauthorized):
        return login(ref, with_login=with_login)
    if isinstance(error, RegistryUntrusted):
        return PushError(
            f"{what}: its certificate is not trusted",
            cause=error.cause,
            hint="give the CA that signed it as a PEM file with --ca",
        )
    if "HTTP request to an HTTPS server" in (error.cause or ""):
        return PushError(what, cause="it speaks TLS", hint="leave --insecure out; --ca names a CA of its own")
    if "WRONG_VERSION_NUMBER" in (error.cause or ""):
        return PushError(
            what, cause="it does not speak TLS", hint="a registry without TLS has to be declared with --insecure"
        )
    return PushError(what, cause=error.cause or str(error), hint=f"check its name and the network; {AGAIN}")


def login(ref: Reference, *, with_login: bool) -> PushError:
    if with_login:
        return PushError(
            f"the registry {ref.registry} does not accept the login for {ref.repository}",
            hint=f"log in again (podman login {ref.registry}, docker login {ref.registry}) with an account that may "
            "push there, or name a file with the right login with --authfile",
        )
    return PushError(
        f"the registry {ref.registry} wants a login to push {ref.repository}",
        hint=f"log in (podman login {ref.registry}, docker login {ref.registry}), or name a file with a login with "
        "--authfile",
    )


def refused(ref: Reference, method: str, path: str, status: int, text: str, *, with_login: bool) -> PushError:
    """An answer that is neither success nor worth another try."""
    said = f"{status} {text}".strip()
    if status in (401, 403):
        found = login(ref, with_login=with_login)
        return PushError(found.sentence, cause=said, hint=found.hint)
    if status == 405:
        return PushError(
            f"the registry {ref.registry} takes no uploads",
            cause=f"{method} {path}: {said}",
            hint="it is read-only, or only a cache of another one: push to a registry that can be written",
        )
    if status == 413:
        return PushError(
            f"the registry {ref.registry} refuses uploads of this size",
            cause=said,
            hint="raise the limit of the proxy in front of it (nginx: client_max_body_size 0)",
        )
    return PushError(f"the registry refused {method} {path}", cause=said)


def lasting(ref: Reference, cause: str, tries: int) -> PushError:
    return PushError(
        f"pushing {ref.repository} to the registry {ref.registry} failed {tries} times without getting any further",
        cause=cause,
        hint=AGAIN,
    )
