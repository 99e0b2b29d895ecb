"""Provenance: kernels, machine, and time, and the parts of a merged run, in lines that every format shows."""

from collections.abc import Mapping
from typing import Any

from kduel.core.results import ContenderResult, PartResult, Results, first_date, stated_date
from kduel.core.text import list_few, plural, visible
from kduel.report.content.evidence import evidence

NAMED = 4
"""How many contenders a line names before it says how many more there are."""


def provenance(results: Results) -> list[str]:
    """Three lines, and one for each part of a merged run."""
    return [
        f"Kernels: {kernels(results)}.",
        f"Machine: {machine(results)}.",
        f"{when(results)}.",
        *(f"Merged from {part(one)}." for one in results.study.parts),
    ]


def kernels(results: Results) -> str:
    """Each kernel with its package or image, and the contenders that ran it."""
    arms: dict[str, list[str]] = {}
    for contender in results.contenders:
        name = visible(contender.name, 200)
        arms.setdefault(kernel(contender), []).append(f"({name})" if ", " in name else name)
    if set(arms) <= {""}:
        return evidence(results).unstated
    found = [f"{list_few(names, NAMED)}: {what or 'not known'}" for what, names in arms.items()]
    return "; ".join([*found[:NAMED], *([f"and {len(found) - NAMED} more"] if len(found) > NAMED else [])])


def kernel(contender: ContenderResult) -> str:
    """`6.1.0-56-amd64 (linux-image-6.1.0-56-amd64 6.1.192-2)`, or with the beginning of the image's SHA-256."""
    source = table(contender.facts, "provenance")
    packages = source.get("packages")
    named = [one for one in packages if isinstance(one, dict)] if isinstance(packages, list) else []
    origin = next((f"{one.get('name', '')} {one.get('version', '')}".strip() for one in named), "")
    if not origin and source.get("commit"):
        origin = f"commit {str(source['commit'])[:12]}{', with changes' * bool(source.get('modified'))}"
    origin = (
        origin or str(source.get("exact") or "") or (f"sha256 {contender.sha256[:12]}" if contender.sha256 else "")
    )
    release = visible(contender.release or "", 100)
    return f"{release} ({visible(origin, 200)})".strip() if origin else release


def machine(results: Results) -> str:
    """Machine that the trials ran on, and its host."""
    facts = results.machine.facts
    words = [results.machine.kind] if results.machine.kind else []
    if board := table(facts, "board").get("name"):
        words.append(str(board))
    if qemu := facts.get("qemu"):
        words.append(f"QEMU {qemu}")
    # An emulated CPU is a model with a list of features.
    words += [
        str(facts[key]).partition(",")[0] for key in ("accelerator", "place", "product", "cpu") if facts.get(key)
    ]
    if number(facts.get("cpus")):
        words.append(plural(facts["cpus"], "CPU"))
    if number(facts.get("memory_mib")):
        words.append(f"{facts['memory_mib']} MiB")
    host = table(facts, "host")
    named = [f"{word}{host[key]}" for key, word in (("cpu", ""), ("kernel", "Linux ")) if host.get(key)]
    names = {trial.machine for trial in results.trials if trial.machine}
    said = [visible(", ".join(words), 400)] if words else []
    said += [f"host {visible(', '.join(named), 200)}"] if named else []
    said += [f"{len(names)} machines, this is the first"] if len(names) > 1 else []
    return "; ".join(said) or evidence(results).unstated


def when(results: Results) -> str:
    """The days of the trials, the version that measured them, and the run's checksum."""
    study = results.study
    days = sorted(first_date([trial.started])[:10] for trial in results.trials if trial.started)
    if study.imported and not days:
        days = sorted(visible(date[:10]) for date in map(stated_date, results.environment.values()) if date)
    version = f"KDuel {visible(study.kduel, 60)}" if study.kduel else "KDuel, version not known"
    if study.imported:
        sources = ", ".join(visible(one.name, 100) for one in study.source[:NAMED])
        said = f"Imported {visible((study.imported_at or '')[:10])} by {version}".replace("  ", " ")
        said += f", from {sources}" if sources else ""
        said += f"; measured {' to '.join(dict.fromkeys((days[0], days[-1])))}" if days else "; date not stated"
    elif days:
        said = f"Measured {visible(' to '.join(dict.fromkeys((days[0], days[-1]))))} by {version}"
    elif results.trials:
        said = f"Date of measurement not known; {version}"
    else:
        said = f"Not measured yet, by {version}"
    return f"{said}; checksum {visible(study.checksum[:12])}" if study.checksum else said


def part(one: PartResult) -> str:
    """Origin of a part's trials."""
    began = f", from {visible(one.started[:16].replace('T', ' '), 20)} UTC" if one.started else ""
    return f"{visible(one.name, 80)} on {visible(one.machine, 80)}: {plural(one.blocks, 'block')}, seed {one.seed}{began}"


def table(facts: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The table of that key; empty where there is none."""
    found = facts.get(key)
    return found if isinstance(found, dict) else {}


def number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
