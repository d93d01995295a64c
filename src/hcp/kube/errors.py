"""What an API server can answer wrongly, as exceptions whose text a person can act on.

Nothing of the HTTP library leaks out of `hcp.kube`: callers catch these classes only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hcp.errors import HcpError
from hcp.http_proxy import without_password


@dataclass(frozen=True, slots=True)
class Call:
    """What was asked for, so that an error can name it."""

    verb: str
    target: str
    ns: str | None = None
    name: str | None = None
    server: str = ""

    def what(self) -> str:
        text = f'{self.target} "{self.name}"' if self.name else self.target
        return f"{text} in namespace {self.ns}" if self.ns else text


class ApiError(HcpError):
    """The API server refused or failed a request."""

    def __init__(
        self,
        sentence: str,
        *,
        status: int = 0,
        reason: str = "",
        details: Mapping[str, Any] | None = None,
        cause: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(sentence, cause=cause, hint=hint)
        self.status = status
        self.reason = reason
        self.details: Mapping[str, Any] = details or {}


class NotFound(ApiError):
    """404: the object, or the whole kind, is not there."""


class Conflict(ApiError):
    """409: somebody else changed the object, or owns the field."""


class AlreadyExists(Conflict):
    """409 on create."""


class Forbidden(ApiError):
    """403: the user is known and may not do this."""


class Unauthorized(ApiError):
    """401: the credentials are not accepted."""


class ClientCertificateExpired(Unauthorized):
    """401, and our own certificate shows why."""


class Gone(ApiError):
    """410: the version we wanted to continue from is compacted; list again."""


class Invalid(ApiError):
    """400 and 422: the object does not pass validation."""


class TooManyRequests(ApiError):
    """429 that outlived our patience."""


class ServerFailure(ApiError):
    """5xx."""


class Unreachable(ApiError):
    """No answer at all: no route, refused, reset, timeout, name not resolved."""


class UntrustedCertificate(Unreachable):
    """The server's certificate is not signed by a CA we were told to trust, or not for this name."""


class ServerCertificateExpired(UntrustedCertificate):
    """The server's certificate is out of its dates."""


def from_status(call: Call, status: int, body: Mapping[str, Any]) -> ApiError:
    """Turn an HTTP status and the Status object that came with it into the exception to raise."""
    reason = str(body.get("reason") or "")
    message = str(body.get("message") or "").strip() or f"HTTP {status}"
    details = body.get("details") if isinstance(body.get("details"), Mapping) else {}
    known: dict[str, Any] = {"status": status, "reason": reason, "details": details, "cause": message}
    what = call.what()
    if status == 401:
        return Unauthorized(
            f"The API server {call.server} does not accept these credentials",
            hint="Log in again, or check that the token or client certificate in the kubeconfig has not expired.",
            **known,
        )
    if status == 403 and (denied := message.partition("denied request: ")[2]):
        # An admission policy: the rights on the kind are there, and its sentence says what is missing.
        return Forbidden(f"Not allowed to {call.verb} {what} as it is", **{**known, "cause": denied})
    if status == 403:
        return Forbidden(
            f"Not allowed to {call.verb} {what}",
            hint=f"Ask for a role with the verb {call.verb} on {call.target}"
            + (f" in namespace {call.ns}." if call.ns else ", bound for the whole cluster."),
            **known,
        )
    if status == 404:
        return NotFound(f"There is no {what}", **known)
    if status == 409 and reason == "AlreadyExists":
        return AlreadyExists(f"There is already a {what}", **known)
    if status == 409:
        return Conflict(f"Cannot {call.verb} {what}, it was changed by someone else meanwhile", **known)
    if status == 410:
        return Gone(f"The API server no longer has the version of {what} asked for", **known)
    if status == 500 and "field not declared in schema" in message:
        return Invalid(
            f"The API server does not accept {what}",
            hint="The cluster has another version of this kind, without that field: update its CRD.",
            **known,
        )
    if status in (400, 422):
        return Invalid(f"The API server does not accept {what}", **known)
    if status == 429:
        return TooManyRequests(
            f"The API server {call.server} is too busy to {call.verb} {what}", hint="Try again in a moment.", **known
        )
    if status >= 500:
        return ServerFailure(f"The API server {call.server} failed to {call.verb} {what}", **known)
    return ApiError(f"Cannot {call.verb} {what}", **known)


def unreachable(server: str, cause: str) -> Unreachable:
    return Unreachable(
        f"The API server {server} cannot be reached",
        cause=cause,
        hint="Check the server address in the kubeconfig, the network and any VPN, and that the cluster is running.",
    )


def proxy_refused(server: str, proxy: str, status: int, said: str) -> Unreachable:
    hint = "Check the proxy's rules, and that the server's address is one that it reaches."
    if status == 407:
        hint = "Put the proxy's user and password into its URL: http://user:password@host:port."
    shown = without_password(proxy)
    return Unreachable(f"The proxy {shown} does not let us through to {server}", cause=f"{said} ({status})", hint=hint)


def no_proxy_there(server: str, proxy: str, cause: str) -> Unreachable:
    return Unreachable(
        f"The proxy {without_password(proxy)} on the way to the API server {server} cannot be reached",
        cause=cause,
        hint="Check proxy-url in the kubeconfig, or HTTPS_PROXY; NO_PROXY names servers that are reached directly.",
    )


def untrusted(server: str, cause: str) -> UntrustedCertificate:
    return UntrustedCertificate(
        f"The certificate of the API server {server} is not trusted",
        cause=cause,
        hint="Put the CA that signed it into certificate-authority-data of the kubeconfig.",
    )


def server_certificate_expired(server: str, cause: str) -> ServerCertificateExpired:
    return ServerCertificateExpired(
        f"The certificate of the API server {server} is out of its dates",
        cause=cause,
        hint="Renew the server's certificate, and check that the clocks of both machines are right.",
    )


def client_certificate_expired(server: str, when: str) -> ClientCertificateExpired:
    return ClientCertificateExpired(
        f"The client certificate for the API server {server} expired on {when}",
        status=401,
        reason="Unauthorized",
        hint="Get a new kubeconfig for this cluster.",
    )
