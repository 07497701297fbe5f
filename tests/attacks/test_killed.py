"""A grader that is killed leaves nothing once the next one has started; nox -s killed does it more often."""

from __future__ import annotations

import pytest
from attacks.attempt import sandboxes
from attacks.killed import Field


@pytest.mark.long
@pytest.mark.parametrize("name", ["docker", "bubblewrap"])
def test_nothing_is_left_of_a_killed_grader(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    with sandboxes() as found:
        if name not in found:
            pytest.skip(f"{name} does not work here")
        folder = tmp_path_factory.mktemp(name)
        folder.chmod(0o755)
        field = Field(folder, name)
        field.measure()
        assert field.kill_one(0.5, compiling=True) == ()
        assert field.kill_one(0.8, compiling=False) == ()
