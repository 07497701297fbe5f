"""Wrong kernels: each has to fail."""

from grader.assignments.mutants import Mutant


def mutant(name, problem, old, new, why, group="small sizes"):
    return Mutant(id=name, problem=problem, file=f"{problem}.cu", old=old, new=new, why=why, group=group)


MUTANTS = (
    mutant("axes", "particles", "axis < 3", "axis < 2", "the third axis stays"),
    mutant(
        "guard",
        "particles",
        "if (i >= n) return;",
        "if (i > n) return;",
        "a particle behind the last",
        "memory and concurrency",
    ),
    mutant(
        "weight",
        "particles",
        "particle = particles[i];",
        "particle = particles[i];\n  particle.weight += 1;",
        "a field changes that must not",
    ),
    mutant("drag", "particles", "1 - step.drag", "1 - step.dt", "another field of the struct that is passed"),
    mutant("left", "int8_product", "k / 4", "k / 8", "half of each row is left out"),
    mutant(
        "unsigned",
        "int8_product",
        "__dp4a(left[i], right[i], sum)",
        "__dp4a((unsigned)left[i], (unsigned)right[i], (unsigned)sum)",
        "numbers below 0 are taken for large ones",
    ),
    mutant(
        "turned",
        "int8_product",
        "(size_t)column * k",
        "(size_t)row * k",
        "the rows of a are multiplied with each other",
    ),
    mutant("order", "jds", "y[order[i]]", "y[i]", "rows stay in the order of their lengths"),
    mutant("last", "jds", "diagonal < longest", "diagonal < longest - 1", "the last diagonal is left out"),
    mutant(
        "end",
        "jds",
        "if (entry >= begin[diagonal + 1]) break;",
        "",
        "shorter diagonals are read beyond their ends",
    ),
    mutant(
        "fill",
        "tensor_cores",
        "wmma::fill_fragment(sum, 0.0f)",
        "wmma::fill_fragment(sum, 1.0f)",
        "sums begin at 1",
    ),
    mutant("step", "tensor_cores", "step < k", "step < k - 16", "the last tile is left out"),
    mutant(
        "columns",
        "tensor_cores",
        "(size_t)step * n + column",
        "(size_t)step * k + column",
        "rows of b have another length",
    ),
    mutant(
        "clear",
        "histogram",
        "cudaMemsetAsync(bins, 0, count * sizeof(unsigned int), stream);",
        "cudaMemsetAsync(bins, 0, count, stream);",
        "a quarter of the bins is set to 0",
    ),
    mutant(
        "race",
        "histogram",
        "atomicAdd(&own[x[i]], 1u)",
        "own[x[i]]++",
        "counts are lost",
        "memory and concurrency",
    ),
    mutant(
        "few",
        "histogram",
        "i < n; i += gridDim.x * blockDim.x",
        "i < n; i += n",
        "a thread counts one number alone",
        "values",
    ),
    mutant("unscaled", "fp8_product", "sum * scale", "sum", "the scale is left out"),
    mutant("shorter", "fp8_product", "i < k;", "i < k - 1;", "the last term is left out"),
    mutant(
        "narrow",
        "fp8_product",
        "sum += float(a[(size_t)row * k + i])",
        "sum = float(__nv_fp8_e5m2(sum)) + float(a[(size_t)row * k + i])",
        "the sum is kept in eight bits",
    ),
    mutant("opacity", "pixels", "f.w / 255.0f)", "1.0f)", "the opacity is left out"),
    mutant("order", "pixels", "d.x, d.y, d.z, d.x", "d.z, d.y, d.x, d.x", "red and blue are exchanged"),
    mutant(
        "bytes",
        "pixels",
        "const int3 d = make_int3",
        "const char3 d = make_char3",
        "differences are kept in eight bits",
    ),
    mutant(
        "stride",
        "pixels",
        "const uchar3 b = behind[i];",
        "const uchar4 four = ((const uchar4*)behind)[i];\n  const uchar3 b = {four.x, four.y, four.z};",
        "pixels of the background are taken for four bytes",
        "memory and concurrency",
    ),
)
