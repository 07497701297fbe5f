from __future__ import annotations

import pytest

from grader.sandbox.bubblewrap import BubblewrapSandbox
from grader.sandbox.process import ProcessSandbox


@pytest.fixture(scope="session")
def bubblewrap() -> BubblewrapSandbox:
    sandbox = BubblewrapSandbox()
    probe = sandbox.probe()
    if not probe.usable:
        pytest.skip(f"bubblewrap does not work here: {probe.remedy}")
    return sandbox


@pytest.fixture(params=["process", "bubblewrap"])
def sandbox(request: pytest.FixtureRequest) -> ProcessSandbox | BubblewrapSandbox:
    if request.param == "process":
        return ProcessSandbox()
    return request.getfixturevalue("bubblewrap")
