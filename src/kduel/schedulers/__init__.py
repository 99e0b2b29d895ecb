"""Schedulers as contenders: sched_ext schedulers, policies, knobs. Known before the boot, checked around each step.

check_at_once(contender, cache_root)               InputError for what no kernel can have, and a scheduler that is not here
validate(contender, kernel, steps, cpus=2)         InputError for what this kernel cannot have
make_setup(contender, contenders, cache=cache)     shell for the guest script, files and programs for the guest
SchedulerSetup.check(trial)                        None, or why the trial is void
"""

from kduel.schedulers.check import sysctls_seen
from kduel.schedulers.policy import Policy, parse_policy
from kduel.schedulers.snippets import SchedulerSetup, make_setup
from kduel.schedulers.validate import check_at_once, validate

__all__ = ["Policy", "SchedulerSetup", "check_at_once", "make_setup", "parse_policy", "sysctls_seen", "validate"]
