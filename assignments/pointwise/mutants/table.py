"""Wrong kernels: each is the reference with one small edit and one reason. All of them must fail.

``group`` is a case group that must fail; ``diagnosis`` a piece of what the judge should say, empty where no
rule is expected to know.
"""

from grader.assignments.mutants import Mutant
from grader.problems.problem import MEMORY_GROUP


def _operator(
    name: str, problem: str, old: str, new: str, why: str, group: str, diagnosis: str = ""
) -> Mutant:
    """An edit of the file of an operator."""
    return Mutant(
        id=f"{problem}-{name}",
        problem=problem,
        file=f"{problem}.cu",
        old=old,
        new=new,
        why=why,
        group=group,
        diagnosis=diagnosis,
    )


def _shared(name: str, old: str, new: str, why: str, group: str) -> Mutant:
    """An edit of what all operators share, judged with ``add``."""
    return Mutant(
        id=f"shared-{name}", problem="add", file="pointwise.cuh", old=old, new=new, why=why, group=group
    )


PLAIN, STRIDES, SMALL = "contiguous tensors", "strides", "empty and small tensors"

MUTANTS = (
    _operator(
        "alpha-on-a",
        "add",
        "a + alpha * b",
        "alpha * a + b",
        "alpha is applied to a",
        PLAIN,
        "alpha is applied to a instead of b",
    ),
    _operator(
        "no-alpha", "add", "a + alpha * b", "a + b", "alpha is left out", PLAIN, "alpha is not applied"
    ),
    _operator(
        "alpha-in-half",
        "add",
        "static_cast<arithmetic<T>>(alpha)",
        "static_cast<arithmetic<T>>(static_cast<T>(alpha))",
        "alpha is rounded to the type of the tensors",
        "float16",
    ),
    _shared(
        "number-in-half",
        "value = from.number;",
        "value = static_cast<arithmetic<T>>(static_cast<T>(from.number));",
        "a number is rounded to the type of the tensors",
        "bfloat16",
    ),
    _shared(
        "integers-in-float",
        "template <> struct Arithmetic<int> {\n  using type = unsigned;",
        "template <> struct Arithmetic<int> {\n  using type = float;",
        "integers travel as floats, which have 24 bits",
        "int32",
    ),
    _shared(
        "long-in-int",
        "template <> struct Arithmetic<long long> {\n  using type = unsigned long long;",
        "template <> struct Arithmetic<long long> {\n  using type = unsigned;",
        "64-bit integers are computed with in 32 bits",
        "int64",
    ),
    _shared(
        "rows-not-aligned",
        "fits = fits && in.strides[d] % width == 0;",
        "fits = fits && in.strides[d] != 0;",
        "packs are loaded where rows begin between them",
        STRIDES,
    ),
    _shared(
        "offset-not-aligned",
        " && reinterpret_cast<uintptr_t>(in.data) % (width * sizeof(T)) == 0",
        "",
        "packs are loaded where an offset breaks them",
        PLAIN,
    ),
    _shared(
        "packs-across-rows",
        "shape.sizes[DIMENSIONS - 1] % WIDTH == 0",
        "shape.sizes[DIMENSIONS - 1] >= WIDTH",
        "a pack goes on behind the end of a row",
        STRIDES,
    ),
    _shared(
        "merged-by-one",
        "in.strides[d] * shape.sizes[d]) && ...",
        "in.strides[d] * shape.sizes[d]) || ...",
        "dimensions are merged where one operand goes on and the other does not",
        "broadcasting",
    ),
    _shared(
        "outer-stride-kept",
        "      (static_cast<void>(in.strides[d - 1] = in.strides[d]), ...);\n",
        "",
        "a merged dimension has the stride of the outer one",
        PLAIN,
    ),
    _shared(
        "past-the-end",
        "min(WIDTH, static_cast<int>(total - begin))",
        "WIDTH",
        "the last pack goes on behind the end",
        MEMORY_GROUP,
    ),
    _shared(
        "default-stream",
        "THREADS, 0, stream>>>",
        "THREADS, 0, nullptr>>>",
        "the kernel runs on the default stream",
        "streams",
    ),
    _shared(
        "empty-launched",
        "  if (shape.count == 0) return;\n",
        "",
        "a grid of no blocks is launched",
        SMALL,
    ),
    _shared(
        "no-offset",
        "operand.data += offsets[k];",
        "operand.data += 0;",
        "the offset is left out",
        PLAIN,
    ),
    _shared(
        "block-in-8-bits",
        "(blockIdx.x * THREADS",
        "((blockIdx.x & 0xff) * THREADS",
        "a block's number is kept in 8 bits",
        "many elements",
    ),
    _operator(
        "swapped",
        "sub",
        "a - alpha * b",
        "b - alpha * a",
        "operands are swapped",
        PLAIN,
        "a and b are swapped",
    ),
    _operator(
        "in-float",
        "sub",
        "a - alpha * b",
        "static_cast<A>(float(a) - float(alpha) * float(b))",
        "everything is computed in float32",
        "float64",
    ),
    _operator("sum", "mul", "return a * b;", "return a + b;", "added", PLAIN, "a and b are added"),
    _operator(
        "number-ignored",
        "mul",
        "operand(b, b_number)",
        "operand(b, a_number)",
        "the number of b is that of a",
        "a number and a tensor",
    ),
    _operator(
        "swapped", "where", "condition ? a : b", "condition ? b : a", "swapped", PLAIN, "a and b are swapped"
    ),
    _operator(
        "arithmetic",
        "where",
        "condition ? a : b",
        "A(condition) * a + A(!condition) * b",
        "what is not chosen counts: NaN times 0 is NaN",
        "special values",
    ),
    _operator(
        "one-formula",
        "lerp",
        "b - (b - a) * (A(1) - weight)",
        "a + weight * (b - a)",
        "one formula for all weights, which is not b at weight 1",
        PLAIN,
        "one formula is used for all weights",
    ),
    _operator(
        "half-with-a",
        "lerp",
        "weight < A(0.5)",
        "weight <= A(0.5)",
        "weight 0.5 belongs to the other formula",
        "special values",
    ),
)
