"""What the launchers of a right kernel come to call, as far as names tell."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from grader.soundness.kernels import RightKernel

if TYPE_CHECKING:
    from grader.problems.problem import KernelProblem

HELPERS = "// Nothing calls idle().\nvoid called() {}\nvoid idle() {}\n"
PLAIN = 'extern "C" void launch_a() { called(); }\n'
CONSTRUCTOR = 'struct Row {\n  Row() { called(); }\n};\nextern "C" void launch_a() { Row row; }\n'
METHOD = 'struct Row {\n  void walk() { called(); }\n};\nextern "C" void launch_a() { Row().walk(); }\n'
SHORT = '#define CALL called()\nextern "C" void launch_a() { CALL; }\n'
MACRO = '#define LAUNCHER(NAME) extern "C" void launch_##NAME() { called(); }\nLAUNCHER(a)\n'


@pytest.mark.parametrize(
    ("launcher", "idle"),
    [
        pytest.param(PLAIN, False, id="written"),
        pytest.param(CONSTRUCTOR, False, id="by a constructor"),
        pytest.param(METHOD, False, id="by a method"),
        pytest.param(SHORT, False, id="in a macro"),
        pytest.param(MACRO, True, id="by a macro"),
    ],
)
def test_what_a_launcher_calls_is_used_and_all_is_where_a_macro_writes_it(launcher: str, idle: bool) -> None:
    problem = cast("KernelProblem", SimpleNamespace(entry_points=("launch_a",)))
    used = RightKernel("reference", problem, {"a.cu": HELPERS + launcher}).used
    assert "called" in used
    assert ("idle" in used) is idle
