"""CPU topology of a guest: from words to QEMU's arguments, and what the guest must then see. `2 nodes x 2 llc x 4
cores x 2 threads` are two packages with own memory, each two caches of four cores of two threads: 32 CPUs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, permutations
from typing import Any

from msgspec import Struct

from kduel.core.errors import InputError

PRESETS = {
    "smt": "2 cores x 2 threads",
    "two-llc": "2 llc x 2 cores",
    "epyc": "4 llc x 2 cores x 2 threads",
    "two-sockets": "2 nodes x 4 cores",
    "server": "2 nodes x 2 llc x 2 cores x 2 threads",
}
"""Small pictures of machines that people have, by name."""
_TERM = re.compile(r"([0-9]{1,3}) *(?:(nodes?)(?: at ([0-9]{1,3}))?|(sockets?|llcs?|cores?|threads?))", re.ASCII)
NEAR, FARTHEST = 10, 254
"""Distances of memory: a node's own, and the largest that firmware can tell."""
_LEVELS = ("nodes", "sockets", "llc", "cores", "threads")
MOST_CPUS = 255
_CPU = r"^/sys/devices/system/cpu/cpu[0-9]+/"
_SEEN = {
    "threads": re.compile(_CPU + r"topology/thread_siblings_list$"),
    "llc": re.compile(_CPU + r"cache/index3/shared_cpu_list$"),
    "packages": re.compile(_CPU + r"topology/core_siblings_list$"),
    "nodes": re.compile(r"^/sys/devices/system/node/node[0-9]+/cpulist$"),
    "distances": re.compile(r"^/sys/devices/system/node/node[0-9]+/distance$"),
    "domains": re.compile(r"^/kduel\.domains$"),
}


_WORDS = {
    "threads": "threads of a core",
    "llc": "CPUs of a last-level cache",
    "packages": "CPUs of a package",
    "nodes": "CPUs of a node",
    "distances": "distances of the nodes' memory",
    "domains": "CPUs of the scheduler domains of each CPU",
}


class Topology(Struct, frozen=True, kw_only=True):
    """Packages, last-level caches, cores and threads of a guest; each number is of one of the level above."""

    packages: int = 1
    numa: bool = False
    """Whether each package has memory of its own."""
    distance: int = 0
    """Of the other packages' memory, where a package's own has 10; 0: the kernel's default, 20."""
    llc: int = 1
    cores: int = 1
    threads: int = 1

    @property
    def cpus(self) -> int:
        return self.packages * self.llc * self.cores * self.threads

    def argv(self, memory_mib: int) -> list[str]:
        """QEMU's arguments; the memory is shared out evenly among the nodes, the rest is the last one's."""
        smp = f"{self.cpus},sockets={self.packages},dies={self.llc},cores={self.cores},threads={self.threads}"
        out = ["-smp", smp]
        if self.numa:
            each, part = self.cpus // self.packages, memory_mib // self.packages
            for node in range(self.packages):
                size = part if node < self.packages - 1 else memory_mib - part * node
                out += ["-object", f"memory-backend-ram,id=node{node},size={size}M"]
                out += ["-numa", f"node,nodeid={node},cpus={node * each}-{(node + 1) * each - 1},memdev=node{node}"]
        if self.distance:
            for one, other in permutations(range(self.packages), 2):
                out += ["-numa", f"dist,src={one},dst={other},val={self.distance}"]
        return out

    def planned_lists(self) -> dict[str, list[str]]:
        """CPUs that belong together, as `read_topology` gives them: lists of CPUs by level, in ascending order."""
        sizes = {"threads": self.threads, "llc": self.cores * self.threads, "packages": self.cpus // self.packages}
        sizes["nodes"] = sizes["packages"] if self.numa else self.cpus
        spans = sorted({*sizes.values(), self.cpus} - {1})
        of_nodes = range(self.packages)
        rows = [" ".join(str(NEAR if one == other else self.distance) for other in of_nodes) for one in of_nodes]
        distances = {"distances": sorted(rows, key=_first_number)} if self.distance else {}
        return (
            {level: _cpu_lists(size, self.cpus) for level, size in sizes.items()}
            | distances
            | {"domains": [f"{cpu}: {' '.join(map(str, spans))}" for cpu in range(self.cpus)]}
        )


def parse_topology(text: str) -> Topology:
    """The topology in words, or by a preset's name. Raises InputError."""
    found: dict[str, int] = {}
    distance: int | None = None
    for term in re.split(r"\s*[x×*,]\s*", PRESETS.get(text.strip(), text).strip()):
        match = _TERM.fullmatch(term.strip())
        level = (match[2] or match[4]).rstrip("s") if match else ""
        name = next((one for one in _LEVELS if one.rstrip("s") == level), "")
        if match is None or name in found or int(match[1]) < 1:
            raise InputError(
                f"machine: topology = {text!r} is not understood",
                f'Write it like "2 nodes x 2 llc x 4 cores x 2 threads" (sockets for nodes that share memory), or {", ".join(PRESETS)}.',
            )
        found[name] = int(match[1])
        distance = int(match[3]) if match[3] else distance
    if {"nodes", "sockets"} <= found.keys():
        raise InputError(
            f"machine: topology = {text!r} has both nodes and sockets",
            "Give nodes where each socket has memory of its own, else sockets.",
        )
    if distance is not None and not (NEAR < distance <= FARTHEST and found["nodes"] > 1):
        raise InputError(
            f"machine: topology = {text!r} has {found['nodes']} nodes at {distance}",
            f"Give the distance of other nodes' memory, {NEAR + 1} to {FARTHEST}, of 2 nodes or more; a node's own is {NEAR}.",
        )
    topology = Topology(
        packages=found.get("nodes", found.get("sockets", 1)),
        numa=found.get("nodes", 1) > 1,
        distance=distance or 0,
        llc=found.get("llc", 1),
        cores=found.get("cores", 1),
        threads=found.get("threads", 1),
    )
    if topology.cpus > MOST_CPUS:
        raise InputError(
            f"machine: topology = {text!r} has {topology.cpus} CPUs", f"A guest has {MOST_CPUS} CPUs at most."
        )
    return topology


def settle_cpus(table: Mapping[str, Any], machine: str) -> dict[str, Any]:
    """A [machine] table in which `cpus` is what its topology has. Raises InputError where both differ."""
    text = table.get("topology")
    if not isinstance(text, str) or not text:
        return dict(table)
    cpus = parse_topology(text).cpus
    if table.get("cpus", cpus) != cpus:
        raise InputError(
            f"machine {machine}: cpus = {table['cpus']}, and the topology {text!r} has {cpus}",
            "Leave cpus out: the topology determines it.",
        )
    return {**table, "cpus": cpus}


def read_topology(files: Mapping[str, str]) -> dict[str, list[str]]:
    """CPUs that belong together as the guest saw them, by level, from captured files by their path: lists such as 0-3, each
    once; of scheduler domains, for each CPU how many CPUs each spans."""
    found: dict[str, set[str]] = {}
    for path, text in files.items():
        for level, pattern in _SEEN.items():
            if pattern.match(path):
                found.setdefault(level, set()).update(line.strip() for line in text.splitlines())
    if domains := found.pop("domains", None):
        found["domains"] = set(_read_domains(sorted(domains)))
    return {level: sorted(lists, key=_first_number) for level, lists in found.items()}


def is_of_topology(path: str) -> bool:
    return any(pattern.match(path) for pattern in _SEEN.values())


def why_other_topology(seen: Mapping[str, Sequence[str]], planned: Topology) -> str:
    """Reason why a guest has another topology than planned; empty where it has it. A level that it does not show is one."""
    for level, lists in planned.planned_lists().items():
        if (there := list(seen.get(level, []))) != lists:
            return f"the topology is another: {_WORDS[level]} {'; '.join(there) or 'unknown'}, planned {'; '.join(lists)}"
    return ""


def _read_domains(lines: Sequence[str]) -> Iterator[str]:
    """From lines CPU MASK MASK..., masks in hexadecimal digits with commas."""
    for line in lines:
        cpu, *masks = line.split()
        if re.fullmatch(r"[0-9]{1,4}", cpu) and all(re.fullmatch(r"[0-9a-f,]{1,4096}", mask) for mask in masks):
            spans = sorted({int(mask.replace(",", ""), 16).bit_count() for mask in masks})
            yield f"{cpu}: {' '.join(map(str, spans))}".rstrip()


def _cpu_lists(size: int, cpus: int) -> list[str]:
    edges = range(0, cpus + 1, size)
    return [f"{begin}-{end - 1}" if size > 1 else f"{begin}" for begin, end in pairwise(edges)]


def _first_number(text: str) -> tuple[int, str]:
    match = re.match(r"[0-9]{1,9}", text)
    return int(match[0]) if match else -1, text
