"""The sched_ext schedulers that `kduel schedulers build` knows: name, pinned version, what each is for."""

from msgspec import Struct

from kduel.core.errors import InputError

PLAIN = "scx_plain"
"""Our own (programs/scx_plain.c), compiled with KDuel's other programs: one queue, first come first served."""
PLAIN_ABOUT = "KDuel's own, needs no building: one queue for all CPUs, first come first served"


class CatalogueEntry(Struct, frozen=True):
    """A scheduler of the sched-ext project, published as a crate of the same name."""

    name: str
    version: str
    about: str


KNOWN = {
    known.name: known
    for known in (
        CatalogueEntry("scx_bpfland", "1.1.4", "virtual run time, interactive tasks first"),
        CatalogueEntry("scx_cosmos", "1.1.7", "light, keeps tasks on their CPU"),
        CatalogueEntry("scx_flash", "1.1.4", "earliest deadline first, for multimedia and audio"),
        CatalogueEntry(
            "scx_lavd", "1.1.4", "latency-critical tasks first, for games; modes --performance, --powersave, ..."
        ),
    )
}
"""All four were built, loaded and measured with KDuel at these versions."""


def find_entry(name: str) -> CatalogueEntry:
    """The scheduler of that name. Raises InputError that lists what there is."""
    if name == PLAIN:
        raise InputError(f"{PLAIN} needs no building", f'It is KDuel\'s own: write scheduler = "{PLAIN}".')
    if name not in KNOWN:
        raise InputError(
            f"KDuel does not know how to build {name!r}",
            f"It builds {', '.join(KNOWN)}. One of your own is used as it is, where it is in PATH.",
        )
    return KNOWN[name]
