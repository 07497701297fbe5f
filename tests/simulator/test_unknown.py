"""What the simulator does not know matters only where a warp reaches it, and is named with its place then."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from built_programs import LIBRARY, call

from grader.records.gaps import Gap, GapKind
from grader.simulator.driver import Options, RefusedError, Simulator

if TYPE_CHECKING:
    from built_programs import Compile

HEADER = ".version 8.4\n.target sm_90\n.address_size 64\n"
TEXTURE = "tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%t, {%r0}]"
KERNEL = """
.visible .entry k(.param .u64 out, .param .u32 taken)
{
    .reg .pred %p;
    .reg .b32 %r<4>;
    .reg .b64 %o, %t;
    .reg .b128 %wide;
    .reg .f32 %f<4>;
    ld.param.u64 %o, [out];
    ld.param.u32 %r0, [taken];
    setp.ne.u32 %p, %r0, 0;
    PART
    mov.u32 %r1, 7;
    st.global.u32 [%o], %r1;
    ret;
}
"""
PARTS = {
    "a branch": f"@!%p bra over; {TEXTURE}; over:",
    "a guard": f"@%p {TEXTURE};",
    "an unknown register": "@!%p bra over; mov.b128 %wide, {%o, %t}; over:",
    "an unknown modifier": "@%p ld.global.surprise.u32 %r2, [%o];",
    "an unknown directive": "@!%p bra over; .surprise 1, 2; over:",
    "an unknown function": "@!%p bra over; call.uni surprise, (); over:",
}
SOURCE = """
__global__ void sample(float* out, cudaTextureObject_t texture, int taken) {
    out[threadIdx.x] = taken ? tex1Dfetch<float>(texture, threadIdx.x) : 7; // texture
}
__global__ void plain(float* out) { out[threadIdx.x] = 3; }
static int run(int taken) {
    float* out;
    cudaMalloc(&out, 4 * 32);
    plain<<<1, 32>>>(out);
    sample<<<1, 32>>>(out, 0, taken);
    int code = cudaDeviceSynchronize();
    cudaFree(out);
    return code;
}
extern "C" int not_taken() { return run(0); }
extern "C" int taken() { return run(1); }
extern "C" int array() {
    cudaArray_t array;
    cudaChannelFormatDesc format{32, 0, 0, 0, cudaChannelFormatKindFloat};
    return cudaMallocArray(&array, &format, 32);
}
"""


@pytest.mark.parametrize("part", PARTS)
def test_an_unknown_statement_matters_only_where_a_warp_reaches_it(part: str) -> None:
    with Simulator(Options(threads=1)) as simulator:
        simulator.load_ptx(HEADER + KERNEL.replace("PART", PARTS[part]))
        out = simulator.allocate(4)
        arguments = [struct.pack("<Q", out), struct.pack("<I", 0)]
        assert simulator.launch("k", (1, 1, 1), (32, 1, 1), arguments)
        assert simulator.read(out, 4) == b"\7\0\0\0"
        with pytest.raises(RefusedError, match="the simulator does not know "):
            simulator.launch("k", (1, 1, 1), (32, 1, 1), [*arguments[:1], struct.pack("<I", 1)])


def test_one_warp_of_many_blocks_that_reaches_it_ends_the_launch() -> None:
    part = f"mov.u32 %r2, %ctaid.x; setp.eq.u32 %p, %r2, 700; {PARTS['a branch']}"
    with Simulator(Options(threads=2)) as simulator:
        simulator.load_ptx(HEADER + KERNEL.replace("PART", part))
        arguments = [struct.pack("<Q", simulator.allocate(4)), struct.pack("<I", 0)]
        assert simulator.launch("k", (700, 1, 1), (32, 1, 1), arguments)
        with pytest.raises(RefusedError, match=r"textures: the instruction 'tex\.1d"):
            simulator.launch("k", (1000, 1, 1), (32, 1, 1), arguments)


def test_a_program_learns_that_it_is_not_supported_and_the_judge_where_it_is(nvcc: Compile) -> None:
    library = nvcc(SOURCE, "textures.so", *LIBRARY)
    line = next(n for n, text in enumerate(SOURCE.splitlines(), 1) if "// texture" in text)
    with Simulator() as simulator:
        simulator.load(library)
        assert call(simulator, library, "not_taken") == 0
        assert simulator.unsupported() == ()
        assert call(simulator, library, "taken") == 801  # cudaErrorNotSupported
        (gap,) = simulator.unsupported()
        assert (gap.kind, gap.feature, gap.line) == (GapKind.INSTRUCTION, "textures", line)
        assert gap.subject.startswith("tex.1d.v4.f32.s32 ")
        assert "sample" in gap.function
        assert gap.file.endswith("textures.so.cu")
        assert call(simulator, library, "array") == 801
        assert simulator.unsupported() == (Gap(GapKind.CALL, "cudaMallocArray"),)
