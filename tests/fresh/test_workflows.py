"""The wheel serves every version of Python, and workflows build it and try the fresh machines."""

from __future__ import annotations

import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WHEELS, FRESH = (
    yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text())
    for name in ("wheels", "fresh")
)


def test_the_wheel_names_no_version_of_python_and_is_shown_by_that_name() -> None:
    assert PROJECT["tool"]["scikit-build"]["wheel"]["py-api"] == "py3"
    for page in ("README.md", "docs/install.md"):
        assert "-py3-none-manylinux_2_28_x86_64.whl" in (ROOT / page).read_text()


def test_it_is_tried_with_the_oldest_and_the_newest_python_that_is_promised() -> None:
    assert PROJECT["project"]["requires-python"] == ">=3.11,<3.15"
    chosen = PROJECT["tool"]["cibuildwheel"]["build"].split()
    assert chosen == ["cp311-manylinux_*", "cp314-manylinux_*"]


def test_both_kinds_of_processor_have_a_runner_and_the_build_is_pinned() -> None:
    job = WHEELS["jobs"]["wheel"]
    assert job["strategy"]["matrix"]["runner"] == ["ubuntu-24.04", "ubuntu-24.04-arm"]
    install, build = next(step["run"] for step in job["steps"] if "run" in step).splitlines()
    assert "cibuildwheel==" in install
    assert build == "python -m cibuildwheel --output-dir wheelhouse"


def test_the_fresh_machines_are_tried_by_root_with_the_python_that_has_nox() -> None:
    ran = [step["run"] for step in FRESH["jobs"]["fresh"]["steps"] if "run" in step]
    assert ran[-1] == 'sudo env "PATH=$PATH" python -m nox -s fresh'
    assert "debootstrap" in ran[0]
