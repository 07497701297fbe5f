"""What scripts and PyTorch's optimizers ask of the GPU, answered for the one device that kernels run on."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING

import torch

from grader.runner.triton.ptx import WARP

if TYPE_CHECKING:
    from grader.runner.triton.runtime import Runtime

_MULTIPROCESSORS = 16  # of cudaDeviceAttr


class _Device(nullcontext[None]):
    """While it is entered, work goes to the device, as it does anyway; PyTorch takes it for a type."""

    def __init__(self, _device: object) -> None:
        super().__init__()


def answer_for(runtime: Runtime) -> None:
    """Let the functions that look at the device, choose it or wait for it do so by ``runtime``."""
    major, minor = divmod(runtime.capability, 10)
    properties = SimpleNamespace(
        name="the device of the grader",
        major=major,
        minor=minor,
        multi_processor_count=runtime.attribute(_MULTIPROCESSORS),
        warp_size=WARP,
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
