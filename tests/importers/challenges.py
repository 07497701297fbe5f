"""Folders of the LeetGPU form, written here: by name, what the class in ``challenge.py`` holds."""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """
import ctypes
from typing import Any, Dict, List

import torch
from core.challenge_base import ChallengeBase


class Challenge(ChallengeBase):
    def __init__(self):
        super().__init__(name="NAME", atol=1e-05, rtol=1e-05, num_gpus=1, access_tier="free")
"""

CHALLENGES: dict[str, str] = {
    "1_scaled_sum": """
def reference_impl(self, left: torch.Tensor, right: torch.Tensor, total: torch.Tensor, N: int):
    assert left.shape == right.shape == total.shape
    assert left.device.type == "cuda"
    torch.add(left, right, alpha=2.0, out=total)

def get_solve_signature(self) -> Dict[str, tuple]:
    return {
        "left": (ctypes.POINTER(ctypes.c_float), "in"),
        "right": (ctypes.POINTER(ctypes.c_float), "in"),
        "total": (ctypes.POINTER(ctypes.c_float), "out"),
        "N": (ctypes.c_size_t, "in"),
    }

def _test(self, size):
    return {
        "left": torch.empty(size, device="cuda", dtype=torch.float32).uniform_(-10.0, 10.0),
        "right": torch.empty(size, device="cuda", dtype=torch.float32).uniform_(0.0, 1.0),
        "total": torch.empty(size, device="cuda", dtype=torch.float32),
        "N": size,
    }

def generate_example_test(self) -> Dict[str, Any]:
    return self._test(4)

def generate_functional_test(self) -> List[Dict[str, Any]]:
    return [self._test(size) for size in (1, 33, 1000, 10000)]

def generate_performance_test(self) -> Dict[str, Any]:
    return self._test(1 << 20)
""",
    "2_turned": """
def reference_impl(self, input: torch.Tensor, output: torch.Tensor, rows: int, cols: int):
    output.copy_(input.transpose(0, 1))

def get_solve_signature(self) -> Dict[str, tuple]:
    return {
        "input": (ctypes.POINTER(ctypes.c_float), "in"),
        "output": (ctypes.POINTER(ctypes.c_float), "out"),
        "rows": (ctypes.c_int, "in"),
        "cols": (ctypes.c_int, "in"),
    }

def _test(self, rows, cols):
    return {
        "input": torch.randn(rows, cols, device="cuda"),
        "output": torch.empty(cols, rows, device="cuda"),
        "rows": rows,
        "cols": cols,
    }

def generate_example_test(self) -> Dict[str, Any]:
    return self._test(2, 3)

def generate_functional_test(self) -> List[Dict[str, Any]]:
    return [self._test(1, 5), self._test(31, 40), self._test(128, 64)]

def generate_performance_test(self) -> Dict[str, Any]:
    return self._test(1024, 512)
""",
    "3_counts": """
def reference_impl(self, values: torch.Tensor, counts: torch.Tensor, N: int, bins: int):
    counts.copy_(torch.bincount(values, minlength=bins))

def get_solve_signature(self) -> Dict[str, tuple]:
    return {
        "values": (ctypes.POINTER(ctypes.c_int), "in"),
        "counts": (ctypes.POINTER(ctypes.c_int), "out"),
        "N": (ctypes.c_int, "in"),
        "bins": (ctypes.c_int, "in"),
    }

def _test(self, size, bins):
    return {
        "values": torch.randint(0, bins, (size,), device="cuda", dtype=torch.int32),
        "counts": torch.zeros(bins, device="cuda", dtype=torch.int32),
        "N": size,
        "bins": bins,
    }

def generate_example_test(self) -> Dict[str, Any]:
    return self._test(8, 4)

def generate_functional_test(self) -> List[Dict[str, Any]]:
    return [self._test(100, 4), self._test(777, 16)]

def generate_performance_test(self) -> Dict[str, Any]:
    return self._test(1 << 20, 16)
""",
    "4_sorted_place": """
def reference_impl(self, data: torch.Tensor, wanted: torch.Tensor, places: torch.Tensor, N: int, count: int):
    places.copy_(torch.searchsorted(data, wanted))

def get_solve_signature(self) -> Dict[str, tuple]:
    return {
        "data": (ctypes.POINTER(ctypes.c_int), "in"),
        "wanted": (ctypes.POINTER(ctypes.c_int), "in"),
        "places": (ctypes.POINTER(ctypes.c_longlong), "out"),
        "N": (ctypes.c_int, "in"),
        "count": (ctypes.c_int, "in"),
    }

def _test(self, size, count):
    return {
        "data": torch.randint(0, 1000, (size,), device="cuda", dtype=torch.int32).sort().values,
        "wanted": torch.randint(0, 1000, (count,), device="cuda", dtype=torch.int32),
        "places": torch.empty(count, device="cuda", dtype=torch.int64),
        "N": size,
        "count": count,
    }

def generate_example_test(self) -> Dict[str, Any]:
    return self._test(8, 4)

def generate_functional_test(self) -> List[Dict[str, Any]]:
    return [self._test(100, 5), self._test(333, 40)]

def generate_performance_test(self) -> Dict[str, Any]:
    return self._test(4096, 4096)
""",
    "5_product": """
def reference_impl(self, A, B, C, M, N, K):
    torch.matmul(A, B, out=C)

def get_solve_signature(self) -> Dict[str, tuple]:
    return {
        "A": (ctypes.POINTER(ctypes.c_float), "in"),
        "B": (ctypes.POINTER(ctypes.c_float), "in"),
        "C": (ctypes.POINTER(ctypes.c_float), "out"),
        "M": (ctypes.c_int, "in"),
        "N": (ctypes.c_int, "in"),
        "K": (ctypes.c_int, "in"),
    }

def _test(self, m, n, k):
    return {
        "A": torch.randn(m, n, device="cuda"),
        "B": torch.randn(n, k, device="cuda"),
        "C": torch.zeros(m, k, device="cuda"),
        "M": m,
        "N": n,
        "K": k,
    }

def generate_example_test(self) -> Dict[str, Any]:
    return self._test(2, 3, 4)

def generate_functional_test(self) -> List[Dict[str, Any]]:
    return [self._test(16, 16, 16), self._test(33, 20, 50)]

def generate_performance_test(self) -> Dict[str, Any]:
    return self._test(512, 512, 512)
""",
    "6_row_shares": """
def reference_impl(self, input, output, N):
    output.copy_(torch.softmax(input, dim=0))

def get_solve_signature(self) -> Dict[str, tuple]:
    return {
        "input": (ctypes.POINTER(ctypes.c_float), "in"),
        "output": (ctypes.POINTER(ctypes.c_float), "out"),
        "N": (ctypes.c_int, "in"),
    }

def _test(self, size):
    return {
        "input": torch.empty(size, device="cuda").uniform_(-5.0, 5.0),
        "output": torch.empty(size, device="cuda"),
        "N": size,
    }

def generate_example_test(self) -> Dict[str, Any]:
    return self._test(3)

def generate_functional_test(self) -> List[Dict[str, Any]]:
    return [self._test(1), self._test(100), self._test(2000)]

def generate_performance_test(self) -> Dict[str, Any]:
    return self._test(500000)
""",
    "7_total": """
def reference_impl(self, input, output, N):
    output[0] = torch.sum(input)

def get_solve_signature(self) -> Dict[str, tuple]:
    return {
        "input": (ctypes.POINTER(ctypes.c_float), "in"),
        "output": (ctypes.POINTER(ctypes.c_float), "out"),
        "N": (ctypes.c_int, "in"),
    }

def _test(self, size):
    return {
        "input": torch.rand(size, device="cuda"),
        "output": torch.zeros(1, device="cuda"),
        "N": size,
    }

def generate_example_test(self) -> Dict[str, Any]:
    return self._test(8)

def generate_functional_test(self) -> List[Dict[str, Any]]:
    return [self._test(1), self._test(130), self._test(5000)]

def generate_performance_test(self) -> Dict[str, Any]:
    return self._test(1000000)
""",
    "8_running_total": """
def reference_impl(self, input, output, N):
    output.copy_(torch.cumsum(input, dim=0))

def get_solve_signature(self) -> Dict[str, tuple]:
    return {
        "input": (ctypes.POINTER(ctypes.c_float), "in"),
        "output": (ctypes.POINTER(ctypes.c_float), "out"),
        "N": (ctypes.c_int, "in"),
    }

def _test(self, size):
    return {
        "input": torch.randn(size, device="cuda"),
        "output": torch.empty(size, device="cuda"),
        "N": size,
    }

def generate_example_test(self) -> Dict[str, Any]:
    return self._test(4)

def generate_functional_test(self) -> List[Dict[str, Any]]:
    return [self._test(1), self._test(77), self._test(3000)]

def generate_performance_test(self) -> Dict[str, Any]:
    return self._test(250000)
""",
    "9_inverted": """
def reference_impl(self, image, width, height):
    image[:, :, :3] = 255 - image[:, :, :3]

def get_solve_signature(self) -> Dict[str, tuple]:
    return {
        "image": (ctypes.POINTER(ctypes.c_ubyte), "inout"),
        "width": (ctypes.c_int, "in"),
        "height": (ctypes.c_int, "in"),
    }

def _test(self, width, height):
    return {
        "image": torch.randint(0, 256, (height, width, 4), device="cuda", dtype=torch.uint8),
        "width": width,
        "height": height,
    }

def generate_example_test(self) -> Dict[str, Any]:
    return self._test(1, 2)

def generate_functional_test(self) -> List[Dict[str, Any]]:
    return [self._test(16, 20), self._test(33, 7)]

def generate_performance_test(self) -> Dict[str, Any]:
    return self._test(512, 512)
""",
    "10_sorted": """
def reference_impl(self, data, N):
    data.copy_(torch.sort(data).values)

def get_solve_signature(self) -> Dict[str, tuple]:
    return {
        "data": (ctypes.POINTER(ctypes.c_float), "inout"),
        "N": (ctypes.c_int, "in"),
    }

def _test(self, size):
    return {
        "data": torch.randn(size, device="cuda"),
        "N": size,
    }

def generate_example_test(self) -> Dict[str, Any]:
    return self._test(4)

def generate_functional_test(self) -> List[Dict[str, Any]]:
    return [self._test(1), self._test(100), self._test(1500)]

def generate_performance_test(self) -> Dict[str, Any]:
    return self._test(100000)
""",
}


def write(folder: Path, name: str, *edits: tuple[str, str]) -> Path:
    """The folder of a challenge, with texts of its file replaced."""
    text = HEAD.replace("NAME", name) + indent(CHALLENGES[name], "    ")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    (folder / name).mkdir(parents=True)
    (folder / name / "challenge.py").write_text(text)
    return folder / name
