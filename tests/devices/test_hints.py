from __future__ import annotations

from dataclasses import dataclass

from grader.devices.hints import MOST, hints


@dataclass
class Count:
    line: int = 1
    instructions: int = 100
    lanes: int = 3200
    global_requests: int = 100
    global_sectors: int = 400
    minimal_sectors: int = 400
    shared_requests: int = 100
    shared_wavefronts: int = 100
    minimal_wavefronts: int = 100
    kernel: str = "ker_layer_norm"
    file: str = "layernorm_kernel.cu"


def test_traffic_that_cannot_be_less_gives_no_hint() -> None:
    assert hints([Count(), Count(line=2, global_requests=0, global_sectors=0, minimal_sectors=0)]) == ()


def test_a_strided_load_names_its_line_and_both_numbers() -> None:
    (hint,) = hints([Count(line=31, global_sectors=3200)])
    assert (hint.kernel, hint.file, hint.line) == ("ker_layer_norm", "layernorm_kernel.cu", 31)
    assert "32 sectors of 32 bytes per request where 4 would do" in hint.message


def test_bank_conflicts_and_idle_lanes_are_told_apart() -> None:
    messages = [hint.message for hint in hints([Count(shared_wavefronts=1600), Count(line=2, lanes=100)])]
    assert "16 passes per request where 1 would do" in messages[0]
    assert "only 1 of 32 threads" in messages[1]


def test_lines_that_hardly_run_are_left_out_and_the_worst_come_first() -> None:
    rare = Count(line=99, instructions=10, lanes=320, global_sectors=40_000)
    lines = [Count(line=n, instructions=1000, lanes=32_000, global_sectors=1000 * n) for n in range(1, 12)]
    found = hints([*lines, rare])
    assert [hint.line for hint in found] == list(range(11, 11 - MOST, -1))
