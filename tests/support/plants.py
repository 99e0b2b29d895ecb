"""Instructions planted in a kernel's functions, by patching its bytes: so many more on a path, in the function's own code.

A static branch that is off is a `nop` in the path, and its body lies behind the function's paths: nobody executes it. The `nop`
becomes a jump to the body, which becomes a loop and a jump back. Where there is none, the beginning of a function jumps.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from planted import offset_of

from kduel.explain.symbols import Symbols

NOPS = (b"\x0f\x1f\x44\x00\x00", b"\x66\x90")
"""What a static branch that is off is."""
LOOP = 9
"""Bytes of the planted loop."""
JUMP = 5
SIGPIPE = b"\x31\xd2\xbf\x0d\x00\x00\x00\x65\x48\x8b\x34\x25"
"""xor %edx,%edx; mov $13,%edi; mov %gs:...,%rsi; how a write to a pipe without readers begins to send the signal."""
SIGPIPE_ROOM = 21
"""Bytes of that path up to the end of the call that follows."""
ENDBR = b"\xf3\x0f\x1e\xfa"
PUSHES = b"\x41\x57\x41\x56\x41\x55"
"""push %r15, %r14, %r13: how a function begins that needs many registers."""
SIGNED = b"~Module signature appended~\n"
SIGNATURE = struct.Struct(">5B3xI")
"""What precedes that mark: algorithms and lengths, at last that of the signature, which precedes it."""


class Branch(NamedTuple):
    """A static branch that is off: addresses, and bytes of the `nop` and of the body."""

    site: int
    length: int
    body: int
    room: int


class Kernel:
    """A kernel's ELF file that is patched, with the symbols of its running self."""

    def __init__(self, elf: bytes, kallsyms: str) -> None:
        self.elf = bytearray(elf)
        self.symbols = Symbols.from_kallsyms(kallsyms)
        self.planted: dict[str, set[int]] = {}
        """By function, the offsets of what was written."""

    def span(self, function: str) -> tuple[int, int]:
        """Where a function begins and ends."""
        at = self.symbols.by_address.index(function)
        return self.symbols.addresses[at], self.symbols.addresses[at + 1]

    def code(self, begin: int, length: int) -> bytes:
        at = offset_of(self.elf, begin)
        return bytes(self.elf[at : at + length])

    def write(self, address: int, code: bytes) -> None:
        function, begin = self.symbols.function(address), self.symbols.start(address)
        self.planted.setdefault(function, set()).update(range(address - begin, address - begin + len(code)))
        at = offset_of(self.elf, address)
        self.elf[at : at + len(code)] = code

    def branches(self, function: str) -> list[Branch]:
        """A function's static branches that are off, and whose bodies lie in it and lead back behind the branch."""
        begin, end = self.span(function)
        code = self.code(begin, end - begin)
        found = []
        for nop in NOPS:
            at = code.find(nop)
            while at >= 0:
                site = begin + at
                for body in self.targets(site):
                    back = [
                        place
                        for place in range(max(body - begin, 0), len(code) - JUMP + 1)
                        if code[place] == 0xE9
                        and begin + place + JUMP + struct.unpack_from("<i", code, place + 1)[0] == site + len(nop)
                    ]
                    if begin <= body < end and back:
                        found.append(Branch(site, len(nop), body, begin + back[0] + JUMP - body))
                at = code.find(nop, at + 1)
        return sorted(found)

    def targets(self, site: int) -> list[int]:
        """Where the entries of the kernel's table of static branches lead from an address: relative addresses both."""
        found = []
        table, size, count = struct.unpack_from("<Q", self.elf, 32)[0], *struct.unpack_from("<HH", self.elf, 54)
        for number in range(count):
            kind, _, offset, virtual, _, length = struct.unpack_from("<IIQQQQ", self.elf, table + number * size)
            if kind != 1 or not virtual:
                continue
            words = np.frombuffer(self.elf, dtype="<i4", offset=offset, count=length // 8 * 2).astype(np.int64)
            leads = words + np.arange(len(words), dtype=np.int64) * 4
            found += [int(leads[hit + 1]) + virtual for hit in np.nonzero(leads[::2] == site - virtual)[0] * 2]
        return found

    def slow_branch(self, function: str, more: int, executed: Collection[int]) -> None:
        """Plant in the first static branch with room that is executed (offsets of instructions)."""
        begin, _ = self.span(function)
        for branch in self.branches(function):
            if branch.site - begin in executed and branch.room >= LOOP + JUMP:
                # A jump in place of the nop, and the jump back.
                self.write(branch.body, loop(more - 1) + jump(branch.body + LOOP, branch.site + branch.length))
                self.write(branch.site, jump(branch.site, branch.body, branch.length))
                return
        raise AssertionError(f"{function} has no static branch that is off, executed, and has room")

    def slow_pipe_write(self, more: int) -> None:
        """Plant at the beginning of pipe_write, which has no static branch on its path; the room is where it sends SIGPIPE."""
        begin, end = self.span("pipe_write")
        code = self.code(begin, end - begin)
        # Behind the call of the tracer, which the kernel replaces when it boots.
        assert code[0] == 0xE8 and code[JUMP : JUMP + len(PUSHES)] == PUSHES, code[:16].hex(" ")
        at = code.index(SIGPIPE)
        call = at + SIGPIPE_ROOM - JUMP
        assert code[call] == 0xE8
        called = begin + call + JUMP + struct.unpack_from("<i", code, call + 1)[0]
        assert self.symbols.function(called) == "send_sig"
        # The displaced instructions move along; a jump there and one back.
        filled = PUSHES + loop(more - 2)
        filled += jump(begin + at + len(filled), begin + JUMP + len(PUSHES))
        assert len(filled) <= SIGPIPE_ROOM
        self.write(begin + at, filled)
        self.write(begin + JUMP, jump(begin + JUMP, begin + at))


def loop(executed: int) -> bytes:
    """LOOP bytes that execute so many instructions, and change neither registers nor flags."""
    # push %rcx; mov $N,%ecx; loop .; pop %rcx
    return b"\x51\xb9" + struct.pack("<I", executed - 3) + b"\xe2\xfe\x59"


def jump(here: int, there: int, length: int = JUMP) -> bytes:
    """A jump of 5 bytes, or of 2."""
    return (
        struct.pack("<Bi", 0xE9, there - here - 5) if length == JUMP else struct.pack("<Bb", 0xEB, there - here - 2)
    )


def slow_module(elf: bytes, head: bytes) -> bytes:
    """A module of which a function takes three instructions more: the one that begins with an endbr64, then `head`."""
    assert elf.count(ENDBR + head) == 1
    return elf.replace(ENDBR + head, b"\x90" * 4 + head)


def unsigned(module: bytes) -> bytes:
    """A module without its signature: a wrong one is refused, none is not."""
    if not module.endswith(SIGNED):
        return module
    at = len(module) - len(SIGNED) - SIGNATURE.size
    *_, length = SIGNATURE.unpack_from(module, at)
    return module[: at - length]
