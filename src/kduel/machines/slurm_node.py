"""The machine `slurm-node`: a node of a Slurm cluster, which Slurm itself reboots into the kernel of each trial."""

import re
from collections.abc import Sequence
from typing import Any, ClassVar, Unpack

from kduel.core.errors import HostError, InputError, unknown_name
from kduel.core.experiment import Contender
from kduel.machines import Arm, Machine, Means, Needs
from kduel.machines.remote.connection import ConnectionLost, TrialRefused
from kduel.machines.remote.provision import Loan
from kduel.machines.remote.real import RealKind, RealMachine, read_programs, survey
from kduel.machines.remote.ssh_trial import Observation, look
from kduel.machines.slurm.cluster import need_programs, nodes, slurm
from kduel.machines.slurm.trial import (
    NodeConnection,
    NodeJourney,
    NodeSettings,
    await_job,
    await_service,
    cancel,
    submit,
)

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


class NodeMachine(RealMachine):
    """Made by `SlurmNode.prepare`."""

    way = NodeJourney


class SlurmNode(RealKind[NodeSettings]):
    """Prepared by asking Slurm, and by a job on the node that looks around."""

    name: ClassVar[str] = "slurm-node"
    summary: ClassVar[str] = (
        "a node of a Slurm cluster, rebooted by Slurm into the kernel that a node feature stands for"
    )
    timed_on_host: ClassVar[bool] = False

    def check_host(self, settings: NodeSettings) -> None:
        """The name of the node: a fleet gives its own."""
        if not settings.node:
            raise InputError(
                "the machine slurm-node needs the name of a node",
                'Give [machine] node = "NAME", or several nodes with --fleet slurm:nodelist=NAMES.',
            )

    def read_all_settings(self, table: dict[str, Any], contenders: Sequence[Contender]) -> list[NodeSettings]:
        """The settings as for all machines; features are those of contenders."""
        found, names = super().read_all_settings(table, contenders), [contender.name for contender in contenders]
        for name in self.read_settings(table).features:
            if name not in names:
                raise InputError(
                    f"[machine.features] names {name!r}, and there is no such contender",
                    f"The contenders are: {', '.join(names)}.",
                )
        return found

    def check_contender(self, settings: NodeSettings, contender: Contender, spec: str) -> None:
        """It must be a kernel that is installed there, with a node feature."""
        if not spec.startswith("installed:"):
            raise InputError(
                f"{contender.name}: Slurm boots kernels that are installed on its nodes; {spec!r} is none",
                'Install it there, make it a node feature, and write kernel = "installed:RELEASE".',
            )
        if contender.cmdline and contender.name not in settings.features:
            raise InputError(
                f"{contender.name} has words on its command line, and KDuel writes no boot entry on a node of Slurm",
                f'Make a node feature for it, and write [machine.features] "{contender.name}" = "FEATURE".',
            )

    def prepare(self, settings: NodeSettings, arms: Sequence[Arm], needs: Needs, **means: Unpack[Means]) -> Machine:
        progress = means["progress"]
        self.check_host(settings)
        for arm in arms:
            self.check_contender(settings, arm.contender, arm.kernel.spec)
        need_programs()
        known = dict(re.findall(r"^(\w+)\s*= (.*?)\s*$", slurm("scontrol", "show", "config"), re.MULTILINE))
        for note in check_settings(known, settings.boot_deadline):
            progress.warn(note)
        check_node(settings, arms)
        with progress.task(f"waiting for {settings.node} to be in service"):
            check_reboot(settings, arms)
        connection = NodeConnection(settings.node)
        with progress.task(f"looking at {settings.node}"):
            now, facts = survey_node(settings, connection, arms, needs.commands)
        facts |= {"slurm": known.get("SLURM_VERSION", ""), "cluster": known.get("ClusterName", ""), "boot": "slurm"}
        facts["features"] = {arm.contender.name: feature_of(settings, arm) for arm in arms}
        programs = read_programs(needs, now.architecture, means["cache"])
        progress.info(f"{settings.node}: {facts['cpu'] or 'unknown CPU'}; Slurm will reboot it for every trial")
        return NodeMachine(settings, connection, {}, facts, programs, Loan(settings, connection, progress))


def feature_of(settings: NodeSettings, arm: Arm) -> str:
    return settings.feature(arm.contender.name, arm.kernel.release)


def check_node(settings: NodeSettings, arms: Sequence[Arm]) -> None:
    """Raises InputError and HostError where Slurm does not have the node with the contenders' features."""
    there = {node.name: node for node in nodes()}
    if settings.node not in there:
        raise unknown_name(f"Slurm has no node {settings.node!r}", settings.node, list(there)[:20])
    node = there[settings.node]
    for arm in arms:
        if (feature := feature_of(settings, arm)) not in node.features:
            listed = ", ".join(one for one in node.features if one and one != "(null)")
            raise InputError(
                f"{arm.contender.name}: the node {node.name} has no feature {feature}; it has: {listed or 'none'}",
                f"Add it in slurm.conf and helpers.conf, or name another one in [machine.features]. {DOCUMENTED}",
            )


def check_reboot(settings: NodeSettings, arms: Sequence[Arm]) -> None:
    """Raises HostError where Slurm does not boot the node into the contenders' features. A node that is on its way back is
    waited for: a controller that was killed in the middle of a boot leaves one, and Slurm refuses jobs for it."""
    try:
        await_service(settings)
    except TrialRefused as error:
        raise HostError(
            f"{error} after {settings.boot_deadline:g} s", "See `sinfo -R`; leave it out, or have it resumed."
        ) from error
    for arm in arms:
        feature = feature_of(settings, arm)
        try:
            slurm("sbatch", "--test-only", *settings.options(feature), stdin="#!/bin/sh\n")
        except HostError as error:
            raise HostError(
                f"Slurm refuses to reboot {settings.node} into {feature} for this user: {error.message}",
                "Rebooting needs an operator or administrator of Slurm (`sacctmgr show user`), root or SlurmUser. "
                "Try by hand: sbatch --test-only --reboot --constraint=FEATURE",
            ) from error


def survey_node(
    settings: NodeSettings, connection: NodeConnection, arms: Sequence[Arm], commands: Sequence[tuple[str, str, str]]
) -> tuple[Observation, dict[str, Any]]:
    """The node as it is now, without a reboot, and what is true of it for the whole run. Raises HostError."""
    job = submit(settings, f"kduel-look-{settings.node}", f"{settings.directory.rstrip('/')}/kduel-look", "never")
    try:
        await_job(job, settings)
        connection.attach(job)
        now = look(connection)
        connection.boots.add(now.boot_id)
        return now, survey(connection, settings, arms, boot="slurm", commands=commands)
    except (ConnectionLost, TrialRefused) as error:
        raise HostError(f"{settings.node} cannot be examined: {error}", "See `sinfo -R` and `squeue`.") from error
    finally:
        cancel(job)


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


PLUGIN = SlurmNode()
