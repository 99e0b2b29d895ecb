"""Kernels that are configured differently."""

from collections import Counter
from collections.abc import Iterator

from kduel.core.results import Results
from kduel.core.samples import Samples
from kduel.core.text import plural
from kduel.judge.lint.confounds import TOPIC_NAMES, topic
from kduel.judge.lint.finding import Finding


def config_differs(results: Results, _samples: list[Samples]) -> Iterator[str]:
    options = [one.key for one in results.differences if one.group == "config" and one.declared]
    if options:
        topics = Counter(map(topic, options))
        counted = ", ".join(f"{topics[name]} {name}" for name in TOPIC_NAMES if topics[name])
        yield (
            f"The kernels' configurations differ in {plural(len(options), 'option')} ({counted}). The verdicts compare "
            "these builds, not the versions alone."
        )


PLUGIN = Finding(
    name="config-differs", cause="The kernels are configured differently", weight=20,
    meaning="The kernels' configurations differ; the message counts the options by topic. The verdicts compare these builds.",
    remedy="Build both kernels with one configuration if the versions alone are to be compared.",
    check_run=config_differs,
)  # fmt: skip
