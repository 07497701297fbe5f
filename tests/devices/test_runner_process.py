"""The runner as the judge sees it: real processes, host memory, no device."""

from __future__ import annotations

import io
import subprocess
import time
import zipfile
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pytest
from host_libraries import compile_library

from grader.devices import calls
from grader.devices.device import (
    Answer,
    Argument,
    ArrayArgument,
    Call,
    LoadError,
    Memory,
    ScalarArgument,
    Status,
    StreamArgument,
)
from grader.devices.runner import Runner, RunnerError, Start, packed, python
from grader.records.findings import OVERRUN, Finding, facts
from grader.runner.protocol import Frame

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from grader.sandbox.process import ProcessSandbox

NAMES = (
    *("twice", "address", "nothing", "null", "beyond", "far_beyond", "leave", "leave_at_once", "abort_it"),
    *("fault", "hang", "fail", "chatter", "complain", "report", "forge", "babble", "copy_longs"),
    "scribble",
)


@pytest.fixture
def runner(sandbox: ProcessSandbox, student: Path, runtime: Path) -> Iterator[Runner]:
    with closing(Runner(sandbox, Start({student: NAMES}, runtime))) as runner:
        yield runner


def output(size: int = 4, dtype: str = "float32", name: str = "out") -> ArrayArgument:
    return ArrayArgument(name, dtype, (size,), None)


def ask(
    runner: Runner,
    entry_point: str,
    *arguments: Argument,
    seconds: float = 10,
    memory: Memory = Memory.HOST,
) -> Answer:
    return calls.run(runner, Call(entry_point, arguments or (output(),), seconds, memory))


@pytest.mark.parametrize(
    ("memory", "first", "second", "printed"),
    [
        (Memory.DEVICE, 0, 1, "streams 1 0\n"),
        (Memory.DEVICE, 0, 0, "streams 1 1\n"),
        (Memory.HOST, 0, 1, "streams 0 1\n"),  # the default stream, on which copies wait for kernels
    ],
)
def test_arguments_arrive_and_outputs_come_back(
    runner: Runner, memory: Memory, first: int, second: int, printed: str
) -> None:
    data = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)
    answer = ask(
        runner,
        "twice",
        ArrayArgument("out", "float32", (3, 4), None),
        ArrayArgument("in", "float32", (3, 4), data),
        ScalarArgument("n", "int", 12),
        ScalarArgument("negate", "bool", value=True),
        ScalarArgument("factor", "float", 0.1),
        StreamArgument("first", first),
        StreamArgument("second", second),
        memory=memory,
    )
    assert answer.status is Status.RETURNED, answer.message
    np.testing.assert_array_equal(answer.arrays["out"], -np.float32(0.1) * data)
    np.testing.assert_array_equal(answer.arrays["in"], data)
    assert answer.overrun == ()
    assert answer.printed == printed


def test_null_arrays_are_null(runner: Runner) -> None:
    answer = ask(runner, "null", output(1), ArrayArgument("in", "float32", (7,), None, null=True))
    assert answer.arrays["out"][0] == 1
    assert set(answer.arrays) == {"out"}


def test_lists_are_arrays_that_the_host_reads(runner: Runner) -> None:
    sizes = ScalarArgument("sizes", "longs", (3, 1 << 40, -2))
    answer = ask(runner, "copy_longs", output(3, "int64"), sizes, ScalarArgument("n", "int", 3))
    np.testing.assert_array_equal(answer.arrays["out"], sizes.value)


def test_untouched_outputs_are_nan_that_changes_from_call_to_call(runner: Runner) -> None:
    first, second = (ask(runner, "nothing").arrays["out"] for _ in range(2))
    assert np.isnan(first).all()
    assert first.tobytes() != second.tobytes()


def test_pointers_are_aligned_and_stay_while_sizes_do(runner: Runner) -> None:
    places = [int(ask(runner, "address", output(n, "int64")).arrays["out"][0]) for n in (5, 5)]
    assert places[0] == places[1]
    assert places[0] % 256 == 0


def test_writes_beyond_an_array_are_located(runner: Runner) -> None:
    answer = ask(runner, "beyond", output(5), ScalarArgument("n", "int", 5))
    assert answer.overrun == (Finding(OVERRUN, "both_written", facts=facts(array="out")),)
    assert (answer.arrays["out"] == 1).all()
    assert not answer.strayed


def test_a_write_that_may_leave_the_guard_zones_is_told(runner: Runner) -> None:
    answer = ask(runner, "far_beyond", output(5), ScalarArgument("n", "int", 5))
    assert answer.overrun == (Finding(OVERRUN, "end_written", facts=facts(array="out")),)
    assert answer.strayed


def test_an_index_from_behind_an_input_is_what_it_is_on_the_simulator(runner: Runner) -> None:
    sizes = ArrayArgument("sizes", "int64", (3,), np.arange(3))
    answer = ask(runner, "copy_longs", output(5, "int64"), sizes, ScalarArgument("n", "int", 5))
    assert answer.arrays["out"].tolist() == [0, 1, 2, -1, -1]


@pytest.mark.parametrize(
    ("entry_point", "status", "words"),
    [
        ("leave", Status.EXITED, "exit code 0"),
        ("leave_at_once", Status.EXITED, "exit code 7"),
        ("abort_it", Status.CRASHED, "SIGABRT"),
        ("fault", Status.CRASHED, "SIGSEGV"),
        ("hang", Status.TIMEOUT, "1 s"),
        ("fail", Status.CUDA_ERROR, "cudaErrorIllegalAddress: an illegal memory access"),
        ("forge", Status.UNTRUSTED, "forged channel"),
    ],
)
def test_what_a_launcher_may_do_instead_of_returning(
    runner: Runner, entry_point: str, status: Status, words: str
) -> None:
    answer = ask(runner, entry_point, seconds=1 if entry_point == "hang" else 10)
    assert answer.status is status, answer
    assert words in answer.message
    assert not answer.arrays


def test_what_the_judge_has_looked_at_cannot_change_any_more(runner: Runner) -> None:
    ask(runner, "scribble")
    answer = ask(runner, "nothing", output(1 << 16))
    seen = answer.arrays["out"].tobytes()
    time.sleep(0.05)
    assert answer.arrays["out"].tobytes() == seen


class WaitedError(Exception):
    pass


def test_a_runner_that_may_not_use_the_device_yet_was_asked_nothing(runner: Runner) -> None:
    @contextmanager
    def refused() -> Iterator[None]:
        raise WaitedError
        yield

    call = Call("nothing", (output(),), 10, Memory.HOST)
    with pytest.raises(WaitedError):
        calls.run(runner, call, using=refused)
    assert calls.run(runner, call).status is Status.RETURNED


def test_an_ended_runner_stays_ended(runner: Runner) -> None:
    ask(runner, "leave")
    assert ask(runner, "nothing").status is Status.EXITED


def test_want_of_memory_for_the_grader_is_no_failure_of_the_code(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = Frame({"status": "no memory", "message": "2 GiB asked for"}, bytearray())
    monkeypatch.setattr(runner._channel, "exchange", lambda *_: frame)
    answer = ask(runner, "nothing")
    assert answer.status is Status.LOST
    assert "too little free memory" in answer.message
    assert "2 GiB asked for" in answer.message


def test_a_driver_that_is_too_old_is_no_failure_of_the_code(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = Frame({"status": "unsupported", "message": "the driver has no such call"}, bytearray())
    monkeypatch.setattr(runner._channel, "exchange", lambda *_: frame)
    answer = ask(runner, "nothing")
    assert (answer.status, answer.message) == (Status.UNSUPPORTED, "the driver has no such call")


def test_words_between_the_answers_are_forged(runner: Runner) -> None:
    assert ask(runner, "babble").status is Status.RETURNED
    time.sleep(0.5)
    assert ask(runner, "nothing").status is Status.UNTRUSTED


@pytest.mark.parametrize("name", ["chatter", "complain"])
def test_a_flood_meets_the_limit_of_output(runner: Runner, name: str) -> None:
    answer = ask(runner, name, output(), ScalarArgument("lines", "int", 60_000))
    assert (answer.status, answer.message) == (Status.LIMIT, "more than 1 MiB of printed output")


def test_printed_text_is_returned_capped_and_never_read_as_an_answer(runner: Runner) -> None:
    answer = ask(runner, "chatter", output(), ScalarArgument("lines", "int", 20_000))
    assert answer.status is Status.RETURNED
    assert answer.printed.startswith('{"status": "returned"} 0\n')
    assert len(answer.printed) <= 64 << 10
    assert np.isnan(answer.arrays["out"]).all()


def test_foreign_code_finds_no_rights_and_no_descriptors(runner: Runner) -> None:
    text = bytes(ask(runner, "report", output(4096, "uint8")).arrays["out"])
    lines = text[: text.index(b"\n") + 1].decode() + "".join(
        line + "\n" for line in text.decode(errors="ignore").split("\n") if line.startswith("fd ")
    )
    assert lines == "NoNewPrivs:\t1\nfd 0\nfd 1\nfd 2\n"


def test_a_missing_entry_point_is_named(sandbox: ProcessSandbox, student: Path, runtime: Path) -> None:
    with pytest.raises(LoadError, match='no extern "C" function launch_it'):
        Runner(sandbox, Start({student: ("launch_it",)}, runtime))


@pytest.mark.parametrize(("symbol", "error"), [("cudaFancy", RunnerError), ("helper", LoadError)])
def test_undefined_symbols_are_named_before_the_first_call(
    symbol: str, error: type[Exception], sandbox: ProcessSandbox, runtime: Path, tmp_path: Path
) -> None:
    source = tmp_path / "missing.cpp"
    source.write_text(f'extern "C" {{ void {symbol}(); void nothing() {{ {symbol}(); }} }}')
    library = compile_library(source, tmp_path / "missing.so")
    with pytest.raises(error, match=symbol) as caught:
        Runner(sandbox, Start({library: ("nothing",)}, runtime))
    if isinstance(caught.value, RunnerError):
        assert caught.value.status is Status.UNSUPPORTED


def test_code_that_runs_on_loading_can_end_only_its_runner(
    sandbox: ProcessSandbox, runtime: Path, tmp_path: Path
) -> None:
    source = tmp_path / "early.cpp"
    source.write_text("#include <cstdlib>\n__attribute__((constructor)) void early() { std::_Exit(0); }")
    with pytest.raises(RunnerError) as caught:
        Runner(sandbox, Start({compile_library(source, tmp_path / "early.so"): ()}, runtime))
    assert caught.value.status is Status.EXITED


def test_another_program_may_start_the_runner_and_have_the_last_word(
    sandbox: ProcessSandbox, student: Path, runtime: Path, tmp_path: Path
) -> None:
    script = tmp_path / "through.sh"
    script.write_text('#!/bin/sh\n"$@"\necho what was counted >&2\n')
    start = Start({student: NAMES}, runtime, through=("/bin/sh", str(script)), inputs=(script,))
    runner = Runner(sandbox, start)
    assert ask(runner, "nothing").usable
    assert runner.finish(20).endswith("what was counted\n")
    assert ask(runner, "nothing").status is Status.LOST


def test_a_runner_is_compiled_before_and_a_python_of_another_version_compiles_it_itself(
    tmp_path: Path,
) -> None:
    archives = {"pyc": tmp_path / "own.zip", "py": tmp_path / "other.zip"}
    archives["pyc"].write_bytes(packed())
    with zipfile.ZipFile(io.BytesIO(packed())) as ours, zipfile.ZipFile(archives["py"], "w") as other:
        for name in ours.namelist():
            content = ours.read(name)
            other.writestr(name, b"else" + content[4:] if name.endswith(".pyc") else content)
    program, _ = python()
    script = (
        "import sys\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from grader.runner import server\n"
        "print(server.__file__)\n"
    )
    for suffix, archive in archives.items():
        command = [program, "-I", "-S", "-B", "-c", script, archive]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout == f"{archive}/grader/runner/server.{suffix}\n"
