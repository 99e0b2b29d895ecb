"""The container image, built and used by buildah without a daemon. With `./run-tests --all`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from container_base import Buildah

pytestmark = pytest.mark.network
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory, need: Callable[..., str]) -> Iterator[tuple[Buildah, str]]:
    """A container of the image."""
    need("buildah")
    need("mmdebstrap")
    place = tmp_path_factory.mktemp("images")
    buildah = Buildah(place)
    buildah.make_base("localhost/base")
    policy = ("--signature-policy", place / "policy.json")
    file = ("--file", ROOT / "contrib/Containerfile", "--tag", "localhost/kduel")
    buildah("bud", "--quiet", *policy, "--build-arg", "BASE=localhost/base", *file, ROOT)
    name = buildah("from", *policy, "localhost/kduel").stdout.strip()
    yield buildah, name
    buildah("rm", name, check=False)
    buildah("rmi", "--all", "--force", check=False)


def test_nothing_is_missing_in_it(container: tuple[Buildah, str], tmp_path: Path) -> None:
    buildah, name = container
    run = ("run", "--volume", f"{tmp_path}:/cache", name, "kduel")
    assert buildah(*run, "--version").stdout.startswith("kduel, version ")
    doctor = buildah(*run, "doctor", check=False).stdout
    assert "prevents" not in doctor and "is missing" not in doctor, doctor
