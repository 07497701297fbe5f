"""Writes the kernels of an operator, one for each element type and kind of operands.

    python assignments/pointwise/codegen/generate.py

writes ``variants/OPERATOR/codegen.cu`` for every operator: the other side of the argument. A submission is
built by nvcc alone, so that what a generator has written is handed in, not the generator.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path

VARIANTS = Path(__file__).parents[1] / "variants"
DIMENSIONS = 5


@dataclass(frozen=True)
class Type:
    """An element type: how C++ calls it, what is computed with and what a number is passed as."""

    name: str
    stored: str
    arithmetic: str
    number: str


@dataclass(frozen=True)
class Operator:
    """An operator as text: its operands in order, those that may be numbers, further numbers, expression."""

    name: str
    operands: tuple[str, ...]
    numbers: tuple[str, ...]
    scalars: tuple[str, ...]
    expression: str
    types: tuple[Type, ...]


FLOATS = (
    Type("float16", "__half", "float", "float"),
    Type("bfloat16", "__nv_bfloat16", "float", "float"),
    Type("float32", "float", "float", "float"),
    Type("float64", "double", "double", "double"),
)
TYPES = (
    *FLOATS,
    Type("int32", "int", "unsigned", "int"),
    Type("int64", "long long", "unsigned long long", "long long"),
)
TWO = ("a", "b")
OPERATORS = (
    Operator("add", TWO, TWO, ("alpha",), "a + alpha * b", TYPES),
    Operator("sub", TWO, TWO, ("alpha",), "a - alpha * b", TYPES),
    Operator("mul", TWO, TWO, (), "a * b", TYPES),
    Operator("where", ("condition", "a", "b"), TWO, (), "condition ? a : b", TYPES),
    Operator(
        "lerp",
        ("a", "b", "weight"),
        ("weight",),
        (),
        "fabs(weight) < 0.5f ? a + weight * (b - a) : b - (b - a) * (1 - weight)",
        FLOATS,
    ),
)

PREAMBLE = """\
// Written by codegen/generate.py: a kernel for each element type and kind of operands.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

struct Strides {{
  long long sizes[{dimensions}], of[{operands}][{dimensions}];
}};
"""
KERNEL = """
__global__ void ker_{name}({parameters}, Strides strides, long long count) {{
  const long long i = blockIdx.x * 256LL + threadIdx.x;
  if (i >= count) return;
{places}{loads}  out[i] = static_cast<{stored}>({expression});
}}
"""
PLACES = """\
  long long rest = i{zeros};
  for (int d = {last}; d >= 0; --d) {{
    const long long place = rest % strides.sizes[d];
    rest /= strides.sizes[d];
{steps}  }}
"""
LAUNCHER = """
extern "C" void launch_{entry}({parameters}, int dimensions, const long long* sizes,
    const long long* strides, const long long* offsets, cudaStream_t stream) {{
  Strides all{{}};
  long long count = 1;
  bool {flags};
  for (int d = {last}; d >= 0; --d) {{
    const int from = d - {last} - 1 + dimensions;
    all.sizes[d] = from < 0 ? 1 : sizes[from];
    for (int k = 0; k < {operands}; ++k) all.of[k][d] = from < 0 ? 0 : strides[k * dimensions + from];
{checks}    count *= all.sizes[d];
  }}
  if (count == 0) return;
  const unsigned blocks = static_cast<unsigned>((count + 255) / 256);
{branches}}}
"""


def kernel(operator: Operator, of: Type, numbers: frozenset[str], *, flat: bool) -> tuple[str, str]:
    """Name and text of one kernel: ``numbers`` are operands that are numbers, the others arrays."""
    arrays = [name for name in operator.operands if name not in numbers]
    name = "_".join((of.name, *sorted(numbers), "flat" if flat else "strided"))
    parameters = [f"{of.stored}* out", *(f"const {stored(one, of)}* {one}_data" for one in arrays)]
    parameters += [f"{of.arithmetic} {one}" for one in (*sorted(numbers), *operator.scalars)]
    steps = "".join(
        f"    {one}_place += place * strides.of[{operator.operands.index(one)}][d];\n" for one in arrays
    )
    places = PLACES.format(
        zeros="".join(f", {one}_place = 0" for one in arrays), last=DIMENSIONS - 1, steps=steps
    )
    loads = "".join(
        f"  const {computed(one, of)} {one} = static_cast<{computed(one, of)}>"
        f"({one}_data[{'i' if flat else f'{one}_place'}]);\n"
        for one in arrays
    )
    text = KERNEL.format(
        name=name,
        parameters=", ".join(parameters),
        places="" if flat else places,
        loads=loads,
        stored=of.stored,
        expression=operator.expression,
    )
    return name, text


def stored(operand: str, of: Type) -> str:
    """What an operand's array holds."""
    return "bool" if operand == "condition" else of.stored


def computed(operand: str, of: Type) -> str:
    """What an operand is computed with."""
    return "bool" if operand == "condition" else of.arithmetic


def of_type(operator: Operator, of: Type) -> str:
    """The kernels of one element type, and the launcher that chooses between them."""
    sets = [frozenset(), *(frozenset({one}) for one in operator.numbers)]
    kernels, branches = [], []
    for numbers, flat in product(sets, (True, False)):
        name, text = kernel(operator, of, numbers, flat=flat)
        kernels.append(text)
        arrays = [(k, one) for k, one in enumerate(operator.operands) if one not in numbers]
        tests = [f"{one} != nullptr" for _, one in arrays if one in operator.numbers]
        tests += [f"flat_{one}" for _, one in arrays] if flat else []
        given = ["out", *(f"{one} + offsets[{k}]" for k, one in arrays)]
        given += [f"{one}_number" for one in sorted(numbers)] + [*operator.scalars]
        call = f"return ker_{name}<<<blocks, 256, 0, stream>>>({', '.join(given)}, all, count);"
        branches.append(f"  if ({' && '.join(tests) or 'true'}) {call}\n")
    parameters = [f"{of.stored}* out", *(f"const {stored(one, of)}* {one}" for one in operator.operands)]
    parameters += [f"{of.number} {one}_number" for one in operator.numbers]
    parameters += [f"{of.number} {one}" for one in operator.scalars]
    checks = "".join(
        f"    flat_{one} = flat_{one} && (all.sizes[d] == 1 || all.of[{k}][d] == count);\n"
        for k, one in enumerate(operator.operands)
    )
    launcher = LAUNCHER.format(
        entry=f"{operator.name}_{of.name}",
        parameters=", ".join(parameters),
        last=DIMENSIONS - 1,
        operands=len(operator.operands),
        checks=checks,
        flags=", ".join(f"flat_{one} = true" for one in operator.operands),
        branches="".join(branches),
    )
    return "".join(kernels) + launcher


def generated(operator: Operator) -> str:
    """The whole file of an operator."""
    preamble = PREAMBLE.format(dimensions=DIMENSIONS, operands=len(operator.operands))
    return preamble + "".join(of_type(operator, of) for of in operator.types)


if __name__ == "__main__":
    for operator in OPERATORS:
        (VARIANTS / operator.name / "codegen.cu").write_text(generated(operator), encoding="utf-8")
