"""`release verify`: whether an image was signed with a key."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command, Flag
from hcp.cli.release.flags import REGISTRY_FLAGS

COMMAND = Command(
    "release verify",
    "Check that an image was signed with a key",
    long="Looks for a signature as cosign and release push --sign-key make it. A release names all its images by\n"
    "digest, so its signature speaks for them too. Exit code 1 when there is none that fits.",
    examples=(("A release", "{prog} release verify registry.example.com/team/hcp/release:1.36.3 --key key.pub"),),
    args=(Arg("IMAGE", "image reference of a release or of the operator"),),
    flags=(
        Flag("key", "string", None, "the publisher's public key (PEM)", metavar="file", required=True),
        *REGISTRY_FLAGS,
    ),
    handler="hcp.cli.release.verify:run",
)


async def run(call: Call) -> None:
    from hcp.cli.engine.files import read
    from hcp.cli.release.access import in_these_words, reader
    from hcp.oci import Reference, signature
    from hcp.publish.signing import verify

    key = signature.public_key(read("key", call.text("key")))
    ref = Reference.parse(call.arg("IMAGE").removeprefix("docker://"))
    async with reader(call, ref) as client:
        with in_these_words(ref):
            digest = await verify(client, str(ref), key)
    print(f"{ref.name}@{digest} was signed with this key")
