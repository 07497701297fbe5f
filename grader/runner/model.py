"""Runs a student's PyTorch file in the runner: calls it, counts its launches and watches what it does.

The assignment decides what is called. Its harness, a module in this archive, has ``FUNCTIONS`` by name, which
compute outputs from the arrays and scalars of a call, and ``KERNELS``, the given module that passes tensors
to the launchers. Every launch goes through ``Launches``, which counts it. On the simulator, and where results
are marked, the judge makes the launch: it gets the tensors, and sends what the launcher wrote.

Layer: the only module of the runner that imports PyTorch.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from grader.runner.raised import raised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import ModuleType

    from grader.runner.protocol import Frame, Header

DENSE, EVERY_OTHER, TRANSPOSED, EXPANDED = range(4)  # layouts of a tensor in memory
WAITING = frozenset({"item", "tolist", "numpy", "cpu", "__bool__", "__float__", "__int__", "__index__"})

Tensors = dict[str, Tensor]
if TYPE_CHECKING:
    Function = Callable[["Model", Tensors, Header, Sequence[Tensor]], tuple[Tensors, list[str]]]
    """Takes arrays, scalars and the masks of dropout; returns the outputs and texts on forbidden actions."""


class FaultError(Exception):
    """The code ran, but did something forbidden; the text is for its author."""


class Launches:
    """Replaces ``launch`` of the given module: counts the calls, and lets the judge make them where it wants.

    Attributes:
        calls: how often each launcher was called.
        served: whether the judge makes the launches.
    """

    def __init__(self, kernels: ModuleType, ask: Callable[[Header, Sequence[Any]], Frame]) -> None:
        self._launch = kernels.launch
        self._check: Callable[..., None] = kernels.check
        self._declared: Mapping[str, str] = kernels.LAUNCHERS
        self._ask = ask
        self.calls: Counter[str] = Counter()
        self.served = False

    def __call__(self, entry_point: str, *arguments: Any) -> None:  # noqa: ANN401 - checked by the original
        """Call the launcher."""
        if self.served:
            self._check(entry_point, *arguments)
            with torch._C.DisableTorchFunction():  # noqa: SLF001 - the file itself does not wait
                self._let_judge(entry_point, arguments)
        else:
            self._launch(entry_point, *arguments)
        self.calls[entry_point] += 1

    def _let_judge(self, entry_point: str, arguments: Sequence[Any]) -> None:
        """Send the judge what a launcher is given, and take what it wrote.

        Raises:
            RuntimeError: the launch failed; the text is CUDA's.
        """
        described: list[tuple[Any, ...]] = []
        payload: list[memoryview] = []
        written: list[Tensor] = []
        remaining = iter(arguments)
        for declared in self._declared[entry_point].split(","):
            *words, name = declared.split()
            if words == ["cudaStream_t"]:
                described.append(("stream", name))
                continue
            argument = next(remaining)
            if isinstance(argument, Tensor):
                constant = words[0] == "const"
                dtype = str(argument.dtype).removeprefix("torch.")
                described.append(("array", name, dtype, tuple(argument.shape), not constant))
                payload.append(_bytes(argument))
                written += [] if constant else [argument]
            else:
                described.append(
                    ("null", name) if argument is None else ("scalar", name, words[-1], argument)
                )
        header = {"status": "launch", "entry_point": entry_point, "arguments": described}
        answer, offset = self._ask(header, payload), 0
        if failed := answer.header["failed"]:
            raise RuntimeError(failed)
        for tensor in written:
            content = torch.frombuffer(answer.payload, dtype=torch.uint8, count=tensor.nbytes, offset=offset)
            offset += tensor.nbytes
            tensor.data.copy_(content.clone().view(tensor.dtype).view(tensor.shape))


def _bytes(tensor: Tensor) -> memoryview:
    flat: Any = tensor.detach().to("cpu").reshape(-1).view(torch.uint8).numpy()
    return memoryview(flat)


class Watch(TorchFunctionMode):
    """Records where the file makes the host wait, and applies the judge's masks instead of dropout."""

    def __init__(self, path: str, kernels_file: str | None, masks: Iterator[Tensor] | None) -> None:
        super().__init__()
        self._path = path
        self._kernels_file = kernels_file
        self._masks = masks
        self.drops = 0
        self.seen: dict[str, None] = {}

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        name = getattr(func, "__name__", "")
        if func is functional.dropout or name == "dropout":
            return self._dropout(*args, **(kwargs or {}))
        if name in WAITING or (name == "to" and "cpu" in args):
            self._note(f"{name}() makes the host wait for the device")
        return func(*args, **(kwargs or {}))

    def _dropout(self, inp: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:  # noqa: ARG002
        if not training or p == 0:
            return inp
        self.drops += 1
        mask = next(self._masks, None) if self._masks else None
        if mask is None:
            raise FaultError(
                f"dropout is applied {self.drops} times, but the model has only {self.drops - 1} dropouts"
            )
        if mask.shape != inp.shape:
            raise FaultError(
                f"dropout {self.drops} is applied to a tensor of shape {tuple(inp.shape)}, but the model "
                f"applies it to a tensor of shape {tuple(mask.shape)}"
            )
        return inp * mask / (1 - p)

    def _note(self, text: str) -> None:
        frame = sys._getframe(2)  # noqa: SLF001
        while frame is not None:
            name = frame.f_code.co_filename
            if name == self._kernels_file:
                return
            if name == self._path:
                self.seen[f"{os.path.basename(name)}:{frame.f_lineno}: {text}"] = None  # noqa: PTH119
                return
            frame = frame.f_back  # type: ignore[assignment]


class Model:
    """Answers the judge's requests about one file.

    Attributes:
        device: the PyTorch device of the tensors.
        kept: data that one function of the harness keeps for the next.
    """

    def __init__(self, path: str, harness: ModuleType, ask: Callable[[Header, Sequence[Any]], Frame]) -> None:
        torch.set_num_threads(1)
        kernels = harness.KERNELS
        self.device: str = kernels.DEVICE
        if self.device == "cuda":  # load the context and cuBLAS now, not during a case
            square = torch.ones(64, 64, device=self.device)
            (square @ square).sum().item()
        self._path = path
        self._kernels_file = kernels.__file__
        self._functions: Mapping[str, Function] = harness.FUNCTIONS
        self._module: ModuleType | None = None
        self.kept: Any = None
        self._launches = Launches(kernels, ask)
        kernels.launch = self._launches

    def answer(self, header: Header, payload: memoryview) -> tuple[Header, list[Any]]:
        """Run ``header["function"]`` of the harness on arrays and scalars.

        ``arrays`` and ``outputs`` are lists of name, dtype and shape; the arrays follow each other in
        ``payload``, and the outputs follow each other in the answer.
        """
        scalars = header["scalars"]
        self._launches.calls.clear()
        self._launches.served = header["served"]
        try:
            arrays = _arrays(header["arrays"], payload, self.device)
            drops = [arrays[name] for name in sorted(arrays) if name.startswith("dropout ")]
            outputs, observed = self._functions[header["function"]](self, arrays, scalars, drops)
            content = [_content(outputs, *described) for described in header["outputs"]]
        except FaultError as error:
            return {"status": "raised", "message": str(error)}, []
        except Exception as error:  # noqa: BLE001 - the author reads whatever the student's code raises
            failure = raised(error, self._path)
            return {"status": failure.status, "message": str(failure)}, []
        return {"status": "returned", "calls": dict(self._launches.calls), "seen": list(observed)}, content

    @property
    def module(self) -> ModuleType:
        """The student's file, which is imported when it is first needed."""
        if self._module is None:
            name = os.path.splitext(os.path.basename(self._path))[0]  # noqa: PTH119, PTH122
            spec = importlib.util.spec_from_file_location(name, self._path)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = module
            spec.loader.exec_module(module)
            self._module = module
        return self._module

    def replayed(self, function: Callable[[], Tensor]) -> Callable[[], Tensor]:
        """``function`` as a CUDA graph: what comes back launches all that it launched, and counts it again.

        Its result is written anew by each launch of the graph.

        Raises:
            FaultError: there is no GPU.
            RuntimeError: it does what no graph can hold; the text is CUDA's.
        """
        if self.device != "cuda":
            raise FaultError("only a GPU has graphs")
        calls, graph = self._launches.calls, torch.cuda.CUDAGraph()
        before = Counter(calls)
        with torch.cuda.graph(graph):
            result = function()
        launched = calls - before
        calls.subtract(launched)

        def again() -> Tensor:
            graph.replay()
            calls.update(launched)
            return result

        return again

    def watch(self, drops: Sequence[Tensor] = ()) -> Watch:
        """A ``Watch`` for one pass through the model."""
        return Watch(self._path, self._kernels_file, iter(drops))


def _arrays(described: Sequence[tuple[str, str, Sequence[int]]], payload: memoryview, device: str) -> Tensors:
    arrays, offset = {}, 0
    for name, dtype, shape in described:
        kind = getattr(torch, dtype)
        count = torch.Size(shape).numel()
        tensor = torch.frombuffer(payload, dtype=kind, count=count, offset=offset).clone()
        offset += tensor.nbytes
        arrays[name] = tensor.view(shape).to(device)
    return arrays


def _content(outputs: Tensors, name: str, dtype: str, shape: Sequence[int]) -> memoryview:
    tensor = outputs[name].detach()
    if tuple(tensor.shape) != tuple(shape):
        raise FaultError(f"the {name} has the shape {tuple(tensor.shape)}, not {tuple(shape)}")
    array: Any = tensor.to("cpu", getattr(torch, dtype)).contiguous().numpy()
    return memoryview(array).cast("B")


def arranged(tensor: Tensor, layout: int) -> Tensor:
    """Lay out the values of a tensor anew: dense, strided by two, transposed, or one value everywhere."""
    if layout == EVERY_OTHER:
        return torch.stack((tensor, tensor), -1)[..., 0]
    if layout == TRANSPOSED:
        return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
    if layout == EXPANDED:
        return tensor.flatten()[0].expand(tensor.shape)
    return tensor.clone()


def differentiated(
    model: Model, call: Callable[[Tensor], Tensor], leaves: Tensors, arrays: Tensors, scalars: Header
) -> tuple[Tensors, list[str]]:
    """Run forward once and backward twice; gradients are computed for ``leaves``."""
    inp = arranged(leaves["inp"], scalars["layout"])
    upstream = arranged(arrays["upstream"], scalars["upstream layout"])
    before, upstream_before = inp.detach().clone(), upstream.clone()
    watch = model.watch()
    with watch:
        output = call(inp)
        once, again = (
            torch.autograd.grad(output, tuple(leaves.values()), upstream, retain_graph=True) for _ in range(2)
        )
    observed = list(watch.seen)
    if output is not inp and not torch.equal(inp.detach(), before):
        observed.append(
            "the forward overwrites its input, which other code may read: clone it, or use ctx.mark_dirty"
        )
    if not torch.equal(upstream, upstream_before):
        observed.append(
            "the backward overwrites the gradient that it gets, which other code may read: clone it"
        )
    outputs = {"output": output}
    for name, first, second in zip(leaves, once, again, strict=True):
        outputs |= {f"gradient of {name}": first, f"gradient of {name}, backward again": second}
    return outputs, observed


def load_weights(module: torch.nn.Module, weights: Tensors) -> None:
    """Load ``weights`` into ``module``.

    Raises:
        FaultError: the module does not have the template's parameters.
    """
    names = {name for name, _ in module.named_parameters()}
    if names != set(weights):
        wrong = ", ".join(sorted(names ^ set(weights)))
        raise FaultError(
            f"{type(module).__name__} must keep the parameters of the template; these differ: {wrong}"
        )
    module.load_state_dict(weights, strict=False)


def gradient(name: str, tensor: Tensor) -> Tensor:
    """The gradient of ``tensor``; ``name`` is its name in messages."""
    if tensor.grad is None:
        raise FaultError(f"no gradient arrives at {name}")
    return tensor.grad


def gradients(module: torch.nn.Module, path: str) -> Tensors:
    """The gradients of all parameters, under names that end in ``path``."""
    return {
        f"gradient of {name}, {path}": gradient(name, parameter)
        for name, parameter in module.named_parameters()
    }
