"""Verdicts as JUnit XML, which continuous integration systems read: a test case for each gating metric."""

from collections.abc import Iterator
from typing import ClassVar
from xml.etree import ElementTree

from msgspec import structs

from kduel.core.format import effect_with_interval
from kduel.core.metric_results import SET_BY_HARNESS, MetricResult
from kduel.core.results import Results
from kduel.core.text import visible
from kduel.judge.verdict.headline import compared_pairs, headline_of, matters, side
from kduel.report import DEFAULTS, Format, ReportOptions
from kduel.report.content.factors import factor_groups
from kduel.report.content.provenance import kernels, machine, when


class JunitFormat(Format):
    """A suite for each contender; a metric that is worse by what matters fails; without a verdict it is skipped."""

    name: ClassVar[str] = "junit"
    summary: ClassVar[str] = "JUnit XML for continuous integration: a test case for each gating metric"
    suffix: ClassVar[str] = ".xml"

    def render(self, results: Results, options: ReportOptions = DEFAULTS) -> str:
        root = ElementTree.Element("testsuites", name=visible(results.study.name or "kduel", 200))
        facts = {"kernels": kernels(results), "machine": machine(results), "measured": when(results)}
        for name, headline, gating in suites(results):
            cases = [test_case(metric) for metric in gating]
            suite = ElementTree.SubElement(
                root,
                "testsuite",
                name=visible(name, 400),
                tests=str(len(cases)),
                failures=str(sum(case.find("failure") is not None for case in cases)),
                skipped=str(sum(case.find("skipped") is not None for case in cases)),
                errors="0",
            )
            properties = ElementTree.SubElement(suite, "properties")
            for name, value in facts.items():
                ElementTree.SubElement(properties, "property", name=name, value=value)
            suite.extend(cases)
            ElementTree.SubElement(suite, "system-out").text = headline
        ElementTree.indent(root)
        return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


PLUGIN = JunitFormat()


def suites(results: Results) -> Iterator[tuple[str, str, list[MetricResult]]]:
    """Name, headline and cases: of each comparison, or of each metric of a study with factors."""
    if groups := factor_groups(results):
        for group in groups:
            name = "/".join(group.group)
            rows = [structs.replace(row, benchmark=name, metric=row.benchmark) for row in group.rows]
            yield name, group.headline, rows
        return
    for baseline, contender in compared_pairs(results):
        mine = [m for m in results.metrics if (m.baseline, m.contender) == (baseline, contender)]
        gating = [m for m in mine if m.role == "primary"] or mine
        yield f"{contender} against {baseline}", headline_of(results, baseline, contender), gating


def test_case(metric: MetricResult) -> ElementTree.Element:
    """A metric as `testcase`, with `failure` or `skipped` inside."""
    case = ElementTree.Element("testcase", classname=visible(metric.benchmark, 200), name=visible(metric.metric, 200))
    message = visible(f"{metric.label}: {effect_with_interval(metric)}", 1000)
    if metric.by_harness:
        message = SET_BY_HARNESS
    elif metric.withheld:
        message = visible(f"{metric.withheld}: {message}", 1000)
    elif metric.hint:
        message = visible(f"{metric.role}: {message}", 1000)
    if not metric.claimed or metric.hint:
        ElementTree.SubElement(case, "skipped", message=message)
    elif matters(metric) and side(metric) == "worse":
        ElementTree.SubElement(case, "failure", message=message, type=metric.word)
    else:
        ElementTree.SubElement(case, "system-out").text = message
    return case
