"""Tests that need a GPU are skipped, visibly, where none works."""

from __future__ import annotations

import pytest

from grader.build.toolchain import find
from grader.devices import gpu


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marked = [item for item in items if "gpu" in item.keywords]
    found = gpu.probe(find().runtime) if marked else None
    if found is not None and not found.usable:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=f"no GPU works here: {found.reason}"))
