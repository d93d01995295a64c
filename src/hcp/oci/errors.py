"""What can go wrong with an image, told so that a person knows which image and what to do."""

from __future__ import annotations

from hcp.errors import HcpError


class ImageError(HcpError):
    """An image cannot be read."""


class UnknownImage(ImageError):
    """The registry answers, and does not have it."""


class ImageUnauthorized(ImageError):
    """The registry wants other credentials."""


class RegistryUntrusted(ImageError):
    """The registry's certificate is not signed by a CA we trust."""


class RegistryUnreachable(ImageError):
    """The registry does not answer."""


class WebPage(RegistryUnreachable):
    """Somebody else answers in the registry's place: a portal that wants a login first."""


class RegistryRefused(ImageError):
    """We do not go where the name, a redirect or a token service leads."""


class BrokenImage(ImageError):
    """The content is not what its digest or its format promises."""


def unknown(image: str, registry: str) -> UnknownImage:
    return UnknownImage(
        f"The image {image} does not exist in the registry {registry}",
        hint="Check the spelling of name, tag and digest, and that the image was pushed or mirrored there.",
    )


def unauthorized(image: str, registry: str, with_credentials: bool) -> ImageUnauthorized:
    if with_credentials:
        return ImageUnauthorized(
            f"The registry {registry} does not give the image {image} to the account in the pull secret",
            hint=f"Check the entry for {registry} in the pull secret, and that its account may pull this repository.",
        )
    return ImageUnauthorized(
        f"The registry {registry} wants credentials for the image {image}",
        hint=f"Add an entry for {registry} to the pull secret.",
    )


def untrusted(image: str, registry: str, cause: str) -> RegistryUntrusted:
    return RegistryUntrusted(
        f"The certificate of the registry {registry} is not trusted, so the image {image} cannot be read",
        cause=cause,
        hint="Add the CA that signed it to the additional trust bundle (--additional-trust-bundle) or, on the "
        "management cluster, to additionalTrustedCA of the image configuration.",
    )


def unreachable(image: str, registry: str, cause: str) -> RegistryUnreachable:
    return RegistryUnreachable(
        f"The registry {registry} cannot be reached to read the image {image}",
        cause=cause,
        hint="Check the registry's name, the network and any proxy; in a disconnected place configure a mirror.",
    )


def web_page(image: str, registry: str) -> WebPage:
    return WebPage(
        f"A web page answers instead of the registry {registry} when the image {image} is asked for",
        hint="Does this network want a login first? If not, check the registry's name and any proxy.",
    )


def refused(image: str, registry: str, cause: str) -> RegistryRefused:
    return RegistryRefused(
        f"The image {image} is not read from the registry {registry}",
        cause=cause,
        hint="Use a registry outside the management cluster that is served over https; an administrator can declare "
        "others with hcp install --internal-registries and --insecure-registries.",
    )


def broken(image: str, cause: str) -> BrokenImage:
    return BrokenImage(f"The image {image} is broken", cause=cause, hint="Push or mirror it again.")


# When every mirror and the source failed, the most telling answer is the one to show.
_TELLING: tuple[type[ImageError], ...] = (
    BrokenImage,
    RegistryRefused,
    RegistryUntrusted,
    ImageUnauthorized,
    UnknownImage,
    RegistryUnreachable,
)


def most_telling(image: str, tried: list[tuple[str, ImageError]]) -> ImageError:
    """One error for an image that none of several places gave."""
    if len(tried) == 1:
        return tried[0][1]
    for kind in _TELLING:
        for _, error in tried:
            if isinstance(error, kind):
                places = "; ".join(f"{place}: {failure}" for place, failure in tried)
                return kind(
                    f"The image {image} cannot be read from any mirror or its source", cause=places, hint=error.hint
                )
    return tried[-1][1]
