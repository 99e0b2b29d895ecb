"""Programs that a step's script runs and that a real machine must have: checked there before the first trial."""

import re
from collections.abc import Iterable
from typing import Any

from kduel.benchmarks import Benchmark
from kduel.benchmarks.support import load
from kduel.core.experiment import Step

COMMANDS = {
    "apache2-utils": ("ab",), "dbench": ("dbench", "tbench", "tbench_srv"), "ethtool": ("ethtool",), "fio": ("fio",),
    "git": ("git",), "iperf3": ("iperf3",), "iproute2": ("ip", "tc"), "linux-cpupower": ("turbostat",),
    "libmemcached-tools": ("memcaslap", "memcping"), "linux-perf": ("perf",), "mariadb-client-core": ("mariadb",),
    "mariadb-server-core": ("mariadbd", "mariadb-install-db"), "memcached": ("memcached",),
    "netperf": ("netperf", "netserver"), "nginx-light": ("nginx",), "procps": ("vmstat",),
    "redis-server": ("redis-server",), "redis-tools": ("redis-cli", "redis-benchmark"),
    "rt-tests": ("cyclictest", "hackbench", "oslat", "signaltest"), "sqlite3": ("sqlite3",), "stress-ng": ("stress-ng",),
    "sysbench": ("sysbench",), "tcc": ("tcc",), "zstd": ("zstd",),
}  # fmt: skip
"""Commands in PATH, by the Debian package that has them."""


def commands_of(steps: Iterable[tuple[Step, Benchmark[Any], Any]]) -> tuple[tuple[str, str, str], ...]:
    """Each command once, with its package and the label of the first step that runs it; steps come with benchmark and parameters."""
    found: dict[str, tuple[str, str, str]] = {}
    for step, chosen, given in steps:
        under = load.of_step(step, given)
        service = None if chosen.needs_peer(given) else chosen.service(given)
        text = f"{chosen.script(given)}\n{service.start if service else ''}\n{load.COMMANDS.get(under, '')}"
        for package in (*chosen.packages_for(given), *load.PACKAGES):
            for command in COMMANDS.get(package, ()):
                if re.search(rf"(?<![\w./$-]){re.escape(command)}(?![\w.-])", text):
                    found.setdefault(command, (command, package, step.label))
    return tuple(found.values())
