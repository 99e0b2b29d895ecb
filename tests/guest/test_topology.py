"""Topologies in words, as QEMU's arguments, and as a guest sees them; what guests saw is captured."""

from __future__ import annotations

from pathlib import Path

import pytest

from kduel.core.errors import InputError
from kduel.guest.environment import read_captured
from kduel.guest.topology import PRESETS, Topology, parse_topology, read_topology, settle_cpus, why_other_topology

SERVER = Topology(packages=2, numa=True, llc=2, cores=2, threads=2)
_CPU = "/sys/devices/system/cpu/cpu"


def as_guest_sees(planned: Topology) -> dict[str, str]:
    """Captured files of a guest that has the topology, made from the single CPUs' own places."""
    files: dict[str, str] = {}
    per_package = planned.cpus // planned.packages

    def group(cpu: int, size: int) -> str:
        first = cpu - cpu % size
        return str(cpu) if size == 1 else f"{first}-{first + size - 1}"

    domains = []
    for cpu in range(planned.cpus):
        files[f"{_CPU}{cpu}/topology/thread_siblings_list"] = group(cpu, planned.threads)
        files[f"{_CPU}{cpu}/topology/core_siblings_list"] = group(cpu, per_package)
        files[f"{_CPU}{cpu}/cache/index3/shared_cpu_list"] = group(cpu, planned.cores * planned.threads)
        sizes = sorted({planned.threads, planned.cores * planned.threads, per_package, planned.cpus} - {1})
        masks = [f"{(1 << size) - 1 << cpu - cpu % size:x}" for size in sizes]
        domains.append(" ".join([str(cpu), *masks]))
    nodes = planned.packages if planned.numa else 1
    for node in range(nodes):
        files[f"/sys/devices/system/node/node{node}/cpulist"] = group(
            node * planned.cpus // nodes, planned.cpus // nodes
        )
        distances = ["10" if other == node else str(planned.distance or 20) for other in range(nodes)]
        files[f"/sys/devices/system/node/node{node}/distance"] = " ".join(distances)
    return files | {"/kduel.domains": "\n".join(domains)}


def test_words_and_arguments() -> None:
    assert parse_topology("2 nodes x 2 llc x 2 cores x 2 threads") == SERVER
    assert parse_topology(" 2 sockets × 4 cores") == Topology(packages=2, cores=4)
    assert parse_topology("1 node x 2 llcs x 1 core") == Topology(llc=2)
    assert SERVER.argv(4097) == [
        *("-smp", "16,sockets=2,dies=2,cores=2,threads=2"),
        *("-object", "memory-backend-ram,id=node0,size=2048M", "-numa", "node,nodeid=0,cpus=0-7,memdev=node0"),
        *("-object", "memory-backend-ram,id=node1,size=2049M", "-numa", "node,nodeid=1,cpus=8-15,memdev=node1"),
    ]
    assert Topology(packages=2, cores=2).argv(64) == ["-smp", "4,sockets=2,dies=1,cores=2,threads=1"]
    far = parse_topology("2 nodes at 32 x 2 cores")
    assert far == Topology(packages=2, numa=True, distance=32, cores=2)
    assert far.argv(64)[-4:] == ["-numa", "dist,src=0,dst=1,val=32", "-numa", "dist,src=1,dst=0,val=32"]
    assert {name: parse_topology(name).cpus for name in PRESETS} == {
        "smt": 4,
        "two-llc": 4,
        "epyc": 16,
        "two-sockets": 8,
        "server": 16,
    }


@pytest.mark.parametrize(
    "text",
    [
        "2",
        "2 nodes 2 cores",
        "2 sockets at 20",
        "0 cores",
        "-1 cores",
        "2 cores x 2 cores",
        "2 widgets",
        "x",
        "1000 cores",
        "²cores",
    ],
)
def test_other_words_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(InputError, match="is not understood") as caught:
        parse_topology(text)
    assert "2 nodes x 2 llc x 4 cores x 2 threads" in caught.value.remedy


@pytest.mark.parametrize("text", ["2 nodes at 0", "2 nodes at 10", "2 nodes at 255 x 2 cores", "1 node at 20"])
def test_a_distance_that_no_node_has_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=" nodes at ") as caught:
        parse_topology(text)
    assert "11 to 254" in caught.value.remedy


def test_nodes_and_sockets_and_too_many_cpus_are_refused() -> None:
    with pytest.raises(InputError, match="both nodes and sockets"):
        parse_topology("2 nodes x 2 sockets")
    with pytest.raises(InputError, match="has 256 CPUs"):
        parse_topology("2 nodes x 128 cores")


def test_the_topology_determines_the_number_of_cpus() -> None:
    assert settle_cpus({"topology": "smt"}, "qemu") == {"topology": "smt", "cpus": 4}
    assert settle_cpus({"cpus": 3}, "qemu") == {"cpus": 3}
    with pytest.raises(InputError, match=r"cpus = 3, and the topology 'smt' has 4"):
        settle_cpus({"topology": "smt", "cpus": 3}, "qemu")


@pytest.mark.parametrize("name", [*PRESETS, "3 nodes at 32 x 2 cores"])
def test_a_guest_that_sees_the_topology_is_as_planned_and_one_that_sees_another_is_not(name: str) -> None:
    planned = parse_topology(name)
    files = as_guest_sees(planned)
    assert why_other_topology(read_topology(files), planned) == ""
    for path in files:
        if path.endswith("distance") and not planned.distance:
            continue
        changed = {**files, path: "0" if files[path] != "0" else "0-1"}
        assert "the topology is another" in why_other_topology(read_topology(changed), planned), path
        left_out = {key: value for key, value in files.items() if "domains" not in key}
        assert "unknown" in why_other_topology(read_topology(left_out), planned)


CAPTURED = sorted((Path(__file__).parent / "topologies").glob("*.txt"))
"""PRESET-KERNEL.txt: what guests of Debian's kernels saw, as their trials kept it."""


@pytest.mark.parametrize("path", CAPTURED, ids=lambda path: path.stem)
def test_kernels_see_the_presets(path: Path) -> None:
    name = path.stem.rpartition("-")[0]
    for preset, words in PRESETS.items():
        why = why_other_topology(read_topology(read_captured(path)), parse_topology(words))
        assert (why == "") == (preset == name), why


def test_kernels_are_captured() -> None:
    assert {path.stem for path in CAPTURED} >= {
        f"{name}-{kernel}" for name in PRESETS for kernel in ("6.1", "6.12", "7.3")
    }


def test_masks_are_read_in_every_form() -> None:
    lines = "0 00000000,00000003 ffffffff,ffffffff\n1\nx 3\n2 zz"
    assert read_topology({"/kduel.domains": lines})["domains"] == ["0: 2 64", "1:"]
