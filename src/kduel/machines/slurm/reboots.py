"""Setup that Slurm needs to reboot nodes into kernels, and what is missing of it. docs/fleets.md explains each."""

import re

from kduel.core.errors import HostError

DOCUMENTED = "docs/fleets.md lists the settings; contrib/slurm has an example."
DOWN_AFTER_PANIC = (
    "ReturnToService is {}: a node whose kernel panics or hangs stays DOWN until an administrator resumes it, and its "
    "trials wait. With 2 it returns by itself."
)

ENOUGH = 30
"""Seconds in which a helper chooses a kernel on a busy node, too."""
CHOICE_LOST = (
    "ExecTime in helpers.conf is {} s: on a node where the helper takes longer, Slurm gives the choice up and reboots into "
    "the default kernel. Set ExecTime=60."
)


def seconds(text: str) -> int | None:
    """Number of `60 sec`; None where there is no number."""
    found = re.match(r"\d+", text)
    return int(found[0]) if found else None


def check_settings(known: dict[str, str], boot_deadline: float) -> list[str]:
    """Notes on the cluster's settings. Raises HostError, with every setting that prevents reboots."""
    missing = []
    if "helpers" not in known.get("NodeFeaturesPlugins", ""):
        plugins = known.get("NodeFeaturesPlugins", "") or "(null)"
        missing.append(f"NodeFeaturesPlugins is {plugins}, and must have node_features/helpers")
    if (program := known.get("RebootProgram", "(null)")) in ("", "(null)"):
        missing.append(f"RebootProgram is {program or '(null)'}: Slurm cannot reboot a node")
    resume = seconds(known.get("ResumeTimeout", ""))
    if resume is not None and resume < boot_deadline:
        missing.append(
            f"ResumeTimeout is {resume} s, and boot_deadline {boot_deadline:g} s: Slurm sets a node DOWN that boots longer"
        )
    if missing:
        listed = "\n".join(f"  {line}" for line in missing)
        raise HostError(f"this Slurm does not reboot nodes as a study of their kernels needs:\n{listed}", DOCUMENTED)
    notes = []
    boot = seconds(known.get("BootTime", ""))
    if resume is not None and boot is not None and boot > resume:
        notes.append(
            f"BootTime in helpers.conf is {boot} s, more than ResumeTimeout ({resume} s): Slurm expects boots that it does "
            "not wait for"
        )
    helper = seconds(known.get("ExecTime", ""))
    if helper is not None and helper < ENOUGH:
        notes.append(CHOICE_LOST.format(helper))
    if (returns := known.get("ReturnToService", "2")) != "2":
        notes.append(DOWN_AFTER_PANIC.format(returns))
    return notes
