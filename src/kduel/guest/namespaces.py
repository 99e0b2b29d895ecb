"""Checks whether this user can make a Debian root: mmdebstrap needs root, or a user namespace with a range of IDs."""

import os
import pwd
import shutil
import subprocess
from pathlib import Path

from kduel.core.errors import HostError
from kduel.core.host_packages import install_command

RANGES = (Path("/etc/subuid"), Path("/etc/subgid"))


def explain_refusal() -> HostError | None:
    """Reason why this user cannot make a guest's root; None where it can."""
    user = os.geteuid()
    if user == 0:
        return None
    try:
        name = pwd.getpwuid(user).pw_name
    except KeyError:
        name = str(user)
    if shutil.which("newuidmap") is None:
        return HostError("newuidmap is missing", install_command("newuidmap"))
    for path in RANGES:
        if not has_range(path, {name, str(user)}):
            return HostError(
                f"{path} has no range of IDs for the user {name}, which making a guest's root takes",
                f"As root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {name}. Or start KDuel as root.",
            )
    if subprocess.run(["unshare", "--user", "true"], capture_output=True, check=False).returncode:
        return HostError(
            "this user may make no user namespace, which making a guest's root takes",
            "As root: sysctl kernel.unprivileged_userns_clone=1 (Debian), or "
            "kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu). Or start KDuel as root.",
        )
    return None


def has_range(path: Path, users: set[str]) -> bool:
    """True if /etc/subuid or /etc/subgid gives a range to one of these names."""
    try:
        lines = path.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return False
    return any(line.split(":", 1)[0] in users for line in lines)
