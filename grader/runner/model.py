"""A student's PyTorch file in the runner: its functions, modules and training steps. Imported only there.

The file finds the given module ``kernels`` in this archive. Every launch that it asks for goes through
``Launches``, which counts and, where the judge wants to see that a result is used, marks: the outputs of a
launcher are scaled by factors that only the judge knows.

Layer: imports PyTorch, as nothing else of the runner does.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import kernels
import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import ModuleType

    from grader.runner.protocol import Header

DENSE, EVERY_OTHER, TRANSPOSED, EXPANDED = range(4)  # how a tensor lies in memory
SIZES = ("vocabulary", "width", "heads", "hidden", "positions", "layers")  # of DecoderLM
PATHS = {"fused": True, "unfused": False}
WAITING = frozenset({"item", "tolist", "numpy", "cpu", "__bool__", "__float__", "__int__", "__index__"})
MARK = "mark "  # a scalar "mark LAUNCHER.PARAMETER" is the factor of that output

Tensors = dict[str, Tensor]


class FaultError(Exception):
    """The code ran, and did what it must not do; the text is for its author."""


class Launches:
    """Stands where ``kernels.launch`` stood: counts the calls and scales what they wrote by ``marks``."""

    def __init__(self) -> None:
        self._launch = kernels.launch
        self.calls: Counter[str] = Counter()
        self.marks: Mapping[str, float] = {}

    def __call__(self, entry_point: str, *arguments: Any) -> None:  # noqa: ANN401 - checked by the original
        """Call the launcher."""
        self._launch(entry_point, *arguments)
        self.calls[entry_point] += 1
        if not self.marks:
            return
        for declared, argument in zip(kernels.LAUNCHERS[entry_point].split(","), arguments, strict=False):
            factor = self.marks.get(f"{entry_point}.{declared.split()[-1]}", 1.0)
            if factor != 1.0:
                argument.detach().mul_(factor)


class Watch(TorchFunctionMode):
    """Notes where the file makes the host wait, and lets the judge's masks decide what dropout drops."""

    def __init__(self, path: str, masks: Iterator[Tensor] | None) -> None:
        super().__init__()
        self._path = path
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
            if name == kernels.__file__:
                return
            if name == self._path:
                self.seen[f"{os.path.basename(name)}:{frame.f_lineno}: {what}"] = None  # noqa: PTH119
                return
            frame = frame.f_back  # type: ignore[assignment]


@dataclass
class Training:
    """A model on its way through a text of lines: tokens [N, T + 1], attn_mask [N, T], counted [N, T]."""

    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    text: Tensors
    batch: int
    done: int = 0

    def step(self) -> Tensor:
        """One step on the next batch. The loss stays on the device, and nobody waits for it."""
        lines = len(self.text["tokens"])
        begin = self.done * self.batch % (lines - self.batch + 1)
        tokens, mask, counted = (self.text[name][begin : begin + self.batch] for name in self.text)
        loss = _loss(self.model(tokens[:, :-1], mask), tokens[:, 1:], counted)
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        self.optimizer.step()
        self.done += 1
        return loss.detach()


class Model:
    """Answers the judge's requests about one file."""

    def __init__(self, path: str) -> None:
        torch.set_num_threads(1)
        if kernels.DEVICE == "cuda":  # the context and cuBLAS load now, and not on the time of a case
            square = torch.ones(64, 64, device=kernels.DEVICE)
            (square @ square).sum().item()
        self._path = path
        self._module: ModuleType | None = None
        self.training: Training | None = None
        self._launches = Launches()
        kernels.launch = self._launches

    def answer(self, header: Header, payload: memoryview) -> tuple[Header, list[Any]]:
        """Run ``header["function"]`` on arrays and scalars; see ``FUNCTIONS`` for what they hold.

        ``arrays`` and ``outputs`` are lists of name, dtype and shape; the arrays follow each other in
        ``payload``, the outputs in the answer.
        """
        scalars = header["scalars"]
        marks = {name.removeprefix(MARK): value for name, value in scalars.items() if name.startswith(MARK)}
        self._launches.calls.clear()
        self._launches.marks = marks
        try:
            arrays = _arrays(header["arrays"], payload)
            drops = [arrays[name] for name in sorted(arrays) if name.startswith("dropout ")]
            outputs, seen = FUNCTIONS[header["function"]](self, arrays, scalars, drops)
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
            spec = importlib.util.spec_from_file_location("transformer", self._path)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules["transformer"] = module
            spec.loader.exec_module(module)
            self._module = module
        return self._module

    def watch(self, drops: Sequence[Tensor] = ()) -> Watch:
        """A watch for one pass through the model."""
        return Watch(self._path, iter(drops))

    def _described(self, error: Exception) -> str:
        """The error in a line, with the last place of the student's file that it passed."""
        mine = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == self._path]
        place = f"{os.path.basename(self._path)}:{mine[-1].lineno}: " if mine else ""  # noqa: PTH119
        if isinstance(error, NotImplementedError) and mine:
            return f"{place}{mine[-1].name} is still to be written"
        return f"{place}{type(error).__name__}: {error}"


def _arrays(described: Sequence[tuple[str, str, Sequence[int]]], payload: memoryview) -> Tensors:
    found, offset = {}, 0
    for name, dtype, shape in described:
        kind = getattr(torch, dtype)
        count = torch.Size(shape).numel()
        tensor = torch.frombuffer(payload, dtype=kind, count=count, offset=offset).clone()
        offset += tensor.nbytes
        found[name] = tensor.view(shape).to(kernels.DEVICE)
    return found


def _content(outputs: Tensors, name: str, dtype: str, shape: Sequence[int]) -> memoryview:
    tensor = outputs[name].detach()
    if tuple(tensor.shape) != tuple(shape):
        raise FaultError(f"the {name} has the shape {tuple(tensor.shape)}, not {tuple(shape)}")
    array: Any = tensor.to("cpu", getattr(torch, dtype)).contiguous().numpy()
    return memoryview(array).cast("B")


def _arranged(tensor: Tensor, layout: int) -> Tensor:
    """The same values in another place: dense, every second element, transposed, or one value for all."""
    if layout == EVERY_OTHER:
        return torch.stack((tensor, tensor), -1)[..., 0]
    if layout == TRANSPOSED:
        return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
    if layout == EXPANDED:
        return tensor.flatten()[0].expand(tensor.shape)
    return tensor.clone()


def _function(
    model: Model, call: Callable[[Tensor], Tensor], leaves: Tensors, arrays: Tensors, scalars: Header
) -> tuple[Tensors, list[str]]:
    """Forward, and backward twice, as it must be possible; ``leaves`` are what gradients are wanted of."""
    inp = _arranged(leaves["inp"], scalars["layout"])
    upstream = _arranged(arrays["upstream"], scalars["upstream layout"])
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


def attn_softmax(
    model: Model, arrays: Tensors, scalars: Header, _: Sequence[Tensor]
) -> tuple[Tensors, list[str]]:
    """``attn_softmax`` of inp [B, H, F, T] and attn_mask [B, T] or none."""
    leaves = {"inp": arrays["inp"].requires_grad_()}
    mask, future = arrays.get("attn_mask"), scalars["mask_future"]
    return _function(model, lambda inp: model.module.attn_softmax(inp, mask, future), leaves, arrays, scalars)


def layer_norm(
    model: Model, arrays: Tensors, scalars: Header, _: Sequence[Tensor]
) -> tuple[Tensors, list[str]]:
    """``layer_norm`` of inp [..., H], scale [H] and bias [H]."""
    leaves = {name: arrays[name].requires_grad_() for name in ("inp", "scale", "bias")}
    scale, bias = leaves["scale"], leaves["bias"]
    return _function(model, lambda inp: model.module.layer_norm(inp, scale, bias), leaves, arrays, scalars)


def block(
    model: Model, arrays: Tensors, scalars: Header, drops: Sequence[Tensor]
) -> tuple[Tensors, list[str]]:
    """``MultiHeadAttention``, or ``TransformerLayer`` where there is a ``hidden``, both ways."""
    width, heads, dropout = arrays["inp"].shape[-1], scalars["heads"], scalars["dropout"]
    outputs: Tensors = {}
    seen: dict[str, None] = {}
    for path, fused in PATHS.items():
        if "hidden" in scalars:
            module = model.module.TransformerLayer(width, heads, scalars["hidden"], dropout, fused)
        else:
            module = model.module.MultiHeadAttention(width, heads, dropout, fused)
        module.to(kernels.DEVICE)
        _load(module, {name: array for name, array in arrays.items() if "." in name})
        inp = arrays["inp"].clone().requires_grad_()
        watch = model.watch(drops)
        with watch:
            output = module(inp, arrays.get("attn_mask"))
            output.backward(arrays["upstream"])
        seen |= watch.seen
        outputs |= {f"output, {path}": output, f"gradient of inp, {path}": _gradient("inp", inp)}
        outputs |= _gradients(module, path)
    return outputs, list(seen)


def train(
    model: Model, arrays: Tensors, scalars: Header, drops: Sequence[Tensor]
) -> tuple[Tensors, list[str]]:
    """Loss and gradients of ``DecoderLM`` both ways at the weights of each step, the first axis of arrays."""
    sizes = {name: scalars[name] for name in SIZES}
    kept: dict[str, list[Tensor]] = {}
    seen: dict[str, None] = {}
    for path, fused in PATHS.items():
        language = model.module.DecoderLM(**sizes, dropout=scalars["dropout"], use_fused_kernel=fused)
        language.to(kernels.DEVICE)
        for step in range(arrays["tokens"].shape[0]):
            _load(language, {name: array[step] for name, array in arrays.items() if "." in name})
            tokens, mask, counted = (arrays[name][step] for name in ("tokens", "attn_mask", "counted"))
            language.zero_grad(set_to_none=True)
            watch = model.watch(drops)
            with watch:
                loss = _loss(language(tokens[:, :-1], mask), tokens[:, 1:], counted)
                torch.autograd.backward(loss)
            seen |= watch.seen
            if watch.drops != len(drops):
                raise FaultError(
                    f"dropout is applied {watch.drops} times, the model has {len(drops)} places for it"
                )
            for name, value in {f"loss, {path}": loss.detach(), **_gradients(language, path)}.items():
                kept.setdefault(name, []).append(value)
    return {name: torch.stack(values) for name, values in kept.items()}, list(seen)


def begin(model: Model, arrays: Tensors, scalars: Header, _: Sequence[Tensor]) -> tuple[Tensors, list[str]]:
    """Make ready to train: the model with its weights, an optimizer, the text."""
    sizes = {name: scalars[name] for name in SIZES}
    torch.manual_seed(scalars["seed"])
    language = model.module.DecoderLM(**sizes, dropout=scalars["dropout"], use_fused_kernel=scalars["fused"])
    language.to(kernels.DEVICE)
    _load(language, {name: array for name, array in arrays.items() if "." in name})
    torch.manual_seed(scalars["seed"])
    text = {name: arrays[name] for name in ("tokens", "attn_mask", "counted")}
    optimizer = torch.optim.Adam(language.parameters(), lr=scalars["rate"])
    model.training = Training(language, optimizer, text, scalars["batch"])
    return {}, []


def steps(model: Model, __: Tensors, scalars: Header, _: Sequence[Tensor]) -> tuple[Tensors, list[str]]:
    """The losses of the next ``steps`` steps."""
    assert model.training is not None
    losses = [model.training.step() for _ in range(scalars["steps"])]
    return {"losses": torch.stack(losses)}, []


def _load(module: torch.nn.Module, weights: Tensors) -> None:
    """Give ``module`` its weights."""
    own = {name for name, _ in module.named_parameters()}
    if own != set(weights):
        wrong = ", ".join(sorted(own ^ set(weights)))
        raise FaultError(
            f"{type(module).__name__} must keep the parameters of the template; these differ: {wrong}"
        )
    module.load_state_dict(weights, strict=False)


def _loss(logits: Tensor, targets: Tensor, counted: Tensor) -> Tensor:
    """Mean cross entropy of the targets that count."""
    each = functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
    return (each * counted.flatten()).sum() / counted.sum()


def _gradient(name: str, tensor: Tensor) -> Tensor:
    if tensor.grad is None:
        raise FaultError(f"no gradient arrives at {name}")
    return tensor.grad


def _gradients(module: torch.nn.Module, path: str) -> Tensors:
    return {
        f"gradient of {name}, {path}": _gradient(name, parameter)
        for name, parameter in module.named_parameters()
    }


FUNCTIONS: Mapping[str, Callable[[Model, Tensors, Header, Sequence[Tensor]], tuple[Tensors, list[str]]]] = {
    "attn_softmax": attn_softmax,
    "layer_norm": layer_norm,
    "block": block,
    "train": train,
    "begin": begin,
    "steps": steps,
}
