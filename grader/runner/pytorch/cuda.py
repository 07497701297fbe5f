"""The rest of ``torch.cuda`` for a script: streams, events, memory, generators, and what measures time."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from grader.runner.pytorch.device import Device
    from grader.runner.triton.runtime import Runtime

_VERSION = "13.0"  # of CUDA, whose runtime the simulator plays
_TYPES = {
    "ByteTensor": torch.uint8,
    "CharTensor": torch.int8,
    "ShortTensor": torch.int16,
    "IntTensor": torch.int32,
    "LongTensor": torch.int64,
    "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16,
    "FloatTensor": torch.float32,
    "DoubleTensor": torch.float64,
    "BoolTensor": torch.bool,
}


class Stream:
    """A stream of the device; ``handle`` is the runtime's, and without one it is new."""

    device = torch.device("cuda", 0)
    device_index = 0
    _runtime: Runtime

    def __init__(self, device: object = None, priority: int = 0, handle: int | None = None) -> None:  # noqa: ARG002
        self.priority = priority
        self.cuda_stream = self._runtime.create_stream() if handle is None else handle
        self.stream_id = self.cuda_stream

    def __eq__(self, other: object) -> bool:
        """Whether it is the same stream of the device."""
        return isinstance(other, Stream) and other.cuda_stream == self.cuda_stream

    def __hash__(self) -> int:
        return hash(self.cuda_stream)

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device=cuda:0 cuda_stream={self.cuda_stream:#x}>"

    def synchronize(self) -> None:
        """Wait for its work."""
        self._runtime.synchronize_stream(self.cuda_stream)

    def query(self) -> bool:
        """Whether its work is done, for which this waits."""
        self.synchronize()
        return True

    def record_event(self, event: Event | None = None) -> Event:
        """An event behind its work so far."""
        recorded: Event = event or getattr(torch.cuda, "Event")()  # noqa: B009 (this module's, not PyTorch's)
        recorded.record(self)
        return recorded

    def wait_event(self, event: Event) -> None:
        """Let its later work wait for an event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Let its later work wait for what is on another stream."""
        self.wait_event(stream.record_event())

    def is_capturing(self) -> bool:
        """Whether it is being captured as a graph: never."""
        return False


class Event:
    """An event of the device."""

    _runtime: Runtime

    def __init__(
        self,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> None:
        if interprocess or external:
            raise NotImplementedError("the simulator has no events that processes or graphs share")
        self.enable_timing, self.blocking = enable_timing, blocking
        self.cuda_event = self._runtime.create_event()

    def record(self, stream: Stream | None = None) -> None:
        """Put it behind the work on a stream."""
        self._runtime.record_event(self.cuda_event, (stream or torch.cuda.current_stream()).cuda_stream)

    def wait(self, stream: Stream | None = None) -> None:
        """Let the later work on a stream wait for it."""
        self._runtime.wait_event((stream or torch.cuda.current_stream()).cuda_stream, self.cuda_event)

    def synchronize(self) -> None:
        """Wait for it."""
        self._runtime.synchronize_event(self.cuda_event)

    def query(self) -> bool:
        """Whether it was reached, for which this waits."""
        self.synchronize()
        return True

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this event to another, as the simulator counts them: not those of a GPU."""
        return self._runtime.elapsed(self.cuda_event, end.cuda_event)


def answer_for_streams(runtime: Runtime, use: Callable[[int], None]) -> None:
    """Let streams and events of ``torch.cuda`` be those of the device.

    Args:
        runtime: of the device, whose stream is the current one.
        use: is told the handle of another stream that work is to go to.
    """
    own = {"_runtime": runtime}
    stream_class, event_class = type("Stream", (Stream,), own), type("Event", (Event,), own)
    setattr(event_class, "__module__", "torch.cuda")  # noqa: B010
    for part in (torch.cuda, torch.cuda.streams):
        vars(part).update(Stream=stream_class, Event=event_class)

    def current(_device: object = None) -> Stream:
        stream: Stream = stream_class(handle=runtime.stream)
        return stream

    @contextmanager
    def on_stream(stream: Stream | None) -> Iterator[None]:
        before = current()
        use((stream or before).cuda_stream)
        try:
            yield
        finally:
            use(before.cuda_stream)

    answers: dict[str, Any] = {
        "current_stream": current,
        "default_stream": lambda _device=None: stream_class(handle=0),
        "set_stream": lambda stream: use(stream.cuda_stream),
        "stream": on_stream,
        "StreamContext": on_stream,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)


def complete(runtime: Runtime, device: Device) -> None:
    """Let what scripts call in ``torch.cuda`` beside ``answer_for`` do what it does on a GPU."""

    def use(stream: int) -> None:
        runtime.stream = device.stream = stream

    answer_for_streams(runtime, use)
    generator = torch.default_generator
    answers: dict[str, Any] = {
        "_lazy_init": lambda: None,
        "_lazy_call": lambda call, **_: call(),
        "init": lambda: None,
        "is_initialized": lambda: True,
        "manual_seed": generator.manual_seed,
        "manual_seed_all": generator.manual_seed,
        "seed": generator.seed,
        "seed_all": generator.seed,
        "initial_seed": generator.initial_seed,
        "get_rng_state": lambda _device=None: generator.get_state(),
        "set_rng_state": lambda state, _device=None: generator.set_state(state),
        "get_rng_state_all": lambda: [generator.get_state()],
        "set_rng_state_all": lambda states: generator.set_state(states[0]),
        "default_generators": (generator,),
        "is_bf16_supported": lambda including_emulation=True: True,  # noqa: ARG005 (PyTorch's name)
        "get_arch_list": lambda: [f"sm_{runtime.capability}"],
        "can_device_access_peer": lambda *_: False,
        "is_current_stream_capturing": lambda: False,
        "empty_cache": lambda: None,
        "ipc_collect": lambda: None,
        "mem_get_info": lambda _device=None: runtime.memory(),
        "memory_stats": lambda _device=None: {},
        "memory_summary": lambda *_, **__: "The simulator keeps no statistics of memory.",
        **{name: lambda _device=None: None for name in _RESETS},
        **{name: lambda _device=None: _used(runtime) for name in _USES},
        **{name: partial(_typed, dtype) for name, dtype in _TYPES.items()},
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
    for name in ("range_push", "range_pop", "mark", "range_start", "range_end"):
        setattr(torch.cuda.nvtx, name, lambda *_, **__: None)
    setattr(torch._C, "_cuda_getCurrentRawStream", lambda _device: device.stream)  # noqa: B010, SLF001
    setattr(torch.version, "cuda", _VERSION)  # noqa: B010
    setattr(torch, "compile", _as_it_is)  # noqa: B010


_RESETS = ("reset_peak_memory_stats", "reset_max_memory_allocated", "reset_accumulated_memory_stats")
_USES = ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved")


def _used(runtime: Runtime) -> int:
    free, total = runtime.memory()
    return total - free


def _typed(dtype: torch.dtype, *content: Any) -> torch.Tensor:  # noqa: ANN401
    """A tensor as the old constructors make it: of some sizes, or with the numbers of a list."""
    if len(content) == 1 and not isinstance(content[0], int):
        return torch.tensor(content[0], dtype=dtype, device="cuda")
    return torch.empty(content, dtype=dtype, device="cuda")


def _as_it_is(model: Callable[..., Any] | None = None, **_: object) -> Any:  # noqa: ANN401
    """A function, not compiled: ``torch.compile`` needs a PyTorch for CUDA."""
    sys.stderr.write("grader: torch.compile does nothing here: the function runs as it is.\n")
    return model if model is not None else lambda later: later
