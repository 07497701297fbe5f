from __future__ import annotations

from dataclasses import replace

from grader.devices.hints import MOST, hints
from grader.records.findings import LineCount

QUIET = LineCount(
    kernel="ker_layer_norm<32, 4>",
    file="/build/layernorm_kernel.cu",
    line=1,
    instructions=100,
    lanes=3200,
    global_requests=100,
    global_sectors=400,
    minimal_sectors=400,
    global_bytes=12800,
    shared_requests=100,
    shared_wavefronts=100,
    minimal_wavefronts=100,
    barriers=0,
    undefined_lanes=0,
    atomics=0,
)


def count(**changes: int) -> LineCount:
    return replace(QUIET, **changes)


def test_instances_of_a_template_and_launches_are_one_line() -> None:
    other = replace(QUIET, kernel="ker_layer_norm<128, 4>", global_sectors=3200)
    (hint,) = hints([QUIET, other, other])
    assert "22.7 sectors of 32 bytes per request where 4 would do" in hint.message


def test_traffic_that_cannot_be_less_gives_no_hint() -> None:
    assert hints([count(), count(line=2, global_requests=0, global_sectors=0, minimal_sectors=0)]) == ()


def test_a_strided_load_names_its_line_and_both_numbers() -> None:
    (hint,) = hints([count(line=31, global_sectors=3200)])
    assert (hint.kernel, hint.file, hint.line) == ("ker_layer_norm", "layernorm_kernel.cu", 31)
    assert "32 sectors of 32 bytes per request where 4 would do" in hint.message


def test_bank_conflicts_and_idle_lanes_are_told_apart() -> None:
    messages = [hint.message for hint in hints([count(shared_wavefronts=1600), count(line=2, lanes=100)])]
    assert "16 passes per request where 1 would do" in messages[0]
    assert "only 1 of 32 threads" in messages[1]


def test_no_line_keeps_less_than_one_thread_busy() -> None:
    (hint,) = hints([count(lanes=97)])
    assert "only 1 of 32 threads" in hint.message


def test_lines_that_hardly_run_are_left_out_and_the_worst_come_first() -> None:
    rare = count(line=99, instructions=10, lanes=320, global_sectors=40_000)
    lines = [count(line=n, instructions=1000, lanes=32_000, global_sectors=1000 * n) for n in range(1, 12)]
    found = hints([*lines, rare])
    assert [hint.line for hint in found] == list(range(11, 11 - MOST, -1))
