"""The device sim with a library that nvcc made: data, streams, findings, and every bad end."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from grader.devices import patience
from grader.devices.device import (
    Answer,
    Argument,
    ArrayArgument,
    Call,
    LoadError,
    Memory,
    ScalarArgument,
    Schedule,
    Status,
    StreamArgument,
    Watched,
)
from grader.devices.hints import hints
from grader.devices.sim import Sim, SimSession
from grader.records.sentences import sentence
from grader.records.stores import By, LastStore
from grader.simulator.driver import LIBRARIES, RUNTIME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grader.sandbox.process import ProcessSandbox

pytestmark = pytest.mark.skipif(not RUNTIME.is_file(), reason="the simulator is not built")

NAMES = (
    *("launch_scale_kept", "launch_scale_kept_in_order", "launch_scale_on_the_first_stream"),
    *("launch_scale", "launch_ordered", "launch_unordered", "launch_host", "launch_strided"),
    *("launch_host_later", "launch_put_back", "launch_scale_pinned"),
    *("launch_scale_of_four", "launch_scale_once"),
    *(
        "launch_beyond",
        "launch_wrapped",
        "launch_add",
        "launch_spin",
        "launch_say",
        "launch_shout",
        "launch_nothing",
    ),
    *("touch_on_host", "leave", "spin_on_host", "sleep_on_host", "wait_for_a_child"),
    *("wait_for_a_child_that_works", "launch_for_ever", "launch_leaking", "launch_keeping"),
    "launch_too_large",
)
N = 1000
DATA = np.linspace(-5, 5, N, dtype=np.float32)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("kernels") / "kernels.so"
    command = "nvcc -shared -Xcompiler -fPIC -gencode arch=compute_80,code=compute_80 -lineinfo --no-compress"
    source = Path(__file__).with_name("kernels.cu")
    subprocess.run(
        [*command.split(), "-cudart", "shared", f"-L{LIBRARIES}", "-o", target, source],
        check=True,
        capture_output=True,
    )
    return target


@pytest.fixture
def session(sandbox: ProcessSandbox, library: Path) -> Iterator[SimSession]:
    with Sim(sandbox).open(library, NAMES) as session:
        yield session


def ask(
    session: SimSession,
    entry_point: str,
    *arguments: Argument,
    memory: Memory = Memory.DEVICE,
    schedule: Schedule = Schedule.PROGRAM,
) -> Answer:
    return session.run(Call(entry_point, arguments, 20, memory, schedule))


def output(size: int = N) -> ArrayArgument:
    return ArrayArgument("out", "float32", (size,), None)


def data(content: np.ndarray = DATA, *, constant: bool = False) -> ArrayArgument:
    return ArrayArgument("in", "float32", content.shape, content, constant=constant)


SIZE = ScalarArgument("n", "int", N)
FACTOR = ScalarArgument("factor", "float", 2.0)
ONE_STREAM = StreamArgument("stream", 0)
TWO_STREAMS = (StreamArgument("first", 0), StreamArgument("second", 1))


def test_an_answer_tells_what_has_stored_into_the_elements_that_are_asked_for(session: SimSession) -> None:
    call = Call("launch_scale", (output(), data(), SIZE, FACTOR, ONE_STREAM), 20)
    assert session.run(call).last_stores == ()
    watched = (Watched("out", 280, 4), Watched("in", 280, 4))
    answer = session.run(replace(call, watched=watched))
    assert answer.watchable
    by_kernel, by_nobody = answer.last_stores
    assert by_kernel.kernel.startswith("_Z5scale")
    place = by_kernel.place
    assert (place.file, place.block, place.thread) == ("kernels.cu", (1, 0, 0), (6, 0, 0))
    assert by_nobody == LastStore(By.NOTHING)
    assert not answer.counts, "what is asked again is not counted again"
    assert session.run(call).last_stores == ()
    host = replace(call, entry_point="launch_host", memory=Memory.HOST, watched=watched)
    assert not session.run(host).watchable


@pytest.mark.parametrize("schedule", list(Schedule))
@pytest.mark.parametrize(
    ("entry_point", "memory"), [("launch_scale", Memory.DEVICE), ("launch_host", Memory.HOST)]
)
def test_outputs_of_fresh_inputs_in_both_memories(
    session: SimSession, entry_point: str, memory: Memory, schedule: Schedule
) -> None:
    for factor in (0.5, -3.0):
        arguments = (
            output(),
            data(DATA * factor),
            SIZE,
            ScalarArgument("f", "float", 2.0),
            StreamArgument("s", 0),
        )
        answer = ask(session, entry_point, *arguments, memory=memory, schedule=schedule)
        assert answer.status is Status.RETURNED, answer
        np.testing.assert_array_equal(answer.arrays["out"], 2 * (DATA * np.float32(factor)))
        assert answer.overrun == ()
        assert answer.findings == ()


def test_a_result_in_host_memory_counts_if_it_is_there_when_the_call_returns(session: SimSession) -> None:
    arguments = (output(), data(), SIZE, ScalarArgument("f", "float", 2.0), StreamArgument("s", 0))
    late = ask(session, "launch_host_later", *arguments, memory=Memory.HOST, schedule=Schedule.LATE_STREAMS)
    assert late.status is Status.RETURNED
    assert (late.arrays["out"].view(np.uint32) >= 0xFFF00000).all()


def test_unwritten_outputs_hold_poison(session: SimSession) -> None:
    answer = ask(session, "launch_nothing", output())
    assert answer.status is Status.RETURNED
    assert (answer.arrays["out"].view(np.uint32) >= 0xFFF00000).all()


def test_what_lies_around_an_array_makes_numbers_wrong_that_it_decides(session: SimSession) -> None:
    answer = ask(session, "launch_scale", output(), data(DATA[:500]), SIZE, FACTOR, ONE_STREAM)
    assert answer.status is Status.RETURNED
    assert np.isnan(answer.arrays["out"][500:]).all()
    assert {finding.kind for finding in answer.findings} == {"global_oob"}


def test_only_ordered_streams_survive_every_schedule(session: SimSession) -> None:
    for schedule in Schedule:
        answer = ask(session, "launch_ordered", output(), data(), SIZE, *TWO_STREAMS, schedule=schedule)
        np.testing.assert_array_equal(answer.arrays["out"], 6 * DATA)
        assert answer.findings == ()
    late = ask(
        session, "launch_unordered", output(), data(), SIZE, *TWO_STREAMS, schedule=Schedule.LATE_STREAMS
    )
    wrong = late.status is not Status.RETURNED or not np.array_equal(late.arrays["out"], 6 * DATA)
    assert wrong or late.findings


@pytest.mark.parametrize("first_is_staged", [False, True])
def test_a_launcher_that_keeps_the_stream_of_its_first_call_is_wrong_later(
    first_is_staged: bool, session: SimSession
) -> None:
    for entry_point, right in (("launch_scale", True), ("launch_scale_on_the_first_stream", False)):
        arguments = (output(), data(), SIZE, FACTOR, ONE_STREAM)
        session.run(Call(entry_point, arguments, 20, staged=first_is_staged))
        later = session.run(Call(entry_point, arguments, 20, staged=True))
        assert (np.array_equal(later.arrays["out"], 2 * DATA) and not later.findings) == right


def test_copies_and_fills_of_an_input_are_told_though_it_is_put_back(session: SimSession) -> None:
    for constant in (True, False, True):
        answer = ask(session, "launch_put_back", output(), data(constant=constant), SIZE, ONE_STREAM)
        np.testing.assert_array_equal(answer.arrays["in"], DATA)
        calls = [
            str(sentence(finding)).split()[0] for finding in answer.findings if finding.kind == "const_input"
        ]
        assert calls == (["cudaMemsetAsync", "cudaMemcpyAsync"] if constant else [])


@pytest.mark.parametrize("staged", [False, True])
def test_reading_an_input_is_nothing_to_tell(staged: bool, session: SimSession) -> None:
    arguments = (output(), data(constant=True), SIZE, FACTOR, ONE_STREAM)
    assert session.run(Call("launch_scale", arguments, 20, staged=staged)).findings == ()


@pytest.mark.parametrize(
    ("entry_point", "rest", "memory", "alone"),
    [
        ("launch_scale", (FACTOR, ONE_STREAM), Memory.DEVICE, True),
        ("launch_keeping", (ONE_STREAM,), Memory.DEVICE, True),
        ("launch_ordered", TWO_STREAMS, Memory.DEVICE, False),
        ("launch_unordered", TWO_STREAMS, Memory.DEVICE, False),
        ("launch_scale_kept", (FACTOR, ONE_STREAM), Memory.DEVICE, False),
        ("launch_scale_kept_in_order", (FACTOR, ONE_STREAM), Memory.DEVICE, False),
        ("launch_scale_pinned", (FACTOR, ONE_STREAM), Memory.DEVICE, False),
        ("launch_host", (FACTOR, ONE_STREAM), Memory.HOST, False),
        ("launch_host_later", (FACTOR, ONE_STREAM), Memory.HOST, False),
    ],
)
def test_an_answer_says_whether_one_stream_had_all_the_work_and_the_host_no_part_in_it(
    entry_point: str, rest: tuple[Argument, ...], memory: Memory, session: SimSession, *, alone: bool
) -> None:
    arrays = (output(),) if entry_point == "launch_keeping" else (output(), data())
    answers = [ask(session, entry_point, *arrays, SIZE, *rest, memory=memory) for _ in range(3)]
    assert [answer.on_one_stream for answer in answers[1:]] == [alone] * 2


@pytest.mark.parametrize(
    ("entry_point", "rest"),
    [
        ("launch_scale", (FACTOR, ONE_STREAM)),
        ("launch_scale_kept_in_order", (FACTOR, ONE_STREAM)),
        ("launch_ordered", TWO_STREAMS),
    ],
)
@pytest.mark.parametrize("schedule", Sim.schedules)
def test_a_call_behind_a_staged_one_changes_nothing_of_it(
    entry_point: str, rest: tuple[Argument, ...], schedule: Schedule, session: SimSession
) -> None:
    def answered(entry_point: str, *rest: Argument) -> Answer:
        call = Call(entry_point, (output(), data(), SIZE, *rest), 20, schedule=schedule, staged=True)
        return session.run(replace(call, queued={"n": 500}))

    answer = answered(entry_point, *rest)
    assert answer.findings == ()
    np.testing.assert_array_equal(answer.arrays["out"], (6 if rest is TWO_STREAMS else 2) * DATA)
    late = schedule is Schedule.LATE_STREAMS
    answer = answered("launch_scale_kept", FACTOR, ONE_STREAM)
    kept = answer.arrays["out"]
    assert {finding.kind for finding in answer.findings} == {"race_stream"}
    assert np.array_equal(kept[:500], 2 * DATA[:500])
    assert np.array_equal(kept, 2 * DATA) is not late


def test_several_calls_behind_a_staged_one_find_room_for_few(session: SimSession) -> None:
    arguments = (output(), data(), SIZE, FACTOR, ONE_STREAM)
    call = Call("launch_scale_of_four", arguments, 20, schedule=Schedule.LATE_STREAMS, staged=True)
    assert np.array_equal(session.run(call).arrays["out"], 2 * DATA)
    answer = session.run(replace(call, queued={"factor": 3.0}))
    assert not np.array_equal(answer.arrays["out"], 2 * DATA)


def test_a_call_in_another_order_has_the_addresses_of_the_one_before_it(session: SimSession) -> None:
    rest = (SIZE, FACTOR, ONE_STREAM)
    for schedule, factors in (
        (Schedule.PROGRAM, (1, 2)),
        (Schedule.REVERSED, (3,)),
    ):
        for factor in factors:
            answer = ask(
                session, "launch_scale_once", output(), data(factor * DATA), *rest, schedule=schedule
            )
            kept = 2 if schedule is Schedule.REVERSED else factor
            np.testing.assert_array_equal(answer.arrays["out"], 2 * kept * DATA)
    answer = ask(session, "launch_nothing", output(), schedule=Schedule.REVERSED)
    assert np.isnan(answer.arrays["out"]).all()


def test_an_index_that_overflows_is_only_looked_for_where_it_is_asked_for(session: SimSession) -> None:
    for schedule in Schedule:
        answer = ask(
            session, "launch_wrapped", output(32), ScalarArgument("n", "int", 1 << 16), schedule=schedule
        )
        expected = ["index_overflow"] if schedule is Schedule.OVERFLOW else []
        assert [finding.kind for finding in answer.findings] == expected


def test_an_access_outside_an_array_is_found_with_its_line(session: SimSession) -> None:
    answer = ask(session, "launch_beyond", output(8), ScalarArgument("n", "int", 8))
    (finding,) = [finding for finding in answer.findings if finding.tool == "memcheck"]
    assert finding.kind == "global_oob"
    assert "beyond" in finding.kernel
    assert Path(finding.file).name == "kernels.cu"
    assert finding.line == 18


def test_adding_to_what_nobody_wrote_is_found_in_every_call(session: SimSession) -> None:
    for _ in range(2):
        answer = ask(session, "launch_add", output(8), ScalarArgument("n", "int", 8))
        assert "uninit_global" in [finding.kind for finding in answer.findings], answer


def test_an_allocation_that_failed_is_told_before_the_pointer_that_follows_from_it(
    session: SimSession,
) -> None:
    arguments = output(), SIZE, ONE_STREAM
    answer = ask(session, "launch_too_large", *arguments)
    failed, *bad = answer.findings
    assert (failed.kind, failed.counts) == ("failed_allocation", False)
    assert "cudaMallocAsync failed: out of memory" in str(sentence(failed))
    assert bad


@pytest.mark.parametrize("allowed", [True, False])
def test_memory_that_each_call_leaves_behind_is_told_once(
    sandbox: ProcessSandbox, library: Path, *, allowed: bool
) -> None:
    with Sim(sandbox, leaks_allowed=allowed).open(library, NAMES) as session:

        def leaks(entry_point: str, size: int) -> list[str]:
            arguments = output(), ScalarArgument("n", "int", size), StreamArgument("stream", 0)
            findings = ask(session, entry_point, *arguments).findings
            assert all((one.kind, one.counts) == ("leak", not allowed) for one in findings)
            return [str(sentence(one)) for one in findings]

        assert [leaks("launch_keeping", size) for size in (100, 100, 500, 200, 200, 600)] == [[]] * 6
        once = "1 allocation(s) with 100 bytes in this one"
        assert [once in "".join(leaks("launch_leaking", 100)) for _ in range(3)] == [False, True, False]


def test_hints_name_strided_lines(session: SimSession) -> None:
    answer = ask(
        session,
        "launch_strided",
        output(1024),
        data(np.zeros(1024, np.float32)),
        ScalarArgument("n", "int", 1024),
    )
    found = hints(answer.counts)
    assert any("32 sectors" in hint.message and "strided" in hint.kernel for hint in found), found


def test_kernels_print_once(session: SimSession) -> None:
    assert ask(session, "launch_say", output(1)).printed == "thread 0\n"


@pytest.mark.parametrize(("threads", "status"), [(16384, Status.RETURNED), (32768, Status.LIMIT)])
def test_kernels_meet_the_limit_of_output(session: SimSession, threads: int, status: Status) -> None:
    answer = ask(session, "launch_shout", output(1), ScalarArgument("threads", "int", threads))
    assert answer.status is status, answer.message
    assert answer.message == ("" if answer.usable else "more than 1 MiB of printed output")


@pytest.mark.parametrize(
    ("entry_point", "status", "words"),
    [
        ("touch_on_host", Status.CRASHED, "SIG"),
        ("leave", Status.EXITED, "exit code 0"),
    ],
)
def test_bad_ends_are_named_and_final(
    session: SimSession, entry_point: str, status: Status, words: str
) -> None:
    answer = ask(session, entry_point, output(8))
    assert answer.status is status, answer
    assert words in answer.message
    assert ask(session, "launch_nothing", output(8)).status is status


@pytest.mark.parametrize(
    ("entry_point", "words"),
    [
        ("spin_on_host", ("more than 1 s of processor time", "(in the loop of spin_on_host)")),
        ("sleep_on_host", ("slept for 1 s", "sleep_on_host, asleep in sleep)")),
        ("wait_for_a_child", ("slept for 1 s", "(in wait_for_a_child, asleep in wait4)")),
        ("wait_for_a_child_that_works", ("more than 1 s of processor time", "working in wait4)")),
    ],
)
def test_host_code_that_does_not_end_is_named_with_what_it_does(
    sandbox: ProcessSandbox,
    library: Path,
    entry_point: str,
    words: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patience, "ASLEEP_SECONDS", 1.0)
    with Sim(sandbox).open(library, NAMES) as session:
        answer = session.run(Call(entry_point, (), 1.0))
    assert answer.status is Status.TIMEOUT, answer
    assert all(word in answer.message for word in words), answer.message


@pytest.mark.parametrize(
    ("entry_point", "arguments", "words"),
    [
        ("launch_spin", (), "waits for byte 0 of an array in global memory to change"),
        ("launch_for_ever", (ONE_STREAM,), "the host has launched"),
    ],
)
def test_kernels_that_do_not_end_are_a_finding(
    session: SimSession, entry_point: str, arguments: tuple[Argument, ...], words: str
) -> None:
    answer = ask(session, entry_point, output(1), *arguments)
    assert answer.status is Status.CUDA_ERROR, answer
    (hang,) = (finding for finding in answer.findings if finding.tool == "hang")
    assert words in str(sentence(hang))
    assert hang.kernel


def test_a_missing_entry_point_is_the_students(sandbox: ProcessSandbox, library: Path) -> None:
    with pytest.raises(LoadError, match="launch_softmax"):
        Sim(sandbox).open(library, ("launch_softmax",))
