"""Given: trains your language model for an epoch on a translation task, with or without your kernels.

    python train_translation.py --use-fused-kernel True
    python train_translation.py --use-fused-kernel False
    python train_translation.py --compare --json comparison.json

The last command trains both ways in turn, in blocks of steps, and prints what your kernels are worth: the
speedup with its interval, and a table that says for softmax and layer norm which share of a step they take
and which speedup of the whole follows from theirs (Amdahl). Without a GPU, run it on the simulator with a
tiny model:

    grader simulate -- python train_translation.py --use-fused-kernel True --tiny
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kernels
import torch
import translation
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from torch import Tensor
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

MODEL = {"vocabulary": 10_000, "width": 256, "heads": 8, "hidden": 256, "positions": 40, "layers": 4}
TINY = {"vocabulary": 600, "width": 32, "heads": 2, "hidden": 32, "positions": 40, "layers": 1}
DROPOUT = 0.1
LOOK_EVERY = 50  # steps between looks at the loss, each of which waits for the device
BLOCK = 25  # steps of one way before the other has its turn
FEWEST_PAIRS = 8  # of blocks, for an interval
PROFILED = 10  # steps
MODULES = ("softmax", "layer norm")


@dataclass(frozen=True)
class Epoch:
    """One epoch: seconds of training alone, tokens that are no padding, the loss of every step in nats."""

    seconds: float
    tokens: int
    losses: list[float]

    @property
    def tokens_per_second(self) -> float:
        """Of the whole epoch."""
        return self.tokens / self.seconds


@dataclass(frozen=True)
class Setting:
    """What is trained: the student's file, the sizes of the model, the text."""

    module: ModuleType
    sizes: dict[str, int]
    text: translation.Text
    batch: int
    rate: float
    seed: int
    unigram: float  # nats per token of a model that knows only how frequent each token is

    @property
    def steps(self) -> int:
        """Of an epoch."""
        return len(self.text.tokens) // self.batch


@dataclass
class Trainer:
    """A model with its optimizer on its way through the epoch."""

    setting: Setting
    fused: bool
    losses: list[Tensor] = field(default_factory=list)

    def __post_init__(self) -> None:
        torch.manual_seed(self.setting.seed)
        self.model = self.setting.module.DecoderLM(
            **self.setting.sizes, dropout=DROPOUT, use_fused_kernel=self.fused
        ).to(kernels.DEVICE)
        self._optimizer = torch.optim.Adam(self.model.parameters(), lr=self.setting.rate)
        order = torch.Generator().manual_seed(self.setting.seed)
        self._order = torch.randperm(len(self.setting.text.tokens), generator=order).to(kernels.DEVICE)

    def step(self) -> None:
        """One step on the next batch; the loss stays on the device."""
        text, batch = self.setting.text, self.setting.batch
        begin = len(self.losses) * batch % (self.setting.steps * batch)
        lines = self._order[begin : begin + batch]
        tokens, counted = text.tokens[lines], text.counted[lines]
        logits = self.model(tokens[:, :-1], text.mask[lines])
        each = functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")
        loss = (each * counted.flatten()).sum() / counted.sum()
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self._optimizer.step()
        self.losses.append(loss.detach())

    def seconds(self, steps: int) -> float:
        """How long the next ``steps`` take, until the device is done."""
        _wait()
        begin = time.perf_counter()
        for _ in range(steps):
            self.step()
        _wait()
        return time.perf_counter() - begin


def _wait() -> None:
    if kernels.DEVICE == "cuda":
        torch.cuda.synchronize()


def train(setting: Setting, *, fused: bool) -> Epoch:
    """One epoch with a progress bar."""
    trainer = Trainer(setting, fused)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("epoch", total=setting.steps)
        _wait()
        begin = time.perf_counter()
        for step in range(setting.steps):
            trainer.step()
            if step % LOOK_EVERY == 0:
                bar.update(task, completed=step + 1, description=f"loss {trainer.losses[-1].item():.3f}")
        _wait()
        seconds = time.perf_counter() - begin
        bar.update(task, completed=setting.steps)
    return Epoch(seconds, setting.text.count, torch.stack(trainer.losses).tolist())


@dataclass(frozen=True)
class Part:
    """Seconds per step that one module takes, forward and backward, both ways."""

    name: str
    unfused: float
    fused: float


@dataclass(frozen=True)
class Comparison:
    """Both ways side by side: the median of the blocks' speedups and its 95 % interval, and the rest."""

    device: str
    speedup: float
    interval: tuple[float, float]
    epoch_seconds: dict[str, float]  # by way, from the median block
    tokens_per_second: dict[str, float]
    losses: dict[str, list[float]]
    unigram: float
    step_seconds: dict[str, float]  # of the profiled steps, as the profiler sees the device
    parts: list[Part]

    @property
    def predicted(self) -> float:
        """The speedup of a step if nothing but the listed modules changed (Amdahl)."""
        saved = sum(part.unfused - part.fused for part in self.parts)
        return self.step_seconds["unfused"] / (self.step_seconds["unfused"] - saved)


def compare(setting: Setting, block: int = BLOCK) -> Comparison:
    """Train both ways in turn (A B B A) for an epoch each, then profile a few steps."""
    from grader.judge.timing.statistics import interval  # noqa: PLC0415 - training needs no grader

    trainers = {"unfused": Trainer(setting, fused=False), "fused": Trainer(setting, fused=True)}
    for trainer in trainers.values():
        trainer.seconds(2)  # libraries load, memory is allocated
        trainer.losses.clear()
    block = max(1, min(block, setting.steps // FEWEST_PAIRS))
    times: dict[str, list[float]] = {way: [] for way in trainers}
    for number in range(setting.steps // block):
        for way in ("unfused", "fused") if number % 2 == 0 else ("fused", "unfused"):
            times[way].append(trainers[way].seconds(block))
    ratios = [math.log(slow / fast) for slow, fast in zip(times["unfused"], times["fused"], strict=True)]
    found = interval(ratios)
    per_step = {way: sorted(values)[len(values) // 2] / block for way, values in times.items()}
    losses = {way: torch.stack(trainer.losses).tolist() for way, trainer in trainers.items()}
    profiles = {way: profile(setting.module, trainer) for way, trainer in trainers.items()}
    return Comparison(
        device=torch.cuda.get_device_name() if kernels.DEVICE == "cuda" else "CPU, kernels on the simulator",
        speedup=math.exp(found.estimate),
        interval=(math.exp(found.low), math.exp(found.high)),
        epoch_seconds={way: seconds * setting.steps for way, seconds in per_step.items()},
        tokens_per_second={
            way: setting.text.count / (seconds * setting.steps) for way, seconds in per_step.items()
        },
        losses=losses,
        unigram=setting.unigram,
        step_seconds={way: seconds["step"] for way, seconds in profiles.items()},
        parts=[Part(name, profiles["unfused"][name], profiles["fused"][name]) for name in MODULES],
    )


class _Begin(torch.autograd.Function):
    """Opens a range of the profiler's in the backward pass where the forward pass closes one."""

    @staticmethod
    def forward(ctx: Any, inp: Tensor, ranges: list[Any], name: str) -> Tensor:
        ctx.ranges, ctx.name = ranges, name
        return inp.view_as(inp)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        ctx.ranges.append(torch.profiler.record_function(ctx.name))
        ctx.ranges[-1].__enter__()
        return gradient, None, None


class _End(torch.autograd.Function):
    """Closes it: autograd works through what lies between the two in one go."""

    @staticmethod
    def forward(ctx: Any, inp: Tensor, ranges: list[Any]) -> Tensor:
        ctx.ranges = ranges
        return inp.view_as(inp)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        ctx.ranges.pop().__exit__(None, None, None)
        return gradient, None


def _in_range(function: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    ranges: list[Any] = []

    def wrapped(inp: Tensor, *others: Any, **named: Any) -> Tensor:
        inp = _End.apply(inp, ranges)
        with torch.profiler.record_function(name):
            output = function(inp, *others, **named)
        return _Begin.apply(output, ranges, name)

    return wrapped


def profile(module: ModuleType, trainer: Trainer) -> dict[str, float]:
    """Seconds per step of each of ``MODULES`` and of the whole step, by PyTorch's profiler.

    On a GPU these are the times of kernels, on a CPU those of the calls.
    """
    functions = {
        "softmax": ("attn_softmax", "unfused_softmax"),
        "layer norm": ("layer_norm", "unfused_layer_norm"),
    }
    originals = {name: getattr(module, name) for names in functions.values() for name in names}
    activities = [torch.profiler.ProfilerActivity.CPU]
    if kernels.DEVICE == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    for part, names in functions.items():
        for name in names:
            setattr(module, name, _in_range(originals[name], part))
    try:
        trainer.seconds(2)
        with torch.profiler.profile(activities=activities) as profiler:
            for _ in range(PROFILED):
                with torch.profiler.record_function("step"):
                    trainer.step()
            _wait()
    finally:
        for name, original in originals.items():
            setattr(module, name, original)
    return _shares(profiler.events())


def _shares(events: Sequence[Any]) -> dict[str, float]:
    cpu = [event for event in events if event.device_type.name == "CPU"]
    if kernels.DEVICE != "cuda":
        names = ("step", *MODULES)
        return {
            name: sum(event.cpu_time_total for event in cpu if event.name == name) / PROFILED / 1e6
            for name in names
        }
    parts = {
        name: sum(event.device_time_total for event in cpu if event.name == name) / PROFILED / 1e6
        for name in MODULES
    }
    kernel_time = sum(kernel.duration for event in cpu for kernel in event.kernels) / PROFILED / 1e6
    return {"step": kernel_time, **parts}


def show(found: Comparison, console: Console) -> None:
    """The comparison for people."""
    table = Table("", "unfused", "fused", "speedup", "share of a step", box=None, title="Amdahl, per step")
    whole = found.step_seconds
    for part in found.parts:
        table.add_row(
            part.name,
            f"{part.unfused * 1e3:.3f} ms",
            f"{part.fused * 1e3:.3f} ms",
            f"{part.unfused / part.fused:.2f}x" if part.fused else "",
            f"{part.unfused / whole['unfused']:.1%}",
        )
    rest = {way: whole[way] - sum(getattr(part, way) for part in found.parts) for way in whole}
    table.add_row("everything else", *(f"{rest[way] * 1e3:.3f} ms" for way in ("unfused", "fused")), "", "")
    table.add_row("step", *(f"{whole[way] * 1e3:.3f} ms" for way in ("unfused", "fused")), "", "")
    console.print(table)
    console.print(f"predicted for the whole step {found.predicted:.2f}x")
    low, high = found.interval
    console.print(f"measured {found.speedup:.2f}x (95 %: {low:.2f} to {high:.2f}) on {found.device}")
    for way, seconds in found.epoch_seconds.items():
        rate, loss = found.tokens_per_second[way], found.losses[way][-1]
        console.print(f"{way:8} {seconds:.1f} s per epoch, {rate:,.0f} tokens/s, last loss {loss:.3f}")


def unigram_loss(text: translation.Text, vocabulary: int) -> float:
    """Nats per target token of the best model that looks at nothing."""
    targets = text.tokens[:, 1:][text.counted.bool()]
    share = torch.bincount(targets, minlength=vocabulary).double() / len(targets)
    return float(-(share[share > 0] * share[share > 0].log()).sum())


def _flag(text: str) -> bool:
    if text not in {"True", "False"}:
        raise argparse.ArgumentTypeError(f"{text!r} is neither True nor False")
    return text == "True"


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Train the language model for one epoch.")
    parser.add_argument("--use-fused-kernel", type=_flag, metavar="True|False", help="your kernels or not")
    parser.add_argument("--compare", action="store_true", help="both ways in turn, and where the time goes")
    parser.add_argument(
        "--folder", type=Path, default=Path(__file__).parent, help="of transformer.py and kernels"
    )
    parser.add_argument(
        "--data", default=translation.SYNTHETIC, help="synthetic, a folder, a file or a data set"
    )
    parser.add_argument(
        "--sentences", type=int, default=0, help="at most; by default 160000, 400 with --tiny"
    )
    parser.add_argument("--batch", type=int, default=0, help="lines per step; by default 128, 8 with --tiny")
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=11868)
    parser.add_argument("--tiny", action="store_true", help="a model that a CPU and the simulator can train")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write times and losses to FILE")
    given = parser.parse_args(arguments)
    if not given.compare and given.use_fused_kernel is None:
        parser.error("say --use-fused-kernel True or False, or --compare")
    given.sentences = given.sentences or (400 if given.tiny else 160_000)
    given.batch = given.batch or (8 if given.tiny else 128)
    return given


def prepare(given: argparse.Namespace) -> Setting:
    """Load the student's file and kernels, read the data, learn the tokenizer, encode."""
    sys.path.insert(0, str(given.folder.resolve()))
    if given.compare or given.use_fused_kernel:
        kernels.build(given.folder)
    sizes = TINY if given.tiny else MODEL
    pairs = translation.load(given.data, given.sentences, given.seed)
    tokenizer = translation.train_tokenizer(pairs, sizes["vocabulary"])
    text = translation.encode(pairs, tokenizer, sizes["positions"], kernels.DEVICE)
    return Setting(
        module=importlib.import_module("transformer"),
        sizes=sizes,
        text=text,
        batch=given.batch,
        rate=given.learning_rate,
        seed=given.seed,
        unigram=unigram_loss(text, sizes["vocabulary"]),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Train or compare as the command line says."""
    given = options(arguments)
    console = Console()
    setting = prepare(given)
    console.print(
        f"{len(setting.text.tokens):,} lines, {setting.text.count:,} tokens, {setting.steps} steps "
        f"on {kernels.DEVICE}"
    )
    if given.compare:
        found = compare(setting)
        show(found, console)
        record: dict[str, Any] = {**asdict(found), "predicted": found.predicted}
    else:
        epoch = train(setting, fused=given.use_fused_kernel)
        console.print(
            f"epoch {epoch.seconds:.1f} s, {epoch.tokens_per_second:,.0f} tokens/s, "
            f"last loss {epoch.losses[-1]:.3f} (a unigram model: {setting.unigram:.3f})"
        )
        record = {**asdict(epoch), "tokens_per_second": epoch.tokens_per_second, "unigram": setting.unigram}
        record |= {"fused": given.use_fused_kernel}
    if given.json is not None:
        given.json.write_text(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
