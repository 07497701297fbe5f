"""Files of the KernelBench form, written here, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """
import torch
import torch.nn as nn

"""

MODELS: dict[str, str] = {
    "1_gated": """
class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(gate)


batch_size = 1024
dim = 16384


def get_inputs():
    x = torch.rand(batch_size, dim)
    gate = torch.randn(batch_size, dim)
    return [x, gate]


def get_init_inputs():
    return []
""",
    "2_scaled_softmax": """
class Model(nn.Module):
    def __init__(self, scale: float):
        super(Model, self).__init__()
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * self.scale, dim=1)


rows = 4096
columns = 8192
scale = 0.125


def get_inputs():
    return [torch.rand(rows, columns)]


def get_init_inputs():
    return [scale]
""",
    "3_folded": """
class Model(nn.Module):
    def __init__(self, groups):
        super().__init__()
        self.groups = groups

    def forward(self, x):
        return x.view(x.shape[0], self.groups, -1).sum(2)


batch_size = 64
features = 4096
groups = 8


def get_inputs():
    return [torch.randn(batch_size, features)]


def get_init_inputs():
    return [groups]
""",
    "4_linear": """
class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        return self.linear(x)


batch_size = 64


def get_inputs():
    return [torch.randn(batch_size, 16)]


def get_init_inputs():
    return [16]
""",
    "5_product": """
class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, A, B):
        return torch.matmul(A, B)


M = 2048
K = 4096
N = 1024


def get_inputs():
    return [torch.rand(M, K), torch.rand(K, N)]


def get_init_inputs():
    return []
""",
    "6_leaky": """
class Model(nn.Module):
    def __init__(self, slope: float = 0.01):
        super().__init__()
        self.slope = slope

    def forward(self, x):
        return nn.functional.leaky_relu(x, negative_slope=self.slope)


batch_size = 4096
dim = 65536


def get_inputs():
    return [torch.rand(batch_size, dim)]


def get_init_inputs():
    return []
""",
    "7_mean_over": """
class Model(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return torch.mean(x, dim=self.dim)


batch_size = 128
dim1 = 4096
dim2 = 4095


def get_inputs():
    return [torch.rand(batch_size, dim1, dim2)]


def get_init_inputs():
    return [1]
""",
    "8_running_total": """
class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return torch.cumsum(x, dim=self.dim)


batch_size = 32768
length = 32768
dim = 1


def get_inputs():
    return [torch.rand(batch_size, length)]


def get_init_inputs():
    return [dim]
""",
    "9_error": """
class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, predictions, targets):
        return torch.mean((predictions - targets) ** 2)


batch_size = 32768
features = 32768


def get_inputs():
    return [torch.rand(batch_size, features), torch.rand(batch_size, features)]


def get_init_inputs():
    return []
""",
    "10_largest_place": """
class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.argmax(x, dim=1)


rows = 4096
columns = 4096


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
""",
    "11_normed": """
class Model(nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        return x / torch.sqrt(torch.mean(x * x, dim=1, keepdim=True) + self.eps)


rows = 4096
columns = 4096
eps = 0.5


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return [eps]
""",
}


MODELS["11_convolved"] = """
class Model(nn.Module):
    def __init__(self, channels: int, filters: int):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(channels, filters, 3, padding=1), nn.ReLU())

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.layers(image)


batch_size, height, width = 16, 64, 64


def get_inputs():
    return [torch.rand(batch_size, 3, height, width)]


def get_init_inputs():
    return [3, 8]
"""
MODELS["12_layer_norm"] = """
class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        return self.norm(x)


batch_size = 64
features = 256


def get_inputs():
    return [torch.rand(batch_size, features)]


def get_init_inputs():
    return [features]
"""


def write(folder: Path, name: str) -> Path:
    """The file of a problem."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(HEAD + MODELS[name])
    return folder / f"{name}.py"
