"""The judge's handle, and what it must survive: dead programs, forged frames, a device that hangs."""

import itertools
import os
import resource
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import NoneType

import pytest
from built_programs import LIBRARY, Compile, call, call_through
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.records.errors import DeviceError
from grader.simulator import driver
from grader.simulator.driver import Options, RefusedError, Simulator, _Activity, check_installed

N, MIB = 1000, 1 << 20
SHARED = ("-cudart", "shared", "--shared", "-Xcompiler", "-fPIC")
KERNEL = """
    __global__ void k() {}
    extern "C" int run() { k<<<1, 1>>>(); return cudaGetLastError(); }
    """


def frame(what: int, call: str = "cudaFree", fields: bytes = b"") -> bytes:
    content = struct.pack("<IQ", what, len(call)) + call.encode() + fields
    return struct.pack("<I", len(content)) + content


HELLO = frame(1, "hello", struct.pack("<I", 7))


def test_memory_keeps_what_is_written() -> None:
    with Simulator() as simulator:
        base = simulator.allocate(16)
        simulator.write(base, bytes(range(16)))
        simulator.fill(base + 4, 0xAB, 4)
        assert simulator.read(base, 16) == bytes(range(4)) + b"\xab" * 4 + bytes(range(8, 16))
        with pytest.raises(RefusedError, match="outside any live allocation"):
            simulator.read(base, 17)
        simulator.release(base)
        with pytest.raises(RefusedError, match="not the start of a live allocation"):
            simulator.release(base)


def test_a_place_is_given_out_again_when_much_has_been_freed_since() -> None:
    def place(size: int) -> int:
        """Where memory of so many bytes was, which is poison before it is written."""
        base = simulator.allocate(size)
        assert simulator.read(base, 4) + simulator.read(base + size - 4, 4) == b"\xff" * 8
        simulator.fill(base, 1, size)
        simulator.release(base)
        return base

    with Simulator() as simulator:
        places = [place(MIB) for _ in range(40)]  # 32 MiB and their distances are 31 places
        assert len(set(places[:32])) == 32
        assert places[32:] == places[:8]
        assert place(MIB + 4096) not in places
        large = [place(5 * MIB) for _ in range(40)]  # given back to the system
        assert len(set(large)) == 40


def test_what_is_kept_for_later_is_bounded() -> None:
    with Simulator() as simulator:
        for size in range(3 * MIB, 4 * MIB, 4096):  # no two alike, so that none is taken again
            base = simulator.allocate(size)
            simulator.fill(base, 1, size)
            simulator.release(base)
        pages = Path(f"/proc/{simulator._process.pid}/statm").read_text().split()[1]
        assert int(pages) * resource.getpagesize() < 256 * MIB


PLACES = """
    #include <set>
    template <class Allocate, class Free> int places(Allocate allocate, Free release) {
      std::set<void*> all;
      for (int n = 0; n < 40; ++n) {
        void* at;
        if (allocate(&at, 1 << 20) || release(at)) return -1;
        all.insert(at);
      }
      return int(all.size());
    }
    __global__ void k() {}
    extern "C" int usual() {
      return places([](void** at, size_t n) { return cudaMalloc(at, n); },
                    [](void* at) { return cudaFree(at); });
    }
    extern "C" int freed_in_order() {
      return places([](void** at, size_t n) { return cudaMalloc(at, n); },
                    [](void* at) { return cudaFreeAsync(at, 0); });
    }
    extern "C" int of_a_stream() {
      return places([](void** at, size_t n) { return cudaMallocAsync(at, n, 0); },
                    [](void* at) { return cudaFree(at); });
    }
    """


@pytest.mark.parametrize(("way", "places"), [("usual", 32), ("freed_in_order", 40), ("of_a_stream", 40)])
def test_memory_that_streams_order_keeps_its_place(nvcc: Compile, way: str, places: int) -> None:
    library = nvcc(PLACES, "places.so", *LIBRARY)
    with Simulator() as simulator:
        simulator.load(library)
        assert call(simulator, library, way) == places


@pytest.mark.parametrize(("command", "fields"), [("fill", (int, int)), ("read", (int, str)), ("other", ())])
def test_a_simulator_of_other_commands_is_told(
    command: str, fields: tuple[type, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {**driver._COMMANDS, command: (fields, NoneType)}
    monkeypatch.setattr(driver, "_COMMANDS", expected)
    monkeypatch.setattr(driver, "_DESCRIPTION", driver.described(expected))
    with pytest.raises(DeviceError, match="of another version: build it anew"):
        Simulator()


def test_judge_launches_a_kernel(runtime_library: Path) -> None:
    with Simulator() as simulator:
        assert simulator.load(runtime_library) == 1
        data = simulator.allocate(4 * N)
        simulator.write(data, struct.pack(f"<{N}f", *range(N)))
        args = (struct.pack("<Q", data), struct.pack("<i", N), struct.pack("<f", 2.0))
        assert simulator.launch("_Z5scalePfif", (8, 1, 1), (128, 1, 1), args)
        assert struct.unpack(f"<{N}f", simulator.read(data, 4 * N)) == tuple(2.0 * i for i in range(N))
        with pytest.raises(RefusedError, match="takes 3 arguments"):
            simulator.launch("_Z5scalePfif", (8, 1, 1), (128, 1, 1), args[:2])
        with pytest.raises(RefusedError, match="no kernel nothing"):
            simulator.launch("nothing", (1, 1, 1), (1, 1, 1), ())


def test_program_works_on_the_judges_memory_and_leaves_it(runtime_library: Path) -> None:
    with Simulator() as simulator:
        simulator.load(runtime_library)
        data = simulator.allocate(64)
        assert call(simulator, runtime_library, "right_numbers") == 0
        simulator.synchronize()
        assert len(simulator.read(data, 64)) == 64
        assert simulator.statistics().launches == 1


def test_compressed_device_code_is_read_or_names_the_option(nvcc: Compile) -> None:
    library = nvcc(KERNEL, "compressed.so", "-gencode=arch=compute_80,code=compute_80", *SHARED)
    with Simulator() as simulator:
        said = ""
        try:
            simulator.load(library)
        except RefusedError as refused:  # built without zstd
            said = str(refused)
        assert said == "" or "--no-compress" in said


def test_machine_code_alone_is_no_device_code(nvcc: Compile) -> None:
    library = nvcc(KERNEL, "machine.so", "-gencode=arch=compute_80,code=sm_80", *SHARED)
    with Simulator() as simulator:
        assert simulator.load(library) == 0
        assert call(simulator, library, "run") == 209  # cudaErrorNoKernelImageForDevice
        simulator.synchronize()
        (gap,) = simulator.unsupported()
        assert "-gencode arch=compute_80,code=compute_80" in gap.subject


def test_highest_target_that_the_device_takes_is_chosen(nvcc: Compile) -> None:
    several = [f"-gencode=arch=compute_{n},code=compute_{n}" for n in (75, 80, 90)]
    source = """
        #if !defined __CUDA_ARCH__ || __CUDA_ARCH__ == 750
        extern "C" __global__ void for_750() {}
        #endif
        #if !defined __CUDA_ARCH__ || __CUDA_ARCH__ == 800
        extern "C" __global__ void for_800() {}
        #endif
        #if !defined __CUDA_ARCH__ || __CUDA_ARCH__ == 900
        extern "C" __global__ void for_900() {}
        #endif
        """
    library = nvcc(source, "several.so", *several, "--no-compress", *SHARED)
    with Simulator() as simulator:
        assert simulator.load(library) == 1
        assert simulator.launch("for_800", (1, 1, 1), (1, 1, 1), ())


def test_files_that_are_not_libraries_are_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.so"
    wrong.write_bytes(b"\x7fELF\x02" + b"\xff" * 200)
    with Simulator() as simulator:
        with pytest.raises(RefusedError, match="cannot read"):
            simulator.load(tmp_path / "missing.so")
        with pytest.raises(RefusedError):
            simulator.load(wrong)


def test_foreign_device_code_is_tampering(runtime_library: Path) -> None:
    with Simulator() as simulator:  # nothing loaded: no program may bring code
        assert call(simulator, runtime_library, "right_numbers") != 0
        simulator.synchronize()
        (reason,) = simulator.tampering()
        assert "not in the library that was built from its source" in reason


def test_each_program_starts_with_fresh_device_variables(runtime_library: Path) -> None:
    with Simulator() as simulator:
        simulator.load(runtime_library)
        assert [call(simulator, runtime_library, "symbols") for _ in range(2)] == [0, 0]


def test_death_of_a_program_leaves_the_device_usable(runtime_library: Path) -> None:
    with Simulator() as simulator:
        simulator.load(runtime_library)
        assert call(simulator, runtime_library, "dereference_on_host") == -signal.SIGSEGV
        assert simulator.synchronize()
        assert call(simulator, runtime_library, "right_numbers") == 0


def test_the_device_s_last_words_are_told_with_its_death() -> None:
    with Simulator() as simulator:
        resource.prlimit(simulator._process.pid, resource.RLIMIT_AS, (1 << 20, 1 << 20))
        with pytest.raises(DeviceError, match=r"please report this: .*bad_alloc"):
            simulator.load_ptx("x" * (4 << 20))


def test_death_of_the_device_is_a_machine_fault(runtime_library: Path) -> None:
    with Simulator() as simulator, simulator.client_socket() as channel:
        os.kill(simulator._process.pid, signal.SIGKILL)
        with pytest.raises(DeviceError, match="died of signal 9"):
            simulator.synchronize()
        assert not simulator.alive
        assert call_through(channel, runtime_library, "right_numbers") > 0  # an error, not a hang


def test_a_hung_kernel_ends_with_the_patience_of_the_caller(runtime_library: Path) -> None:
    with Simulator(Options(instruction_budget=2**60)) as simulator:
        simulator.load(runtime_library)
        assert call(simulator, runtime_library, "spin_forever") == 0  # it only launches
        asked = itertools.count()
        assert simulator.synchronize(lambda: simulator.working() and next(asked) > 3).timed_out
    with pytest.raises(DeviceError, match="open a new one"):
        simulator.take_findings()


def test_reset_forgets_programs_and_memory(runtime_library: Path) -> None:
    with Simulator() as simulator:
        base = simulator.allocate(4)
        simulator.load(runtime_library)
        simulator.reset()
        with pytest.raises(RefusedError):
            simulator.read(base, 4)
        with pytest.raises(RefusedError, match="no kernel"):
            simulator.launch("_Z5scalePfif", (1, 1, 1), (1, 1, 1), ())


@pytest.mark.parametrize(
    "forged",
    [
        frame(7, fields=b"\0" * 9),  # before any greeting
        HELLO + frame(7, fields=b"\0"),
        HELLO + frame(999),
        HELLO + struct.pack("<II", 0xFFFF_FFFF, 7),
        HELLO + struct.pack("<IIQ", 12, 7, 2**63),
        HELLO + frame(2, fields=struct.pack("<IIQ", 1, 1, 2**40)),
        HELLO + frame(26),
    ],
)
def test_forged_frames_are_tampering_and_cost_the_program_only(forged: bytes) -> None:
    with Simulator() as simulator:
        with simulator.client_socket() as channel:
            channel.sendall(forged)
            assert simulator.synchronize()
            (reason,) = simulator.tampering()
            assert "another version" not in reason  # or what follows the greeting is never read
        assert simulator.allocate(4)


@pytest.fixture(scope="module")
def survivor() -> Iterator[Simulator]:
    with Simulator() as simulator:
        yield simulator


@settings(max_examples=200, deadline=None)
@given(questions=st.lists(st.tuples(st.integers(2, 40), st.binary(max_size=120)), max_size=8))
def test_random_questions_never_kill_the_device(
    questions: list[tuple[int, bytes]], survivor: Simulator
) -> None:
    with survivor.client_socket() as channel:
        channel.sendall(HELLO + b"".join(frame(what, "x", fields) for what, fields in questions))
        channel.shutdown(socket.SHUT_WR)
        assert survivor.synchronize()
    assert survivor.alive


def test_missing_binaries_say_how_to_build_them(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="pip"):
        check_installed([tmp_path / "grader-sim"])


def test_work_of_less_than_a_clock_tick_is_seen() -> None:
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        activity = _Activity(process.pid)
        for _ in range(3):
            while activity.seen():
                time.sleep(0.01)
            process.stdin.write(b"a line\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"a line\n"
            time.sleep(0.05)  # it waits for the next line again
            assert activity.seen()
