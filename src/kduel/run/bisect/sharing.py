"""Search for the commit that made an operation share a cache line: the search by exact counts, of the lines that two CPUs share."""

from kduel.explain.sharing.compare import SharedBy, SharingExplanation, compare_kernels
from kduel.run.bisect.exact import CommitCounter, CountedCommit, ExactSearch
from kduel.run.exact.measure import exact_machine
from kduel.run.exact.sharing import name_lines, region_number, sharing_study
from kduel.run.prepare import Ready
from kduel.study.load import Study

METRICS = {"lines": "median", "lines-mean": "mean"}


class SharedLineCounter(CommitCounter):
    unit = "lines"

    def study(self, spec: str) -> Study:
        return sharing_study([spec, spec], self.benchmark)

    def count_kernel(self, ready: Ready, commit: str) -> CountedCommit:
        """The value; the names come from the cache when they are asked for. Raises NotMeasuredError."""
        return CountedCommit(value=float(getattr(self.name_lines(ready, commit), METRICS[self.metric])), ready=ready)

    def name_lines(self, ready: Ready, commit: str) -> SharedBy:
        """The lines of a commit's kernel, counted and named. Raises NotMeasuredError."""
        arm = ready.arms[0]
        script = ready.setup.script(arm.contender, range(1))
        found = name_lines(exact_machine(ready), arm, script, region_number(ready, 0), cache=self.cache)
        found.contender = commit[:12]
        return found

    def explain_difference(self, result: ExactSearch) -> SharingExplanation | None:
        """The lines before and with the commit that was found; None where several were, or its parent was not counted."""
        ends = [step.commit for step in result.path if step.commit in result.found.commits]
        since = [step.since for step in result.path if step.commit in ends]
        if len(result.found.commits) != 1 or len(ends) != 1 or since[0] not in self.counted:
            return None
        both = [self.name_lines(self.counted[commit].ready, commit) for commit in (since[0], ends[0])]
        qemu = exact_machine(self.counted[ends[0]].ready).facts["qemu"].split()[0]
        return compare_kernels(self.benchmark, both, qemu)
