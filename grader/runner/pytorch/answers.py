"""What PyTorch tells of its CUDA device, answered for the device that kernels run on."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING

import torch

from grader.runner.triton.ptx import WARP

if TYPE_CHECKING:
    from grader.runner.triton.runtime import Runtime

_PROPERTIES = {
    "multi_processor_count": 16,
    "max_threads_per_multi_processor": 39,
    "max_threads_per_block": 1,
    "regs_per_multiprocessor": 82,
    "shared_memory_per_block": 8,
    "shared_memory_per_block_optin": 97,
    "shared_memory_per_multiprocessor": 81,
    "L2_cache_size": 38,
}
"""What PyTorch tells of a device, and the attribute of ``cudaDeviceAttr`` that says it."""


class _Device(nullcontext[None]):
    """While it is entered, work goes to the device, as it does anyway; PyTorch takes it for a type."""

    def __init__(self, _device: object) -> None:
        super().__init__()


def answer_for(runtime: Runtime) -> None:
    """Let the functions that look at the device, choose it or wait for it do so by ``runtime``."""
    major, minor = divmod(runtime.capability, 10)
    properties = SimpleNamespace(
        name=runtime.name(),
        major=major,
        minor=minor,
        warp_size=WARP,
        total_memory=runtime.memory()[1],
        **{name: runtime.attribute(number) for name, number in _PROPERTIES.items()},
    )
    answers = {
        "current_device": lambda: 0,
        "device": _Device,
        "device_count": lambda: 1,
        "get_device_capability": lambda _device=None: (major, minor),
        "get_device_name": lambda _device=None: properties.name,
        "get_device_properties": lambda _device=None: properties,
        "is_available": lambda: True,
        "set_device": lambda _device: None,
        "synchronize": lambda _device=None: runtime.synchronize(),
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
    stream = SimpleNamespace(is_capturing=lambda: False)
    setattr(torch.accelerator, "current_stream", lambda _device=None: stream)  # noqa: B010 - no Stream
