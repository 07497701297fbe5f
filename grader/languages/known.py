"""The languages that an assignment may allow, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.languages.at_run_time.language import WAYS, AtRunTime
from grader.languages.cuda.language import Cuda
from grader.languages.inline.language import Inline
from grader.languages.jobs import BuildError
from grader.languages.triton.kernels import folder
from grader.languages.triton.language import Triton
from grader.languages.triton.source import translated
from grader.problems.problem import KernelProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from grader.devices.device import Device
    from grader.languages.cache import Cache
    from grader.languages.cuda.toolchain import Toolchain
    from grader.languages.language import Language
    from grader.problems.problem import Problem
    from grader.sandbox.sandbox import Limits, Sandbox

_TRANSLATIONS: Mapping[str, Callable[[KernelProblem], KernelProblem]] = {
    "cuda": lambda problem: problem,
    "triton": translated,
    "load_inline": translated,
    **dict.fromkeys(WAYS, translated),
}
"""A kernel problem as each language answers it."""

_NEEDED: Mapping[str, Callable[[], object]] = {"triton": folder}
"""What finds that without which nothing can be built, where every installation need not have it."""


def languages(
    names: Iterable[str],
    toolchain: Toolchain,
    sandbox: Sandbox,
    limits: Limits,
    cache: Cache,
    devices: Sequence[Device],
    *,
    all_configs: bool = False,
) -> tuple[Language, ...]:
    """The languages of these names, in their order.

    Args:
        names: that an assignment allows.
        toolchain: the compilers of this machine.
        sandbox: what confines compiling.
        limits: what compiling one file may use.
        cache: where builds are kept.
        devices: all that judge, first the one that decides.
        all_configs: whether autotuning runs every configuration on the simulator.
    """
    names = tuple(names)
    of_python = sandbox, limits, cache, devices, all_configs
    architecture = devices[0].architecture
    by_name: Mapping[str, Language] = {
        "cuda": Cuda(toolchain, sandbox, limits, cache, architecture),
        "triton": Triton(*of_python, taken=names),
        "load_inline": Inline(*of_python, toolchain=toolchain, architecture=architecture, taken=names),
        **{
            name: AtRunTime(
                *of_python, toolchain=toolchain, architecture=architecture, taken=names, name=name
            )
            for name in WAYS
        },
    }
    return tuple(by_name[name] for name in names)


def lacking(name: str) -> str:
    """A text about what this machine lacks to build in the language of that name; "" if it lacks nothing."""
    try:
        _NEEDED.get(name, lambda: None)()
    except BuildError as error:
        return str(error)
    return ""


def files(problem: Problem, names: Iterable[str]) -> tuple[str, ...]:
    """Every file of a submission that ``problem`` may be graded from, in languages of these names."""
    if not isinstance(problem, KernelProblem):
        return problem.files
    return tuple(_TRANSLATIONS[name](problem).file for name in names)
