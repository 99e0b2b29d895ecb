"""Settings and sources of our own for apt, in a directory of the cache."""

import os
import re
import shutil
from pathlib import Path

from kduel.core.cache import as_cache_error
from kduel.core.supervised_process import run_text
from kduel.kernels.apt.mirror import debian_mirror, keyring, security_mirror

ARCHIVED = ("bullseye",)
"""Releases whose suites are no longer re-signed regularly: apt must not ask that their date be recent."""
RELEASES = ("bullseye", "bookworm", "trixie", "forky")
ROLLING = ("sid", "experimental")
HOST_SETTINGS = re.compile(
    r"Acquire::("
    r"(https?|ftp|tor)::(Proxy(::[^ ]+)?|Proxy-?Auto-?Detect|Timeout|ConnectionAttemptDelayMsec|Dl-Limit|No-Cache"
    r"|Pipeline-Depth|User-Agent)"
    r"|https::(CAInfo|CAPath|SslCert|SslKey)"
    r"|ForceIPv[46]|EnableSrvRecords|Queue-Mode|Retries"
    r") ",
    re.IGNORECASE,
)
"""Settings of the host's apt that are taken over: how it reaches the network. No other is: `Check-Valid-Until`,
`https::Verify-Peer` or `AllowInsecureRepositories` would switch a check off."""


def write_settings(place: Path, architecture: str) -> None:
    """apt's configuration: everything below our own directory, and of the host's only how it reaches the net."""
    dump = run_text(["apt-config", "dump"])
    reach = filter(HOST_SETTINGS.match, dump.stdout.splitlines())
    nowhere = ("parts", "main", "sourceparts", "preferences", "preferencesparts", "trusted", "trustedparts")
    lines = [
        'Acquire::Retries "3";',
        'Acquire::http::Timeout "30";',
        'Acquire::https::Timeout "30";',
        *reach,
        'Acquire::Languages "none";',
        'Acquire::PDiffs "false";',
        'Acquire::GzipIndexes "true";',
        *(f'Dir::Etc::{name} "/dev/null";' for name in nowhere),
        f'Dir::Etc::sourcelist "{place}/debian.sources";',
        f'Dir::State "{place}/state";',
        f'Dir::State::status "{place}/status";',
        f'Dir::Cache "{place}/cache";',
        'Dir::Cache::pkgcache "";',
        'Dir::Cache::srcpkgcache "";',
        f'APT::Architecture "{architecture}";',
        f'APT::Architectures {{ "{architecture}"; }};',
        # The cache is the user's own; apt's helper user need not be able to reach it.
        'APT::Sandbox::User "root";',
    ]
    with as_cache_error(place):
        for directory in ("state/lists/partial", "cache/archives/partial"):
            (place / directory).mkdir(parents=True, exist_ok=True)
        (place / "status").touch()
        fresh = place / f".apt.conf.{os.getpid()}"
        fresh.write_text("\n".join(lines) + "\n", encoding="utf-8")
        fresh.rename(place / "apt.conf")


def write_sources(place: Path, architecture: str) -> None:
    """apt's sources: all suites that have kernels, by the mirrors and keys of Debian."""
    main, security, keys = debian_mirror(), security_mirror(), keyring()
    stanzas = []
    for releases, extra in ((ARCHIVED, "Check-Valid-Until: no\n"), (set(RELEASES) - set(ARCHIVED), "")):
        ordered = [release for release in RELEASES if release in releases]
        suites = [f"{release}{part}" for release in ordered for part in ("", "-updates", "-backports")]
        suites += [] if extra else list(ROLLING)
        for address, names in ((main, suites), (security, [f"{release}-security" for release in ordered])):
            stanzas.append(
                f"Types: deb\nURIs: {address}\nSuites: {' '.join(names)}\nComponents: main\n"
                f"Architectures: {architecture}\nSigned-By: {keys}\n{extra}"
            )
    text, path = "\n".join(stanzas), place / "debian.sources"
    with as_cache_error(place):
        place.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text("utf-8") != text:
            # apt keeps the lists of other mirrors where a suite of this one fails.
            shutil.rmtree(place / "state/lists", ignore_errors=True)
            path.write_text(text, encoding="utf-8")
