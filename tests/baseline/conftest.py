"""Programs around one of the baseline's sources, built for the simulator, and programs of its operations."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import grader
from grader.judge.timing.program import step
from grader.languages.cuda.toolchain import find
from grader.problems.operations import temporaries
from grader.simulator.driver import RUNTIME
from grader.simulator.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from grader.problems.operations import Operation

    Memory = dict[str, NDArray[Any]]
    Ran = Callable[[Sequence[tuple[Sequence[Operation], Memory]]], list[Memory]]

FOLDER = Path(grader.__file__).parent / "baseline"


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], str]:
    """The path of a program, from a source's name and a text that includes it as SOURCE."""

    def built(source: str, text: str) -> str:
        target = tmp_path_factory.mktemp("baseline") / "program"
        target.with_suffix(".cu").write_text(text.replace("SOURCE", f'"{FOLDER / source}"'))
        options = ["-cudart", "shared", "--no-compress", "-gencode", "arch=compute_80,code=compute_80"]
        subprocess.run(["nvcc", *options, "-o", target, target.with_suffix(".cu")], check=True)
        return str(target)

    return built


@pytest.fixture(scope="session")
def on_the_sim(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Runs programs of operations with the real kernels; the arrays of each come back as it left them."""
    if not RUNTIME.is_file():
        pytest.skip("the simulator is not built")
    return _runs(
        tmp_path_factory.mktemp("kernels"),
        lambda command: simulate(command, json_path=None, leak_check=False),
    )


@pytest.fixture(scope="session")
def on_the_gpu(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The same on a GPU."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(find().runtime)}
    return _runs(
        tmp_path_factory.mktemp("kernels"),
        lambda command: subprocess.run(command, check=False, env=environment).returncode,
    )


def _runs(folder: Path, run: Callable[[list[str]], int]) -> Ran:
    options = ["--shared", "-Xcompiler", "-fPIC", "-cudart", "shared", "--no-compress"]
    options += ["-gencode", "arch=compute_80,code=compute_80"]
    libraries = [folder / f"{name}.so" for name in ("generic", "typed")]
    for library in libraries:
        source = FOLDER / library.with_suffix(".cu").name
        subprocess.run(["nvcc", *options, "-o", library, source], check=True)

    def ran(programs: Sequence[tuple[Sequence[Operation], Memory]]) -> list[Memory]:
        asked, before = [], {}
        for index, (program, memory) in enumerate(programs):
            extra = {
                name: np.full(size, 0xFF, np.uint8) for name, size in temporaries(program, memory).items()
            }
            arrays = {name: np.ascontiguousarray(array).reshape(-1) for name, array in memory.items()} | extra
            before |= {f"{index} {name}": array.view(np.uint8) for name, array in arrays.items()}
            numbers = {name: number for number, name in enumerate(arrays)}
            steps = [step(operation, numbers) for operation in program]
            asked.append((list(arrays), [vars(one) for one in steps]))
        (folder / "programs.json").write_text(json.dumps(asked))
        np.savez(folder / "arrays.npz", **before)
        script = str(Path(__file__).with_name("run_programs.py"))
        files = [str(folder / name) for name in ("programs.json", "arrays.npz", "results.npz")]
        command = [sys.executable, script, ":".join(map(str, libraries)), *files]
        assert run(command) == 0
        after = np.load(folder / "results.npz")
        return [
            {
                name: after[f"{index} {name}"].view(array.dtype).reshape(array.shape)
                for name, array in memory.items()
            }
            for index, (_, memory) in enumerate(programs)
        ]

    return ran
