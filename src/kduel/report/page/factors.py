"""The page's part for factors: a section for each metric, its plots by number, and the table of its cells."""

from markupsafe import Markup
from msgspec import Struct

from kduel.core.results import Results
from kduel.report.content.factors import FactorGroup, MatrixRow, effect_matrix, factor_groups
from kduel.report.plots import effects as plots
from kduel.report.plots.factors import interaction, scaling


class FactorPart(Struct, kw_only=True):
    """One metric: a plot for each factor that the first one's effect may depend on."""

    group: FactorGroup
    plots: list[tuple[str, int]]
    """The other factor, and the plot's number in `pictures`."""
    matrix: list[MatrixRow]


class FactorsPart(Struct, kw_only=True):
    groups: list[FactorPart]
    pictures: list[Markup]


def factors_part(results: Results) -> FactorsPart | None:
    """The section, or None for a study without factors."""
    found = FactorsPart(groups=[], pictures=[])
    for group in factor_groups(results):
        drawn = []
        for factor in dict.fromkeys(name for one in group.effects if one.kind == "simple" for name in one.at):
            drawn.append((factor, len(found.pictures)))
            found.pictures.append(plots.picture(interaction(group, factor, results.study.delta, plots.PAGE)))
        if not drawn and group.fits:
            drawn.append((group.fits[0].factor, len(found.pictures)))
            found.pictures.append(plots.picture(scaling(group.fits[0], group, plots.PAGE)))
        found.groups.append(FactorPart(group=group, plots=drawn, matrix=effect_matrix(group.effects)))
    return found if found.groups else None
