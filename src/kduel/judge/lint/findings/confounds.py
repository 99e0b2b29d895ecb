"""Differences between the contenders that the study does not declare."""

from collections import Counter
from collections.abc import Iterator

from kduel.core.results import Results
from kduel.core.samples import Samples
from kduel.core.text import list_few, plural
from kduel.judge.lint.finding import Finding


def undeclared_differences(results: Results, _samples: list[Samples]) -> Iterator[str]:
    found = [difference for difference in results.differences if not difference.declared]
    if found:
        groups = Counter(difference.group for difference in found)
        listed = "; ".join(f"{group}: {list_few([d.key for d in found if d.group == group], 4)}" for group in groups)
        yield (
            f"The contenders differ in {plural(len(found), 'property', 'properties')} that the study does not declare "
            f"({listed}). A difference between them may come from any of these: make them equal, or declare them as what is "
            "compared."
        )


PLUGIN = Finding(
    name="confounds", cause="The contenders differ in more than the study declares", weight=100,
    meaning="The captured environments of the contenders differ in something that the study does not declare. A "
    "measured difference may come from it.",
    remedy="Make it equal, or declare it as what is compared.",
    check_run=undeclared_differences,
)  # fmt: skip
