"""A student's PyTorch file in the runner: calls it, counts its launches and watches what it does.

What is called is the assignment's to say: its harness, a module in this archive, has ``FUNCTIONS`` by name,
each from the arrays and scalars of a call to its outputs, and ``KERNELS``, the given module that hands
tensors to the launchers. Every launch goes through ``Launches``, which counts and, where the judge wants to
see that a result is used, marks: the outputs of a launcher are scaled by factors that only the judge knows.

Layer: imports PyTorch, as nothing else of the runner does.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections import Counter
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import ModuleType

    from grader.runner.protocol import Header

DENSE, EVERY_OTHER, TRANSPOSED, EXPANDED = range(4)  # how a tensor lies in memory
WAITING = frozenset({"item", "tolist", "numpy", "cpu", "__bool__", "__float__", "__int__", "__index__"})
MARK = "mark "  # a scalar "mark LAUNCHER.PARAMETER" is the factor of that output

Tensors = dict[str, Tensor]
if TYPE_CHECKING:
    Function = Callable[["Model", Tensors, Header, Sequence[Tensor]], tuple[Tensors, list[str]]]
    """From arrays, scalars and the masks of dropout to the outputs and what was seen that must not be."""


class FaultError(Exception):
    """The code ran, and did what it must not do; the text is for its author."""


class Launches:
    """Stands where the given module's ``launch`` stood: counts the calls, and scales by ``marks``."""

    def __init__(self, kernels: ModuleType) -> None:
        self._launch = kernels.launch
        self._declared: Mapping[str, str] = kernels.LAUNCHERS
        self.calls: Counter[str] = Counter()
        self.marks: Mapping[str, float] = {}

    def __call__(self, entry_point: str, *arguments: Any) -> None:  # noqa: ANN401 - checked by the original
        """Call the launcher."""
        self._launch(entry_point, *arguments)
        self.calls[entry_point] += 1
        if not self.marks:
            return
        for declared, argument in zip(self._declared[entry_point].split(","), arguments, strict=False):
            factor = self.marks.get(f"{entry_point}.{declared.split()[-1]}", 1.0)
            if factor != 1.0:
                argument.detach().mul_(factor)


class Watch(TorchFunctionMode):
    """Notes where the file makes the host wait, and lets the judge's masks decide what dropout drops."""

    def __init__(self, path: str, given: str | None, masks: Iterator[Tensor] | None) -> None:
        super().__init__()
        self._path = path
        self._given = given
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
                f"dropout is applied a {self.drops}th time, once more than the model has places for it"
            )
        if mask.shape != inp.shape:
            raise FaultError(
                f"dropout {self.drops} is applied to a tensor of shape {tuple(inp.shape)}; the model drops "
                f"elements of shape {tuple(mask.shape)} there"
            )
        return inp * mask / (1 - p)

    def _note(self, what: str) -> None:
        frame = sys._getframe(2)  # noqa: SLF001
        while frame is not None:
            name = frame.f_code.co_filename
            if name == self._given:
                return
            if name == self._path:
                self.seen[f"{os.path.basename(name)}:{frame.f_lineno}: {what}"] = None  # noqa: PTH119
                return
            frame = frame.f_back  # type: ignore[assignment]


class Model:
    """Answers the judge's requests about one file.

    Attributes:
        device: where tensors live.
        kept: what one function of the harness leaves for the next.
    """

    def __init__(self, path: str, harness: ModuleType) -> None:
        torch.set_num_threads(1)
        kernels = harness.KERNELS
        self.device: str = kernels.DEVICE
        if self.device == "cuda":  # the context and cuBLAS load now, and not on the time of a case
            square = torch.ones(64, 64, device=self.device)
            (square @ square).sum().item()
        self._path = path
        self._given = kernels.__file__
        self._functions: Mapping[str, Function] = harness.FUNCTIONS
        self._module: ModuleType | None = None
        self.kept: Any = None
        self._launches = Launches(kernels)
        kernels.launch = self._launches

    def answer(self, header: Header, payload: memoryview) -> tuple[Header, list[Any]]:
        """Run ``header["function"]`` on arrays and scalars; the harness says what they hold.

        ``arrays`` and ``outputs`` are lists of name, dtype and shape; the arrays follow each other in
        ``payload``, the outputs in the answer.
        """
        scalars = header["scalars"]
        marks = {name.removeprefix(MARK): value for name, value in scalars.items() if name.startswith(MARK)}
        self._launches.calls.clear()
        self._launches.marks = marks
        try:
            arrays = _arrays(header["arrays"], payload, self.device)
            drops = [arrays[name] for name in sorted(arrays) if name.startswith("dropout ")]
            outputs, seen = self._functions[header["function"]](self, arrays, scalars, drops)
            content = [_content(outputs, *described) for described in header["outputs"]]
        except FaultError as error:
            return {"status": "raised", "message": str(error)}, []
        except Exception as error:  # noqa: BLE001 - whatever the student's code raises is its author's to read
            return {"status": "raised", "message": self._described(error)}, []
        return {"status": "returned", "calls": dict(self._launches.calls), "seen": list(seen)}, content

    @property
    def module(self) -> ModuleType:
        """The student's file, imported when it is first needed."""
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

    def watch(self, drops: Sequence[Tensor] = ()) -> Watch:
        """A watch for one pass through the model."""
        return Watch(self._path, self._given, iter(drops))

    def _described(self, error: Exception) -> str:
        """The error in a line, with the last place of the student's file that it passed."""
        mine = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == self._path]
        place = f"{os.path.basename(self._path)}:{mine[-1].lineno}: " if mine else ""  # noqa: PTH119
        if isinstance(error, NotImplementedError) and mine:
            return f"{place}{mine[-1].name} is still to be written"
        return f"{place}{type(error).__name__}: {error}"


def _arrays(described: Sequence[tuple[str, str, Sequence[int]]], payload: memoryview, device: str) -> Tensors:
    found, offset = {}, 0
    for name, dtype, shape in described:
        kind = getattr(torch, dtype)
        count = torch.Size(shape).numel()
        tensor = torch.frombuffer(payload, dtype=kind, count=count, offset=offset).clone()
        offset += tensor.nbytes
        found[name] = tensor.view(shape).to(device)
    return found


def _content(outputs: Tensors, name: str, dtype: str, shape: Sequence[int]) -> memoryview:
    tensor = outputs[name].detach()
    if tuple(tensor.shape) != tuple(shape):
        raise FaultError(f"the {name} has the shape {tuple(tensor.shape)}, not {tuple(shape)}")
    array: Any = tensor.to("cpu", getattr(torch, dtype)).contiguous().numpy()
    return memoryview(array).cast("B")


def arranged(tensor: Tensor, layout: int) -> Tensor:
    """The same values in another place: dense, every second element, transposed, or one value for all."""
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
    """Forward, and backward twice, as it must be possible; ``leaves`` are what gradients are wanted of."""
    inp = arranged(leaves["inp"], scalars["layout"])
    upstream = arranged(arrays["upstream"], scalars["upstream layout"])
    before, upstream_before = inp.detach().clone(), upstream.clone()
    watch = model.watch()
    with watch:
        output = call(inp)
        once, again = (
            torch.autograd.grad(output, tuple(leaves.values()), upstream, retain_graph=True) for _ in range(2)
        )
    seen = list(watch.seen)
    if output is not inp and not torch.equal(inp.detach(), before):
        seen.append(
            "the forward overwrites its input, which others may read: clone it, or use ctx.mark_dirty"
        )
    if not torch.equal(upstream, upstream_before):
        seen.append("the backward overwrites the gradient that it is given, which others may read: clone it")
    outputs = {"output": output}
    for name, first, second in zip(leaves, once, again, strict=True):
        outputs |= {f"gradient of {name}": first, f"gradient of {name}, backward again": second}
    return outputs, seen


def load_weights(module: torch.nn.Module, weights: Tensors) -> None:
    """Give ``module`` its weights."""
    own = {name for name, _ in module.named_parameters()}
    if own != set(weights):
        wrong = ", ".join(sorted(own ^ set(weights)))
        raise FaultError(
            f"{type(module).__name__} must keep the parameters of the template; these differ: {wrong}"
        )
    module.load_state_dict(weights, strict=False)


def gradient(name: str, tensor: Tensor) -> Tensor:
    """The gradient that has arrived at ``tensor``, which its author knows as ``name``."""
    if tensor.grad is None:
        raise FaultError(f"no gradient arrives at {name}")
    return tensor.grad


def gradients(module: torch.nn.Module, path: str) -> Tensors:
    """The gradients of all parameters, by names that end in ``path``."""
    return {
        f"gradient of {name}, {path}": gradient(name, parameter)
        for name, parameter in module.named_parameters()
    }
