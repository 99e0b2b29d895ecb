"""Reports of a kernel about memory: the boot message `Memory: ...`, /proc/meminfo, and whom it killed for the last
of it.

Forms of the boot message that are known, oldest first:

    Memory: 63008k/65536k available (1084k kernel code, 412k reserved, 968k data, 64k init, 0k bigmem)    2.2
    Memory: 13396k available (892k kernel code, 252k data, 52k init, 0k highmem)                          2.4, PowerPC
    Memory: 61952KB available (2276K code, 241K data, 88K init)                                           2.6, ARM
    Memory: 1017284k/1017284k available, 31292k reserved, 0K highmem                                      3.x, ARM
    Memory: 251904k/262144k available (3776k kernel code, 10240k reserved, 164k data, 138k bss, 180k init) 2.6-3.10
    Memory: 4015304K/4193784K available (6174K kernel code, 711K rwdata, 1680K rodata, 904K init, ...)    3.11 and later
"""

import re
from collections import Counter

from kduel.benchmarks.support.reading import check_unique

KIB = r"(\d{1,15})(?:k|K|KB|kB)"
AVAILABLE = re.compile(
    rf"Memory: {KIB}(?:/{KIB})? available(?: \((?P<within>[^()\n]*)\)|(?P<after>(?:, [^,()\n]*)*)\n)", re.ASCII
)
"""With the bracket or the line end after the last number, so that none is cut."""
PART = re.compile(rf"{KIB} ([a-z-]+(?: [a-z]+)?)", re.ASCII)
NAMES = {"kernel code": "code", "bigmem": "highmem"}
MEMINFO = re.compile(r"^(\w+(?:\(\w+\))?): +(\d{1,15}) kB\n", re.MULTILINE | re.ASCII)
ACCOUNT = re.compile(r"anon-rss:(\d{1,15})kB", re.ASCII)
OURS = re.compile(r"Killed process \d+,? \(kmem\)", re.ASCII)


def read_boot_message(kernel_log: str) -> dict[str, int]:
    """KiB by name, of the first `Memory: ... available` in a kernel's log, as far as reported whole and once
    (available, physical, code, data, rwdata, rodata, init, bss, reserved, ...); {} where there is none."""
    match = AVAILABLE.search(kernel_log)
    if match is None:
        return {}
    found = {"available": int(match[1])}
    if match[2]:
        found["physical"] = int(match[2])
    listed = match["within"] if match["within"] is not None else match["after"].removeprefix(", ")
    parts = [part for text in listed.split(", ") if (part := PART.fullmatch(text))]
    names = Counter(NAMES.get(part[2], part[2]) for part in parts)
    found |= {name: int(part[1]) for part in parts if names[name := NAMES.get(part[2], part[2])] == 1}
    if "data" not in found and {"rwdata", "rodata"} <= found.keys():
        found["data"] = found["rwdata"] + found["rodata"]
    return found


def read_meminfo(text: str) -> dict[str, int]:
    """/proc/meminfo in KiB, without the table of bytes of 2.4. Raises ParseError where a name is there twice."""
    found = MEMINFO.findall(text)
    check_unique((name for name, _ in found), "the line of /proc/meminfo")
    return {name: int(number) for name, number in found}


def memory_when_killed(kernel_log: str) -> int | None:
    """KiB of anonymous memory of our program when it was killed, by the kernel's report; None without one."""
    accounts = [
        account
        for line in kernel_log.split("\n")
        if (ours := OURS.search(line)) and (account := ACCOUNT.search(line, ours.end()))
    ]
    return int(accounts[-1][1]) if accounts else None
