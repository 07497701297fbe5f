"""An operation of the baseline on host memory, on a device that is played by the host."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

from grader.runner.round_trip import Operand, RoundTrip


@dataclass
class FakeRuntime:
    """Device memory out of the host's, filled with garbage; ``log`` tells what was asked, in order."""

    blocks: dict[int, ctypes.Array[ctypes.c_char]] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)

    def malloc(self, size: int) -> int:
        block = ctypes.create_string_buffer(b"\xee" * size, size)
        self.blocks[ctypes.addressof(block)] = block
        self.log.append(f"malloc {size}")
        return ctypes.addressof(block)

    def memcpy(self, to: int, source: int, size: int, kind: int) -> None:
        assert (to in self.blocks, source in self.blocks) == {1: (True, False), 2: (False, True)}[kind]
        ctypes.memmove(to, source, size)
        self.log.append({1: "to device", 2: "to host"}[kind])

    def free(self, pointer: int) -> None:
        del self.blocks[pointer]
        self.log.append("free")


def test_a_round_trip_allocates_copies_runs_waits_copies_and_frees() -> None:
    runtime = FakeRuntime()
    left, right = (ctypes.c_float * 4)(1, 2, 3, 4), (ctypes.c_float * 4)(10, 20, 30, 40)
    out, one, two = (ctypes.c_void_p() for _ in range(3))

    def add(code: int, result: ctypes.c_void_p, a: ctypes.c_void_p, b: ctypes.c_void_p) -> None:
        runtime.log.append(f"run {code}")
        for index in range(4):
            target, x, y = ((ctypes.c_float * 4).from_address(p.value or 0) for p in (result, a, b))
            target[index] = x[index] + y[index]

    def place(array: ctypes.Array[ctypes.c_float]) -> int:
        return ctypes.addressof(array)

    trip = RoundTrip(
        add,
        (7, out, one, two),
        Operand(out, place(left), 16),  # the result may lie where an operand was
        (Operand(one, place(left), 16), Operand(two, place(right), 16)),
    )
    for _ in range(2):
        trip.run(runtime, lambda: runtime.log.append("wait"))
    assert list(left) == [21, 42, 63, 84]
    assert not runtime.blocks
    once = [
        *["malloc 16"] * 3,
        *["to device"] * 2,
        *("run 7", "wait", "to host"),
        *["free"] * 3,
    ]
    assert runtime.log == once * 2


def test_a_result_of_which_a_part_is_written_keeps_the_rest() -> None:
    runtime, array, out = FakeRuntime(), (ctypes.c_float * 4)(1, 2, 3, 4), ctypes.c_void_p()

    def write_one(result: ctypes.c_void_p) -> None:
        (ctypes.c_float * 4).from_address(result.value or 0)[2] = 7

    operand = Operand(out, ctypes.addressof(array), 16)
    RoundTrip(write_one, (out,), operand, (), partial=True).run(runtime, lambda: None)
    assert list(array) == [1, 2, 7, 4]
