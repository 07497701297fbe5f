"""Answers to the problems of the KernelBench form."""

from __future__ import annotations

from importers import answered_originals
from importers.asked import Asked


def _class(forward: str, initial: str = "", kept: str = "") -> str:
    """The text of a class whose ``forward`` is given by its parameters and, behind a colon, its lines."""
    parameters, _, lines = forward.partition(":")
    made = [f"    def __init__(self{initial and ', '}{initial}):", "        super().__init__()"]
    made += [f"        self.{kept}", ""] if kept else [""]
    body = [f"        {line}" for line in lines.strip("\n").split("\n")]
    head = ["", "", "class ModelNew(torch.nn.Module):", *(made if initial else [])]
    return "\n".join([*head, f"    def forward(self, {parameters}):", *body, ""])


PROBLEMS = (
    Asked(
        "gated",
        "1_gated",
        "float* out, const float* a, const float* b, long n",
        "out[at] = a[at] / (1.0f + expf(-b[at]));",
        """
gate = tl.sigmoid(tl.load(b + at, mask=inside))
tl.store(out + at, tl.load(a + at, mask=inside) * gate, mask=inside)
""",
        _class("""x, gate:
out = torch.empty_like(x)
launched(out, x, gate, out.numel())
return out
"""),
    ),
    Asked(
        "scaled_softmax",
        "2_scaled_softmax",
        "float* out, const float* x, long columns, float scale, long n",
        answered_originals.SOFTMAX_IN_CPP,
        answered_originals.SOFTMAX_IN_TRITON,
        _class(
            """x:
out = torch.empty_like(x)
launched(out, x, x.shape[1], self.scale, x.shape[0])
return out
""",
            "scale",
            "scale = scale",
        ),
    ),
    Asked(
        "folded",
        "3_folded",
        "float* out, const float* x, long length, float scale, long n",
        answered_originals.SUM_IN_CPP,
        answered_originals.SUM_IN_TRITON,
        _class(
            """x:
rows, features = x.shape
out = torch.empty(rows, self.groups, dtype=x.dtype, device=x.device)
launched(out, x, features // self.groups, 1.0, out.numel())
return out
""",
            "groups",
            "groups = groups",
        ),
    ),
    Asked(
        "linear",
        "4_linear",
        "float* out, const float* x, const float* weight, const float* bias, long features, long n",
        """
const long row = at / features, feature = at % features;
float total = 0;
for (long k = 0; k < features; ++k) total += x[row * features + k] * weight[feature * features + k];
out[at] = total + bias[feature];
""",
        """
row, feature = at // features, at % features
total = tl.zeros([size], tl.float32)
for k in range(features):
    value = tl.load(x + row * features + k, mask=inside, other=0.0)
    total += value * tl.load(weight + feature * features + k, mask=inside, other=0.0)
tl.store(out + at, total + tl.load(bias + feature, mask=inside, other=0.0), mask=inside)
""",
        _class(
            """x:
out = torch.empty_like(x)
launched(out, x, self.linear.weight.detach(), self.linear.bias.detach(), x.shape[1], out.numel())
return out
""",
            "features",
            "linear = torch.nn.Linear(features, features)",
        ),
    ),
    Asked(
        "product",
        "5_product",
        "float* out, const float* a, const float* b, long depth, long columns, long n",
        answered_originals.PRODUCT_IN_CPP,
        answered_originals.PRODUCT_IN_TRITON,
        _class("""A, B:
out = torch.empty(A.shape[0], B.shape[1], dtype=A.dtype, device=A.device)
launched(out, A, B, A.shape[1], B.shape[1], out.numel())
return out
"""),
    ),
    Asked(
        "leaky",
        "6_leaky",
        "float* out, const float* x, float slope, long n",
        "out[at] = x[at] < 0 ? x[at] * slope : x[at];",
        """
value = tl.load(x + at, mask=inside)
tl.store(out + at, tl.where(value < 0, value * slope, value), mask=inside)
""",
        _class("""x:
out = torch.empty_like(x)
launched(out, x, 0.01, out.numel())
return out
"""),
    ),
    Asked(
        "mean_over",
        "7_mean_over",
        "float* out, const float* x, long rows, long columns, long n",
        """
const float* const first = x + at / columns * rows * columns + at % columns;
float total = 0;
for (long k = 0; k < rows; ++k) total += first[k * columns];
out[at] = total / static_cast<float>(rows);
""",
        """
first = at // columns * rows * columns + at % columns
total = tl.zeros([size], tl.float32)
for k in range(rows):
    total += tl.load(x + first + k * columns, mask=inside, other=0.0)
tl.store(out + at, total / rows, mask=inside)
""",
        _class(
            """x:
batch, rows, columns = x.shape
out = torch.empty(batch, columns, dtype=x.dtype, device=x.device)
launched(out, x, rows, columns, out.numel())
return out
""",
            "dim",
            "dim = dim",
        ),
    ),
    Asked(
        "running_total",
        "8_running_total",
        "float* out, const float* x, long length, long n",
        """
float total = 0;
for (long k = 0; k < length; ++k) out[at * length + k] = total += x[at * length + k];
""",
        """
total = tl.zeros([size], tl.float32)
for k in range(length):
    total += tl.load(x + at * length + k, mask=inside, other=0.0)
    tl.store(out + at * length + k, total, mask=inside)
""",
        _class(
            """x:
out = torch.empty_like(x)
launched(out, x, x.shape[1], x.shape[0])
return out
""",
            "dim",
            "dim = dim",
        ),
    ),
    Asked(
        "error",
        "9_error",
        "float* out, const float* a, const float* b, long squares, long length, float scale, long n",
        """
float total = 0;
for (long k = at * length; k < (at + 1) * length; ++k) {
  total += squares ? (a[k] - b[k]) * (a[k] - b[k]) : a[k];
}
out[at] = total * scale;
""",
        """
total = tl.zeros([size], tl.float32)
for k in range(length):
    first = tl.load(a + at * length + k, mask=inside, other=0.0)
    apart = first - tl.load(b + at * length + k, mask=inside, other=0.0)
    total += tl.where(squares != 0, apart * apart, first)
tl.store(out + at, total * scale, mask=inside)
""",
        _class("""predictions, targets:
rows, columns = predictions.shape
sums = torch.empty(rows, dtype=predictions.dtype, device=predictions.device)
launched(sums, predictions, targets, 1, columns, 1.0, rows)
out = torch.empty((), dtype=predictions.dtype, device=predictions.device)
launched(out, sums, sums, 0, rows, 1.0 / (rows * columns), 1)
return out
"""),
    ),
    Asked(
        "largest_place",
        "10_largest_place",
        "long* out, const float* x, long columns, long n",
        """
long largest = 0;
for (long k = 1; k < columns; ++k) {
  if (x[at * columns + k] > x[at * columns + largest]) largest = k;
}
out[at] = largest;
""",
        """
place = tl.zeros([size], tl.int64)
largest = tl.load(x + at * columns, mask=inside, other=0.0)
for k in range(1, columns):
    value = tl.load(x + at * columns + k, mask=inside, other=0.0)
    place = tl.where(value > largest, k, place)
    largest = tl.maximum(largest, value)
tl.store(out + at, place, mask=inside)
""",
        _class("""x:
out = torch.empty(x.shape[0], dtype=torch.int64, device=x.device)
launched(out, x, x.shape[1], x.shape[0])
return out
"""),
    ),
    Asked(
        "normed",
        "11_normed",
        "float* out, const float* x, long columns, float eps, long n",
        """
const float* const row = x + at * columns;
float total = 0;
for (long k = 0; k < columns; ++k) total += row[k] * row[k];
const float root = sqrtf(total / static_cast<float>(columns) + eps);
for (long k = 0; k < columns; ++k) out[at * columns + k] = row[k] / root;
""",
        """
row = at * columns
total = tl.zeros([size], tl.float32)
for k in range(columns):
    value = tl.load(x + row + k, mask=inside, other=0.0)
    total += value * value
root = tl.sqrt(total / columns + eps)
for k in range(columns):
    tl.store(out + row + k, tl.load(x + row + k, mask=inside, other=0.0) / root, mask=inside)
""",
        _class(
            """x:
out = torch.empty_like(x)
launched(out, x, x.shape[1], self.eps, x.shape[0])
return out
""",
            "eps",
            "eps = eps",
        ),
    ),
    Asked(
        "convolved",
        "11_convolved",
        "float* out, const float* x, const float* weight, const float* bias, "
        "long channels, long filters, long height, long width, long n",
        """
const long column = at % width, row = at / width % height;
const long filter = at / width / height % filters, image = at / width / height / filters;
float total = bias[filter];
for (long k = 0; k < channels * 9; ++k) {
  const long channel = k / 9, down = row + k % 9 / 3 - 1, right = column + k % 3 - 1;
  if (down < 0 || down >= height || right < 0 || right >= width) continue;
  const float value = x[((image * channels + channel) * height + down) * width + right];
  total += value * weight[filter * channels * 9 + k];
}
out[at] = fmaxf(total, 0.0f);
""",
        """
column, row = at % width, at // width % height
filter, image = at // width // height % filters, at // width // height // filters
total = tl.load(bias + filter, mask=inside, other=0.0)
for k in range(channels * 9):
    channel, down, right = k // 9, row + k % 9 // 3 - 1, column + k % 3 - 1
    there = inside & (down >= 0) & (down < height) & (right >= 0) & (right < width)
    value = tl.load(x + ((image * channels + channel) * height + down) * width + right, mask=there, other=0.0)
    total += value * tl.load(weight + filter * channels * 9 + k, mask=inside, other=0.0)
tl.store(out + at, tl.maximum(total, 0.0), mask=inside)
""",
        _class(
            """image:
batch, channels, height, width = image.shape
conv = self.layers[0]
filters = conv.weight.shape[0]
out = torch.empty(batch, filters, height, width, dtype=image.dtype, device=image.device)
weight, bias = conv.weight.detach(), conv.bias.detach()
launched(out, image, weight, bias, channels, filters, height, width, out.numel())
return out
""",
            "channels, filters",
            "layers = torch.nn.Sequential(torch.nn.Conv2d(channels, filters, 3, padding=1), torch.nn.ReLU())",
        ),
    ),
    Asked(
        "layer_norm",
        "12_layer_norm",
        "float* out, const float* x, const float* weight, const float* bias, long columns, long n",
        """
const float* const row = x + at * columns;
const float length = static_cast<float>(columns);
float mean = 0, variance = 0;
for (long k = 0; k < columns; ++k) mean += row[k] / length;
for (long k = 0; k < columns; ++k) variance += (row[k] - mean) * (row[k] - mean) / length;
const float root = sqrtf(variance + 1e-5f);
for (long k = 0; k < columns; ++k) out[at * columns + k] = (row[k] - mean) / root * weight[k] + bias[k];
""",
        """
row = at * columns
mean = tl.zeros([size], tl.float32)
for k in range(columns):
    mean += tl.load(x + row + k, mask=inside, other=0.0) / columns
variance = tl.zeros([size], tl.float32)
for k in range(columns):
    apart = tl.load(x + row + k, mask=inside, other=0.0) - mean
    variance += apart * apart / columns
root = tl.sqrt(variance + 1e-5)
for k in range(columns):
    apart = tl.load(x + row + k, mask=inside, other=0.0) - mean
    tl.store(out + row + k, apart / root * tl.load(weight + k) + tl.load(bias + k), mask=inside)
""",
        _class(
            """x:
out = torch.empty_like(x)
launched(out, x, self.norm.weight.detach(), self.norm.bias.detach(), x.shape[1], x.shape[0])
return out
""",
            "features",
            "norm = torch.nn.LayerNorm(features)",
        ),
    ),
)
