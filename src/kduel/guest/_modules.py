from __future__ import annotations

import lzma
import re
from collections.abc import Sequence
from pathlib import Path

from kduel.kernels import Kernel


def unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def closure(kernel: Kernel, names: Sequence[str]) -> list[Path]:
    if not kernel.modules:
        return []
    there = {p.name.split(".")[0].replace("-", "_"): p for p in kernel.modules.rglob("*.ko*")}
    out: list[Path] = []

    def need(name: str) -> None:
        p = there.get(name.replace("-", "_"))
        if p is None or p in out:
            return
        data = unpacked(p)
        for m in re.finditer(rb"\0(?:depends|softdep)=([^\0]*)\0", data):
            for w in re.split(r"[ ,]+", m[1].decode().replace("pre:", "")):
                if w.startswith("post:"):
                    break
                if w:
                    need("crc32c_generic" if w == "crypto-crc32c" else w)
        if p not in out:
            out.append(p)

    for n in names:
        need(n)
    return out
