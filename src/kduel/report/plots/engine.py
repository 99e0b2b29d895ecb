"""The drawing library, imported where it is used: it starts a JavaScript engine, which ends the process where it cannot."""

import resource
from typing import Any

from kduel.core.errors import HostError

ADDRESS_SPACE = 80 << 30
"""Bytes of addresses that the engine reserves, and what Python uses besides: it is reserved, not used."""


def drawing() -> Any:
    """The library. Raises HostError where this process may not reserve what it needs."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < ADDRESS_SPACE:
        raise HostError(
            f"plots cannot be drawn within {limit >> 20} MiB of address space (ulimit -v)",
            f"Allow {ADDRESS_SPACE >> 30} GiB (they are reserved, not used): ulimit -v unlimited. Other formats need no plots: "
            "kduel report RUN --format text.",
        )
    import vl_convert

    return vl_convert
