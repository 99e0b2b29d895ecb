"""Phoronix Test Suite's composite.xml (pts-core/definitions/result-file.xsd): every run's RawString by system."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from kduel.core.errors import InputError
from kduel.core.experiment import Better
from kduel.store.imported.support.foreign import ForeignFormat, ForeignRow, location_text, read_bounded
from kduel.store.imported.values_csv import NUMBER

SIDES: dict[str, Better] = {"HIB": "higher", "LIB": "lower"}
"""The schema's Proportion: higher is better, lower is better."""
DEEPEST = 50


class Phoronix(ForeignFormat):
    name = "phoronix"
    summary = "Phoronix Test Suite composite.xml, its systems being the contenders"
    names_contenders = True
    holds = ("<PhoronixTestSuite",)

    def rows(self, path: Path, contender: str | None, skipped: list[str]) -> Iterator[ForeignRow]:
        root = read_xml(path)
        names = rename_system(path, root, contender)
        # A test that reports several figures has one description, and a scale for each.
        scales: dict[tuple[str, str], set[str]] = {}
        for result in root.findall("Result"):
            key = child_text(result, "Identifier"), child_text(result, "Description")
            scales.setdefault(key, set()).add(child_text(result, "Scale"))
        for index, result in enumerate(root.findall("Result"), 1):
            benchmark = child_text(result, "Identifier").rpartition("/")[2] or child_text(result, "Title")
            metric = child_text(result, "Description") or child_text(result, "Scale")
            if len(scales[child_text(result, "Identifier"), child_text(result, "Description")]) > 1:
                metric = f"{child_text(result, 'Description')} {child_text(result, 'Scale')}".strip()
            place = f"result {index} ({benchmark[:60]}, {metric[:60]})"
            if not benchmark or not metric:
                # Whether it passed, or what it printed.
                skipped.append(f"{path.name}: {place} has no description and no scale, so it is no number.")
                continue
            if child_text(result, "DisplayFormat") not in ("", "BAR_GRAPH"):
                skipped.append(
                    f"{path.name}: {place} is a {child_text(result, 'DisplayFormat')}, not one number a run."
                )
                continue
            better = SIDES.get(child_text(result, "Proportion"), "none")
            for entry in result.findall("Data/Entry"):
                arm = child_text(entry, "Identifier")
                raw = child_text(entry, "RawString") or child_text(entry, "Value")
                if not raw:
                    skipped.append(f"{path.name}: {place} has no value for {arm[:80]}.")
                    continue
                values = raw.split(":")
                if odd := [value for value in values if not NUMBER.fullmatch(value.strip())]:
                    skipped.append(f"{path.name}: {place}: {arm[:80]} has the value {odd[0][:60]!r}, not a number.")
                    continue
                for trial, value in enumerate(values, 1):
                    yield ForeignRow(
                        names.get(arm, arm), trial, benchmark, metric, child_text(result, "Scale"), better,
                        float(value), place,
                    )  # fmt: skip

    def order(self, path: Path, contender: str | None) -> Sequence[str]:
        return [*systems_of(read_xml(path))] if contender is None else ()

    def environments(self, path: Path, contender: str | None) -> dict[str, dict[str, Any]]:
        root = read_xml(path)
        names = rename_system(path, root, contender)
        return {
            names.get(name, name): {
                "hardware": parse_table(child_text(system, "Hardware")),
                "software": parse_table(child_text(system, "Software")),
            }
            for system in root.findall("System")
            if (name := child_text(system, "Identifier"))
        }


def systems_of(root: Element) -> dict[str, None]:
    return dict.fromkeys(child_text(entry, "Identifier") for entry in root.findall("Result/Data/Entry"))


def rename_system(path: Path, root: Element, contender: str | None) -> dict[str, str]:
    """The user's name for the file's system. Raises InputError where it holds several and one name was given."""
    systems = systems_of(root)
    if contender is None:
        return {}
    if len(systems) > 1:
        raise InputError(
            f"{path.name} holds {len(systems)} systems ({', '.join(systems)[:200]}), so it cannot be {contender!r} alone",
            "Give it without a name: its systems become the contenders.",
        )
    return dict.fromkeys(systems, contender)


def child_text(element: Element, name: str) -> str:
    return (element.findtext(name) or "").strip()


def parse_table(words: str) -> dict[str, str]:
    """`Processor: A @ 3GHz (4 Cores), Memory: 8GB` as a table."""
    parts = re.split(r",\s+(?=[A-Z][\w /-]*: )", words)
    return {key.strip(): value.strip() for key, _, value in (part.partition(": ") for part in parts) if value}


def read_xml(path: Path) -> Element:
    """The document, parsed without any document type, so that entities cannot multiply. Raises InputError naming the
    line where it has one, is damaged, in an unknown encoding, or nests absurdly."""
    data = read_bounded(path)
    if not data.strip():
        raise InputError(f"{path.name} is empty", "Give the composite.xml of a saved result.")
    builder = TreeBuilder()
    # What its declaration says is not so where UTF-16 was converted.
    parser = expat.ParserCreate("utf-8" if re.match(rb"<\?xml[^>]*utf-16", data, re.IGNORECASE) else None)
    depth = 0

    def refuse(*_: object) -> None:
        raise InputError(
            f"{location_text(path, parser.CurrentLineNumber)} declares a document type, which results do not need",
            "Nothing of it was read: it could multiply without end. Remove the DOCTYPE if you trust the file.",
        )

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise InputError(f"{location_text(path, parser.CurrentLineNumber)} nests too deep", "Export it again.")
        builder.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise InputError(
            f"{location_text(path, error.lineno)}: {error}", "It is damaged or cut off; export it again."
        ) from error
    except (ValueError, LookupError) as error:
        # An encoding in the declaration that expat leaves to Python, and Python does not have for it.
        raise InputError(f"{location_text(path, 1)}: {error}", "Save the file in the encoding UTF-8.") from error
    root: Element = builder.close()
    if root.tag != "PhoronixTestSuite":
        raise InputError(
            f"{path.name} is a {root.tag[:60]} document", "Give a composite.xml of the Phoronix Test Suite."
        )
    return root


PLUGIN = Phoronix()
