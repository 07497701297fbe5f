"""mma, wmma and ldmatrix against numpy; fragments laid out by the formulas of the PTX ISA."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest

from grader.records.sentences import sentence
from grader.simulator.driver import Options, RefusedError, Simulator

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray
RANDOM = np.random.default_rng(5)
HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
LANES = 32
Place = tuple[int, int]


def launch(ptx: str, buffers: list[Array], shared: int = 0, threads: int = LANES) -> list[Array]:
    """The buffers after a run of kernel k, which gets their addresses."""
    with Simulator(Options(threads=1), device_bytes=1 << 22, shared_bytes=1 << 16) as simulator:
        simulator.load_ptx(HEADER + ptx)
        places = [simulator.allocate(buffer.nbytes) for buffer in buffers]
        for place, buffer in zip(places, buffers, strict=True):
            simulator.write(place, buffer.tobytes())
        arguments = [struct.pack("<Q", place) for place in places]
        outcome = simulator.launch("k", (1, 1, 1), (threads, 1, 1), arguments, shared=shared)
        assert outcome, outcome.message
        assert simulator.take_findings() == ()
        return [
            np.frombuffer(simulator.read(place, buffer.nbytes), buffer.dtype).reshape(buffer.shape)
            for place, buffer in zip(places, buffers, strict=True)
        ]


def kernel(names: list[str], body: str) -> str:
    parameters = ", ".join(f".param .u64 p_{name}" for name in names)
    loads = "\n".join(f"ld.param.u64 %{name}, [p_{name}];" for name in names)
    registers = ", ".join(f"%{name}" for name in names)
    return f"""
.visible .entry k({parameters}) {{
  .reg .b64 {registers}, %at; .reg .b32 %lane, %x<64>; .reg .b64 %y<8>;
  .shared .align 128 .b8 tile[8192];
  mov.u32 %lane, %tid.x;
  {loads}
  {body}
  ret;
}}"""


# --- numbers as they are stored


def bits(values: Array, kind: str) -> Array:
    if kind == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    types = {"f16": np.float16, "tf32": np.float32, "f32": np.float32, "f64": np.float64}
    types |= {"s8": np.int8, "u8": np.uint8, "s32": np.int32}
    return values.astype(types[kind])


def values(kind: str, rows: int, columns: int) -> Array:
    """Whole numbers whose products and sums are exact in every type."""
    low, high = (0, 256) if kind == "u8" else (-128, 128) if kind == "s8" else (-7, 8)
    return RANDOM.integers(low, high, (rows, columns)).astype(np.float64)


# --- mma: each lane's registers come from memory, its elements where the PTX ISA says


@dataclass(frozen=True)
class Layout:
    """Where element ``i`` of lane ``(group, thread)`` lies in a, b and c."""

    a: Callable[[int, int, int], Place]
    b: Callable[[int, int, int], Place]
    c: Callable[[int, int, int], Place]


def _pairs(g: int, t: int, i: int) -> Place:
    return (g if i < 2 else g + 8), t * 2 + (i & 1)


LAYOUTS = {
    ("m16n8k8", 2): Layout(_pairs, lambda g, t, i: (t * 2 + i, g), _pairs),
    ("m16n8k16", 2): Layout(
        lambda g, t, i: (g if i % 4 < 2 else g + 8, t * 2 + (i & 1) + (8 if i >= 4 else 0)),
        lambda g, t, i: (t * 2 + (i & 1) + (8 if i >= 2 else 0), g),
        _pairs,
    ),
    ("m16n8k4", 4): Layout(lambda g, t, i: (g + 8 * i, t), lambda g, t, _: (t, g), _pairs),
    ("m16n8k8", 4): Layout(
        lambda g, t, i: (g + 8 * (i & 1), t + (4 if i >= 2 else 0)),
        lambda g, t, i: (t + 4 * i, g),
        _pairs,
    ),
    ("m8n8k16", 1): Layout(
        lambda g, t, i: (g, t * 4 + i), lambda g, t, i: (t * 4 + i, g), lambda g, t, i: (g, t * 2 + i)
    ),
    ("m16n8k16", 1): Layout(
        lambda g, t, i: (g if i < 4 else g + 8, t * 4 + (i & 3)), lambda g, t, i: (t * 4 + i, g), _pairs
    ),
    ("m16n8k32", 1): Layout(
        lambda g, t, i: (g if i < 4 or 8 <= i < 12 else g + 8, t * 4 + (i & 3) + (16 if i >= 8 else 0)),
        lambda g, t, i: (t * 4 + (i & 3) + (16 if i >= 4 else 0), g),
        _pairs,
    ),
    ("m8n8k4", 8): Layout(lambda g, t, _: (g, t), lambda g, t, _: (t, g), lambda g, t, i: (g, t * 2 + i)),
}
SIZES = {"f16": 2, "bf16": 2, "tf32": 4, "f32": 4, "s8": 1, "u8": 1, "s32": 4, "f64": 8}
MMA = [
    ("m16n8k8", "f32.f16.f16.f32"),
    ("m16n8k16", "f32.f16.f16.f32"),
    ("m16n8k8", "f16.f16.f16.f16"),
    ("m16n8k16", "f16.f16.f16.f16"),
    ("m16n8k8", "f32.bf16.bf16.f32"),
    ("m16n8k16", "f32.bf16.bf16.f32"),
    ("m16n8k4", "f32.tf32.tf32.f32"),
    ("m16n8k8", "f32.tf32.tf32.f32"),
    *[("m8n8k16", f"s32.{a}.{b}.s32") for a in ("s8", "u8") for b in ("s8", "u8")],
    *[("m16n8k16", f"s32.{a}.{b}.s32") for a in ("s8", "u8") for b in ("s8", "u8")],
    *[("m16n8k32", f"s32.{a}.{b}.s32") for a in ("s8", "u8") for b in ("s8", "u8")],
    ("m8n8k4", "f64.f64.f64.f64"),
]


def spread(matrix: Array, place: Callable[[int, int, int], Place], kind: str) -> Array:
    """The lanes' elements, one row per lane."""
    count = matrix.size // LANES
    rows = [[matrix[place(lane // 4, lane % 4, i)] for i in range(count)] for lane in range(LANES)]
    return bits(np.array(rows), kind)


def gathered(lanes: Array, place: Callable[[int, int, int], Place], shape: Place) -> Array:
    matrix = np.empty(shape)
    for lane in range(LANES):
        for i in range(lanes.shape[1]):
            matrix[place(lane // 4, lane % 4, i)] = lanes[lane, i]
    return matrix


def mma(shape: str, types: str, a: Array, b: Array, c: Array, how: str = "") -> Array:
    d_kind, a_kind, b_kind, c_kind = types.split(".")
    layout = LAYOUTS[shape, SIZES[a_kind]]
    fragments = [spread(a, layout.a, a_kind), spread(b, layout.b, b_kind), spread(c, layout.c, c_kind)]
    out = np.zeros((LANES, c.size // LANES), bits(np.zeros(1), d_kind).dtype)
    word = 8 if a_kind == "f64" else 4
    register = "%y" if word == 8 else "%x"
    counts = [array[0].nbytes // word for array in (out, *fragments)]
    lists, first = [], 0
    for count in counts:
        lists.append([f"{register}{first + n}" for n in range(count)])
        first += count
    body = ""
    for name, registers in zip("abc", lists[1:], strict=True):
        body += f"mad.wide.u32 %at, %lane, {len(registers) * word}, %{name};\n"
        body += "".join(f"ld.global.b{8 * word} {r}, [%at+{n * word}];\n" for n, r in enumerate(registers))
    operands = ", ".join("{" + ", ".join(registers) + "}" for registers in lists)
    body += f"mma.sync.aligned.{shape}.row.col{how}.{types} {operands};\n"
    body += f"mad.wide.u32 %at, %lane, {len(lists[0]) * word}, %d;\n"
    body += "".join(f"st.global.b{8 * word} [%at+{n * word}], {r};\n" for n, r in enumerate(lists[0]))
    lanes = launch(kernel(["d", "a", "b", "c"], body), [out, *fragments])[0]
    return gathered(lanes, layout.c, c.shape)


def sizes(shape: str) -> tuple[int, int, int]:
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    return int(m), int(n), int(k)


@pytest.mark.parametrize(("shape", "types"), MMA)
def test_mma_multiplies_and_adds(shape: str, types: str) -> None:
    m, n, k = sizes(shape)
    _, a_kind, b_kind, c_kind = types.split(".")
    a, b, c = values(a_kind, m, k), values(b_kind, k, n), values(c_kind, m, n)
    np.testing.assert_array_equal(mma(shape, types, a, b, c), a @ b + c)


def test_mma_rounds_once_and_keeps_what_is_no_number() -> None:
    a, b = (RANDOM.standard_normal(s).astype(np.float16).astype(np.float64) for s in ((16, 16), (16, 8)))
    c = RANDOM.standard_normal((16, 8)).astype(np.float32).astype(np.float64)
    exact = a @ b + c
    got = mma("m16n8k16", "f32.f16.f16.f32", a, b, c)
    assert np.all(np.abs(got - exact) <= 2.0**-23 * (np.abs(a) @ np.abs(b) + np.abs(c)))
    a[3, 5], b[2, 1], c[15, 7] = np.nan, np.inf, -np.inf
    a[:, 2] = 1
    got = mma("m16n8k16", "f32.f16.f16.f32", a, b, c)
    assert np.all(np.isnan(got[3]))
    assert np.all(np.delete(got[:, 1], 3) == np.inf)
    assert got[15, 7] == -np.inf
    large = np.full((16, 16), 60000.0), np.ones((16, 8)), np.zeros((16, 8))
    assert np.all(mma("m16n8k16", "f16.f16.f16.f16", *large) == np.inf)


def test_mma_of_tf32_ignores_what_tf32_has_no_room_for() -> None:
    a, b, c = np.full((16, 8), 1 + 2.0**-11), np.eye(8), np.zeros((16, 8))
    np.testing.assert_array_equal(mma("m16n8k8", "f32.tf32.tf32.f32", a, b, c), np.ones((16, 8)))


def test_integers_wrap_or_saturate() -> None:
    a, b = np.full((16, 16), 127.0), np.full((16, 8), 127.0)
    c = np.full((16, 8), 2.0**31 - 1)
    c[8:] = -(2.0**31)
    got = mma("m16n8k16", "s32.s8.s8.s32", a, b, c, ".satfinite")
    assert np.all(got[:8] == 2**31 - 1)
    assert np.all(got[8:] == -(2**31) + 16 * 127 * 127)
    wrapped = mma("m16n8k16", "s32.s8.s8.s32", a, b, c)
    assert np.all(wrapped[:8] == -(2**31) - 1 + 16 * 127 * 127)


# --- wmma: matrices in memory


SHAPES = ("m16n16k16", "m32n8k16", "m8n32k16")
WMMA = [
    *[(shape, "f16", d, c) for shape in SHAPES for d in ("f16", "f32") for c in ("f16", "f32")],
    *[(shape, "bf16", "f32", "f32") for shape in SHAPES],
    *[(shape, kind, "s32", "s32") for shape in SHAPES for kind in ("s8", "u8")],
    ("m16n16k8", "tf32", "f32", "f32"),
    ("m8n8k4", "f64", "f64", "f64"),
]


def stored(matrix: Array, kind: str, by_row: bool, lead: int) -> Array:
    """In memory, rows (or columns) ``lead`` elements apart."""
    lines = matrix if by_row else matrix.T
    memory = np.zeros((lines.shape[0], lead))
    memory[:, : lines.shape[1]] = lines
    return bits(memory, kind)


@pytest.mark.parametrize("space", ["", ".global"])
@pytest.mark.parametrize("layouts", ["row col row", "col row col", "row row col", "col col row"])
@pytest.mark.parametrize(("shape", "kind", "d_kind", "c_kind"), WMMA)
def test_wmma_multiplies_matrices_in_memory(
    shape: str, kind: str, d_kind: str, c_kind: str, layouts: str, space: str
) -> None:
    m, n, k = sizes(shape)
    word = dict(zip("abc", layouts.split(), strict=True))
    rows = {name: layout == "row" for name, layout in word.items()}
    a, b, c = values(kind, m, k), values(kind, k, n), values("s32", m, n)
    lead = 48
    memory = [
        stored(a, kind, rows["a"], lead),
        stored(b, kind, rows["b"], lead),
        stored(c, c_kind, rows["c"], lead),
        stored(np.zeros((m, n)), d_kind, rows["c"], lead),
    ]
    fragments = registers(
        "%y" if kind == "f64" else "%x",
        [
            8 if kind == "f16" else m * k // LANES * SIZES[kind] // (8 if kind == "f64" else 4),
            8 if kind == "f16" else k * n // LANES * SIZES[kind] // (8 if kind == "f64" else 4),
            m * n // LANES // (2 if c_kind == "f16" else 1),
            m * n // LANES // (2 if d_kind == "f16" else 1),
        ],
    )
    types = f"{d_kind}.{c_kind}" if kind == "f16" else f"{d_kind}.{kind}.{kind}.{c_kind}"
    body = f"mov.u32 %x63, {lead};\n"
    for name, each, fragment in zip("abc", (kind, kind, c_kind), fragments, strict=False):
        body += (
            f"wmma.load.{name}.sync.aligned.{word[name]}.{shape}{space}.{each} {fragment}, [%{name}], %x63;\n"
        )
    body += (
        f"wmma.mma.sync.aligned.{word['a']}.{word['b']}.{shape}.{types} "
        f"{', '.join((fragments[3], *fragments[:3]))};\n"
        f"wmma.store.d.sync.aligned.{word['c']}.{shape}{space}.{d_kind} [%d], {fragments[3]}, %x63;\n"
    )
    got = launch(kernel(["a", "b", "c", "d"], body), memory)[3]
    np.testing.assert_array_equal(got, stored(a @ b + c, d_kind, rows["c"], lead))


@pytest.mark.parametrize(("kind", "lead", "told"), [("f16", 20, [40]), ("f16", 24, []), ("f32", 18, [72])])
def test_a_leading_dimension_that_is_no_multiple_of_16_bytes_is_told(
    kind: str, lead: int, told: list[int]
) -> None:
    load = "a" if kind == "f16" else "c"
    (fragment,) = registers("%x", [8])
    body = f"wmma.load.{load}.sync.aligned.row.m16n16k16.global.{kind} {fragment}, [%d], {lead};"
    with Simulator(Options(threads=1), device_bytes=1 << 22, shared_bytes=1 << 16) as simulator:
        simulator.load_ptx(HEADER + kernel(["d"], body))
        matrix = simulator.allocate(4096)
        simulator.write(matrix, bytes(4096))
        assert simulator.launch("k", (1, 1, 1), (32, 1, 1), [struct.pack("<Q", matrix)])
        findings = simulator.take_findings()
    assert [finding.values["apart"] for finding in findings] == told
    assert {(finding.kind, finding.reason) for finding in findings} <= {("misaligned", "matrix_rows")}


def registers(prefix: str, counts: list[int]) -> list[str]:
    """Lists of registers, numbered through."""
    lists, first = [], 0
    for count in counts:
        lists.append("{" + ", ".join(f"{prefix}{first + n}" for n in range(count)) + "}")
        first += count
    return lists


# --- ldmatrix


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("space", [".shared", ""])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix_hands_rows_round(count: int, space: str, transposed: bool) -> None:
    matrices = RANDOM.integers(0, 1 << 16, (4, 8, 8), dtype=np.uint16)
    out = np.zeros((LANES, count), np.uint32)
    (fragment,) = registers("%x", [count])
    body = """
  mad.wide.u32 %at, %lane, 16, %m;
  ld.global.v4.b32 {%x10, %x11, %x12, %x13}, [%at];
  mov.u32 %x20, tile;
  mad.lo.u32 %x20, %lane, 16, %x20;
  st.shared.v4.b32 [%x20], {%x10, %x11, %x12, %x13};
  bar.warp.sync -1;
  mov.u64 %y0, tile;
  cvta.shared.u64 %y0, %y0;
  mad.wide.u32 %y0, %lane, 16, %y0;
"""
    body += f"ldmatrix.sync.aligned.m8n8.x{count}{'.trans' * transposed}{space}.b16 {fragment}, "
    body += f"[{'%x20' if space else '%y0'}];\nmad.wide.u32 %at, %lane, {4 * count}, %d;\n"
    body += "".join(f"st.global.b32 [%at+{4 * n}], %x{n};\n" for n in range(count))
    got = launch(kernel(["d", "m"], body), [out, matrices])[0]
    for n in range(count):
        matrix = matrices[n].T if transposed else matrices[n]
        np.testing.assert_array_equal(np.ascontiguousarray(got[:, n]).view(np.uint16).reshape(8, 8), matrix)


def test_unknown_shapes_are_refused_by_name() -> None:
    body = "mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32 {%x0, %x1}, {%x2}, {%x3}, {%x0, %x1};"
    with pytest.raises(RefusedError, match=r"mma\.sync\.aligned\.m8n8k32"):
        launch(kernel(["d"], body), [np.zeros(1, np.uint32)])


def test_a_warp_that_is_not_whole_is_told() -> None:
    body = "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%x0, %x1}, {%x2, %x3}, {%x4}, {%x0, %x1};"
    with Simulator(Options(threads=1), device_bytes=1 << 22, shared_bytes=1 << 16) as simulator:
        simulator.load_ptx(HEADER + kernel(["d"], body))
        place = struct.pack("<Q", simulator.allocate(64))
        assert simulator.launch("k", (1, 1, 1), (40, 1, 1), [place])
        (finding,) = simulator.take_findings()
    assert (finding.tool, finding.kind) == ("synccheck", "exited_lanes")
    assert "lane 8 does not exist" in str(sentence(finding))
