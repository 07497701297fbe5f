from __future__ import annotations

from typing import TYPE_CHECKING

import engine
import pytest

from grader.sandbox.bubblewrap import BubblewrapSandbox
from grader.sandbox.docker import IMAGE_VARIABLE, DockerSandbox
from grader.sandbox.process import ProcessSandbox

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grader.sandbox.sandbox import Sandbox


@pytest.fixture(scope="session")
def bubblewrap() -> BubblewrapSandbox:
    sandbox = BubblewrapSandbox()
    probe = sandbox.probe()
    if not probe.usable:
        pytest.skip(f"bubblewrap does not work here: {probe.remedy}")
    return sandbox


@pytest.fixture(scope="module")  # no longer: other tests must not find the engine in their environment
def docker() -> Iterator[DockerSandbox]:
    with pytest.MonkeyPatch.context() as patch:
        try:
            with engine.engine() as address:
                patch.setenv("DOCKER_HOST", address)
                patch.setenv(IMAGE_VARIABLE, engine.SANDBOX_IMAGE)
                yield DockerSandbox()
        except engine.NoEngineError as error:
            pytest.skip(f"no Docker engine: {error}")


@pytest.fixture(params=["process", "bubblewrap", "docker"])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    if request.param == "process":
        return ProcessSandbox()
    return request.getfixturevalue(request.param)
