"""Tests that need a GPU are skipped, visibly, where none works; all can be interrupted."""

from __future__ import annotations

import signal

import pytest

from grader.devices import gpu
from grader.devices.sim import Sim
from grader.languages.cuda.toolchain import find

# Jobs that a shell runs in the background ignore Ctrl-C, and so would all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marked = [item for item in items if "gpu" in item.keywords]
    found = gpu.probe(find().runtime) if marked else None
    if found is not None and not found.usable:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=f"no GPU works here: {found.reason}"))


@pytest.fixture
def ptx_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds for the sim without machine code, which nobody runs: ptxas takes half of a build."""
    monkeypatch.setattr(Sim, "architecture", "compute_80")
