"""Images of MetalLB. Made when an embedded cluster shall have it (`hcp local up --with metallb`), not before."""

from __future__ import annotations

from hcp.payload.image import Image, binaries, version_of

COMPONENT = "metallb"


def metallb_images() -> list[Image]:
    """The speaker hears and answers ARP: of its capabilities only root's are in force."""
    return [
        Image(
            f"metallb-{program}",
            version_of(COMPONENT),
            binaries(COMPONENT, program),
            entrypoint=(program,),
            user=user,
            summary=f"MetalLB's {program}",
        )
        for program, user in (("controller", "65534"), ("speaker", "0"))
    ]
