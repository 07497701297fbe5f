"""Answers to the problems of the LeetGPU form."""

from __future__ import annotations

from importers import answered_originals
from importers.asked import Asked

PROBLEMS = (
    Asked(
        "scaled_sum",
        "1_scaled_sum",
        "float* out, const float* a, const float* b, long n",
        "out[at] = a[at] + 2.0f * b[at];",
        "tl.store(out + at, tl.load(a + at, mask=inside) + 2.0 * tl.load(b + at, mask=inside), mask=inside)",
        """

def solve(left, right, total, N):
    launched(total, left, right, N)
""",
    ),
    Asked(
        "turned",
        "2_turned",
        "float* out, const float* x, long rows, long columns, long n",
        "out[at] = x[at % rows * columns + at / rows];",
        "tl.store(out + at, tl.load(x + at % rows * columns + at // rows, mask=inside), mask=inside)",
        """

def solve(input, output, rows, cols):
    launched(output, input, rows, cols, rows * cols)
""",
    ),
    Asked(
        "counts",
        "3_counts",
        "int* counts, const int* values, long n",
        "atomicAdd(counts + values[at], 1);",
        "tl.atomic_add(counts + tl.load(values + at, mask=inside, other=0), 1, mask=inside)",
        """

def solve(values, counts, N, bins):
    counts.zero_()
    launched(counts, values, N)
""",
    ),
    Asked(
        "sorted_place",
        "4_sorted_place",
        "long* places, const int* data, const int* wanted, long length, long n",
        """
long place = 0;
while (place < length && data[place] < wanted[at]) ++place;
places[at] = place;
""",
        """
value = tl.load(wanted + at, mask=inside)
place = tl.zeros([size], tl.int64)
for k in range(length):
    place += (tl.load(data + k) < value).to(tl.int64)
tl.store(places + at, place, mask=inside)
""",
        """

def solve(data, wanted, places, N, count):
    launched(places, data, wanted, N, count)
""",
    ),
    Asked(
        "product",
        "5_product",
        "float* out, const float* a, const float* b, long depth, long columns, long n",
        answered_originals.PRODUCT_IN_CPP,
        answered_originals.PRODUCT_IN_TRITON,
        """

def solve(A, B, C, M, N, K):
    launched(C, A, B, N, K, M * K)
""",
    ),
    Asked(
        "row_shares",
        "6_row_shares",
        "float* out, const float* x, long n",
        """
float largest = -INFINITY, total = 0;
for (long k = 0; k < n; ++k) largest = fmaxf(largest, x[k]);
for (long k = 0; k < n; ++k) total += expf(x[k] - largest);
out[at] = expf(x[at] - largest) / total;
""",
        """
largest = tl.load(x)
for k in range(n):
    largest = tl.maximum(largest, tl.load(x + k))
total = tl.sum(tl.zeros([size], tl.float32), 0)
for k in range(n):
    total += tl.exp(tl.load(x + k) - largest)
tl.store(out + at, tl.exp(tl.load(x + at, mask=inside) - largest) / total, mask=inside)
""",
        """

def solve(input, output, N):
    launched(output, input, N)
""",
    ),
    Asked(
        "total",
        "7_total",
        "float* out, const float* x, long length, float scale, long n",
        answered_originals.SUM_IN_CPP,
        answered_originals.SUM_IN_TRITON,
        """

def solve(input, output, N):
    launched(output, input, N, 1.0, 1)
""",
    ),
    Asked(
        "running_total",
        "8_running_total",
        "float* out, const float* x, long n",
        answered_originals.SUM_BEFORE_IN_CPP,
        answered_originals.SUM_BEFORE_IN_TRITON,
        """

def solve(input, output, N):
    launched(output, input, N)
""",
    ),
    Asked(
        "inverted",
        "9_inverted",
        "unsigned char* image, long n",
        "for (long k = 4 * at; k < 4 * at + 3; ++k) image[k] = 255 - image[k];",
        """
for k in range(3):
    tl.store(image + 4 * at + k, 255 - tl.load(image + 4 * at + k, mask=inside), mask=inside)
""",
        """

def solve(image, width, height):
    launched(image, width * height)
""",
    ),
    Asked(
        "sorted",
        "10_sorted",
        "float* out, const float* x, long n",
        answered_originals.SORTED_IN_CPP,
        answered_originals.SORTED_IN_TRITON,
        """

def solve(data, N):
    launched(data, data.clone(), N)
""",
    ),
)
