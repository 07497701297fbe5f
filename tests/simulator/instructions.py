"""Runs single PTX instructions on the sim: one kernel per instruction, one thread per tuple of operands."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

Array = np.ndarray
# PTX type -> numpy type of the stored bits, register class.
STORED = {
    **dict.fromkeys(("b16", "u16", "f16", "bf16"), np.uint16),
    **dict.fromkeys(("b32", "u32", "f16x2", "bf16x2", "u16x2", "s16x2", "tf32"), np.uint32),
    **dict.fromkeys(("b64", "u64"), np.uint64),
    "s16": np.int16,
    "s32": np.int32,
    "s64": np.int64,
    "f32": np.float32,
    "f64": np.float64,
}


def width(kind: str) -> int:
    return np.dtype(STORED[kind]).itemsize


@dataclass(frozen=True)
class Probe:
    """An instruction with its operands' types: ``pred`` results are stored as 0 or 1 in 32 bits."""

    text: str  # with {d}, {a}, {b}, {c}, {e} for operands
    result: str
    operands: tuple[str, ...]

    def kernel(self, name: str) -> str:
        """The kernel's PTX: threads read one operand tuple each."""
        kinds = dict(zip("abce", self.operands, strict=False))
        result = "u32" if self.result == "pred" else self.result
        lines = [f".visible .entry {name}(.param .u64 out"]
        lines += [f", .param .u64 in_{x}" for x in kinds]
        lines += [", .param .u32 n)", "{", ".reg .pred %p, %q;", ".reg .b32 %t, %n;", ".reg .b64 %i, %x;"]
        lines += [f".reg .b{8 * width(kind)} %{x};" for x, kind in {**kinds, "d": result}.items()]
        lines += [
            "mov.u32 %t, %ctaid.x;",
            "mov.u32 %n, %tid.x;",
            "mad.lo.u32 %t, %t, 128, %n;",
            "ld.param.u32 %n, [n];",
            "setp.ge.u32 %p, %t, %n;",
            "@%p ret;",
        ]
        for x, kind in kinds.items():
            lines += [
                f"ld.param.u64 %x, [in_{x}];",
                f"mad.wide.u32 %i, %t, {width(kind)}, %x;",
                f"ld.global.b{8 * width(kind)} %{x}, [%i];",
            ]
        names = {x: f"%{x}" for x in "abce"}
        text = self.text.format(d="%q" if self.result == "pred" else "%d", **names)
        lines.append(text if text.endswith("}") else f"{text};")
        if self.result == "pred":
            lines.append("selp.u32 %d, 1, 0, %q;")
        lines += [
            "ld.param.u64 %x, [out];",
            f"mad.wide.u32 %i, %t, {width(result)}, %x;",
            f"st.global.b{8 * width(result)} [%i], %d;",
            "ret;",
            "}",
        ]
        return "\n".join(lines)


def run(probes: list[Probe], inputs: list[tuple[Array, ...]]) -> list[Array]:
    """The results of each probe for its operand arrays, as stored."""
    from grader.simulator.driver import Options, Simulator  # noqa: PLC0415 (a GPU machine needs no grader)

    header = ".version 8.0\n.target sm_80\n.address_size 64\n"
    with Simulator(Options(threads=1), device_bytes=1 << 30, shared_bytes=1 << 20) as simulator:
        simulator.load_ptx(header + "\n".join(p.kernel(f"k{n}") for n, p in enumerate(probes)))
        results = []
        for number, (probe, arrays) in enumerate(zip(probes, inputs, strict=True)):
            count = len(arrays[0])
            dtype = STORED["u32" if probe.result == "pred" else probe.result]
            out = simulator.allocate(count * np.dtype(dtype).itemsize)
            places = []
            for kind, array in zip(probe.operands, arrays, strict=True):
                stored = np.ascontiguousarray(array).astype(STORED[kind], copy=False)
                places.append(simulator.allocate(stored.nbytes))
                simulator.write(places[-1], stored.tobytes())
            args = [struct.pack("<Q", at) for at in (out, *places)] + [struct.pack("<I", count)]
            outcome = simulator.launch(f"k{number}", ((count + 127) // 128, 1, 1), (128, 1, 1), args)
            assert outcome, f"{probe.text}: {outcome.message}"
            results.append(np.frombuffer(simulator.read(out, count * np.dtype(dtype).itemsize), dtype))
            for at in (out, *places):
                simulator.release(at)
        assert simulator.take_findings() == ()
    return results


def pairs(values: Array) -> tuple[Array, Array]:
    """Every value with every other."""
    a, b = np.meshgrid(values, values, indexing="ij")
    return a.ravel(), b.ravel()
