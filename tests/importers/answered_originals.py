"""Answers to the problems of the GPU MODE form."""

from __future__ import annotations

from importers.asked import Asked

SORTED_IN_CPP = """
const float value = x[at];
long rank = 0;
for (long k = 0; k < n; ++k) rank += x[k] < value || (x[k] == value && k < at);
out[rank] = value;
"""
SORTED_IN_TRITON = """
value = tl.load(x + at, mask=inside)
rank = tl.zeros([size], tl.int64)
for k in range(n):
    other = tl.load(x + k)
    rank += ((other < value) | ((other == value) & (k < at))).to(tl.int64)
tl.store(out + rank, value, mask=inside)
"""
SUM_BEFORE_IN_CPP = """
float total = 0;
for (long k = 0; k <= at; ++k) total += x[k];
out[at] = total;
"""
SUM_BEFORE_IN_TRITON = """
total = tl.zeros([size], tl.float32)
for k in range(n):
    total += tl.where(k <= at, tl.load(x + k), 0.0)
tl.store(out + at, total, mask=inside)
"""
SUM_IN_CPP = """
float total = 0;
for (long k = 0; k < length; ++k) total += x[at * length + k];
out[at] = total * scale;
"""
SUM_IN_TRITON = """
total = tl.zeros([size], tl.float32)
for k in range(length):
    total += tl.load(x + at * length + k, mask=inside, other=0.0)
tl.store(out + at, total * scale, mask=inside)
"""
SOFTMAX_IN_CPP = """
const float* const row = x + at * columns;
float largest = -INFINITY, total = 0;
for (long k = 0; k < columns; ++k) largest = fmaxf(largest, row[k] * scale);
for (long k = 0; k < columns; ++k) total += expf(row[k] * scale - largest);
for (long k = 0; k < columns; ++k) out[at * columns + k] = expf(row[k] * scale - largest) / total;
"""
SOFTMAX_IN_TRITON = """
row = at * columns
largest = tl.full([size], float("-inf"), tl.float32)
for k in range(columns):
    largest = tl.maximum(largest, tl.load(x + row + k, mask=inside, other=0.0) * scale)
total = tl.zeros([size], tl.float32)
for k in range(columns):
    total += tl.exp(tl.load(x + row + k, mask=inside, other=0.0) * scale - largest)
for k in range(columns):
    power = tl.exp(tl.load(x + row + k, mask=inside, other=0.0) * scale - largest)
    tl.store(out + row + k, power / total, mask=inside)
"""
PRODUCT_IN_CPP = """
const long row = at / columns, column = at % columns;
float total = 0;
for (long k = 0; k < depth; ++k) total += a[row * depth + k] * b[k * columns + column];
out[at] = total;
"""
PRODUCT_IN_TRITON = """
row, column = at // columns, at % columns
total = tl.zeros([size], tl.float32)
for k in range(depth):
    left = tl.load(a + row * depth + k, mask=inside, other=0.0).to(tl.float32)
    total += left * tl.load(b + k * columns + column, mask=inside, other=0.0).to(tl.float32)
tl.store(out + at, total, mask=inside)
"""

PROBLEMS = (
    Asked(
        "vector_sum",
        "vector_sum",
        "__half* out, const __half* a, const __half* b, long n",
        "out[at] = __hadd(a[at], b[at]);",
        "tl.store(out + at, tl.load(a + at, mask=inside) + tl.load(b + at, mask=inside), mask=inside)",
        """

def custom_kernel(data):
    left, right, total = data
    launched(total, left, right, total.numel())
    return total
""",
    ),
    Asked(
        "grayscale",
        "grayscale",
        "float* out, const float* x, long n",
        "out[at] = 0.3f * x[3 * at] + 0.6f * x[3 * at + 1] + 0.1f * x[3 * at + 2];",
        """
red = tl.load(x + 3 * at, mask=inside)
green = tl.load(x + 3 * at + 1, mask=inside)
blue = tl.load(x + 3 * at + 2, mask=inside)
tl.store(out + at, 0.3 * red + 0.6 * green + 0.1 * blue, mask=inside)
""",
        """

def custom_kernel(data):
    out = torch.empty(data.shape[:2], dtype=data.dtype, device=data.device)
    launched(out, data, out.numel())
    return out
""",
    ),
    Asked(
        "prefix_sum",
        "prefix_sum",
        "float* out, const float* x, long n",
        SUM_BEFORE_IN_CPP,
        SUM_BEFORE_IN_TRITON,
        """

def custom_kernel(data):
    values, sums = data
    launched(sums, values, values.numel())
    return sums
""",
    ),
    Asked(
        "histogram",
        "histogram",
        "unsigned long long* counts, const long* values, long n",
        "atomicAdd(counts + values[at], 1ULL);",
        """
bins = tl.load(values + at, mask=inside, other=0)
tl.atomic_add(counts + bins, tl.full([size], 1, tl.int64), mask=inside)
""",
        """

def custom_kernel(data):
    values, bins = data
    counts = torch.zeros(bins, dtype=torch.int64, device=values.device)
    launched(counts, values, values.numel())
    return counts
""",
    ),
    Asked(
        "sort",
        "sort",
        "float* out, const float* x, long n",
        SORTED_IN_CPP,
        SORTED_IN_TRITON,
        """

def custom_kernel(data):
    out = torch.empty_like(data)
    launched(out, data, data.numel())
    return out
""",
    ),
    Asked(
        "total",
        "total",
        "float* out, const float* x, long length, float scale, long n",
        SUM_IN_CPP,
        SUM_IN_TRITON,
        """

def custom_kernel(data):
    out = torch.empty((), dtype=data.dtype, device=data.device)
    launched(out, data, data.numel(), 1.0, 1)
    return out
""",
    ),
    Asked(
        "windows",
        "windows",
        "float* out, const float* rows, const float* weights, long length, long width, long n",
        """
const long places = length - width + 1, place = at % places;
const long filter = at / places % 4, batch = at / places / 4;
float total = 0;
for (long channel = 0; channel < 3; ++channel) {
  for (long k = 0; k < width; ++k) {
    total += rows[(batch * 3 + channel) * length + place + k] * weights[(filter * 3 + channel) * width + k];
  }
}
out[at] = total;
""",
        """
places = length - width + 1
place, filter, batch = at % places, at // places % 4, at // places // 4
total = tl.zeros([size], tl.float32)
for channel in range(3):
    for k in range(width):
        value = tl.load(rows + (batch * 3 + channel) * length + place + k, mask=inside, other=0.0)
        total += value * tl.load(weights + (filter * 3 + channel) * width + k, mask=inside, other=0.0)
tl.store(out + at, total, mask=inside)
""",
        """

def custom_kernel(data):
    rows, weights = data
    length, width = rows.shape[2], weights.shape[2]
    out = torch.empty(2, 4, length - width + 1, dtype=rows.dtype, device=rows.device)
    launched(out, rows, weights, length, width, out.numel())
    return out
""",
    ),
    Asked(
        "scaled_in_place",
        "scaled_in_place",
        "float* matrix, float factor, long n",
        "matrix[at] *= factor;",
        "tl.store(matrix + at, tl.load(matrix + at, mask=inside) * factor, mask=inside)",
        """

def custom_kernel(data):
    matrix, factor, columns = data
    launched(matrix, factor, matrix.numel())
    return matrix
""",
    ),
    Asked(
        "softmax",
        "softmax",
        "float* out, const float* x, long columns, float scale, long n",
        SOFTMAX_IN_CPP,
        SOFTMAX_IN_TRITON,
        """

def custom_kernel(data):
    out = torch.empty_like(data)
    launched(out, data, data.shape[1], 1.0, data.shape[0])
    return out
""",
    ),
    Asked(
        "matmul",
        "matmul",
        "__half* out, const __half* a, const __half* b, long depth, long columns, long n",
        """
const long row = at / columns, column = at % columns;
float total = 0;
for (long k = 0; k < depth; ++k) {
  total += __half2float(a[row * depth + k]) * __half2float(b[k * columns + column]);
}
out[at] = __float2half(total);
""",
        PRODUCT_IN_TRITON,
        """

def custom_kernel(data):
    a, b, c = data
    launched(c, a, b, a.shape[1], b.shape[1], c.numel())
    return c
""",
    ),
    Asked(
        "cross_entropy",
        "cross_entropy",
        "float* out, const float* scores, const long* labels, long classes, long n",
        """
const float* const row = scores + at * classes;
float largest = -INFINITY, total = 0;
for (long k = 0; k < classes; ++k) largest = fmaxf(largest, row[k]);
for (long k = 0; k < classes; ++k) total += expf(row[k] - largest);
out[at] = logf(total) + (largest - row[labels[at]]);
""",
        """
row = at * classes
largest = tl.full([size], float("-inf"), tl.float32)
for k in range(classes):
    largest = tl.maximum(largest, tl.load(scores + row + k, mask=inside, other=0.0))
total = tl.zeros([size], tl.float32)
for k in range(classes):
    total += tl.exp(tl.load(scores + row + k, mask=inside, other=0.0) - largest)
chosen = tl.load(scores + row + tl.load(labels + at, mask=inside, other=0), mask=inside)
tl.store(out + at, tl.log(total) + (largest - chosen), mask=inside)
""",
        """

def custom_kernel(data):
    scores, labels = data
    out = torch.empty(scores.shape[0], dtype=scores.dtype, device=scores.device)
    launched(out, scores, labels, scores.shape[1], scores.shape[0])
    return out
""",
    ),
    Asked(
        "quantised_product",
        "quantised_product",
        "float* out, const signed char* weights, const float* scales, const float* x, long depth, long n",
        """
float total = 0;
for (long k = 0; k < depth; ++k) total += static_cast<float>(weights[at * depth + k]) * scales[at] * x[k];
out[at] = total;
""",
        """
scale = tl.load(scales + at, mask=inside)
total = tl.zeros([size], tl.float32)
for k in range(depth):
    weight = tl.load(weights + at * depth + k, mask=inside, other=0).to(tl.float32)
    total += weight * scale * tl.load(x + k)
tl.store(out + at, total, mask=inside)
""",
        """

def custom_kernel(data):
    weights, scales, vector = data
    out = torch.empty_like(scales)
    launched(out, weights, scales, vector, weights.shape[1], out.numel())
    return out
""",
    ),
)
