"""The files of a problem that was imported: its reference and its inputs, which run here on the CPU.

Such a folder has ``reference.py`` with ``generate_input(size, seed)``, ``ref_kernel(data)`` and
``check_implementation(data, output)``, which may import ``task.py`` and ``utils.py``. They are written for a
GPU: "cuda" becomes PyTorch's default device, and what they ask of ``torch.cuda`` is answered. The usual names
of ``utils`` are these here. They compare nothing, but tell what a check allows.

The files run in the judge, as modules of an assignment do: a folder is as trusted as the grader itself.

Layer: imports numpy, torch and the library of problems.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import inspect
import re
from dataclasses import dataclass
from functools import lru_cache, partial
from math import prod
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

import ml_dtypes
import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from grader.problems.contents import EQUAL, NORMAL, Content
from grader.problems.distributions import build_cases
from grader.problems.dtypes import DTYPES
from grader.problems.explained import FormulaError
from grader.problems.formula_module import parameters_of
from grader.problems.module import ModuleProblem, Tolerance
from grader.problems.problem import ArrayParameter, Candidate, Expectation, Inputs, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from torch import Tensor

    from grader.problems.contents import Draw
    from grader.problems.module import Operators
    from grader.problems.problem import Case, Parameter

    Spec = Mapping[str, Any]

TESTS = "tests of the original"
"""The group of the cases that an original lists."""
REFERENCE, GENERATE, CHECK = "ref_kernel", "generate_input", "check_implementation"
_SEED, _MOST_SEED = "seed", 1 << 31
_DEVICE, _CUDA = "__device_here__", "__cuda_here__"
_NAMED_CUDA = re.compile(r"cuda(:\d+)?")
_OF_DEVICE = re.compile(r"\.(device|is_cuda)\b")


class Original:
    """The files of an imported problem, each of which is run when it is first needed.

    Args:
        folder: with ``reference.py`` and what that imports.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._modules: dict[str, ModuleType] = {}
        self._last = lru_cache(maxsize=2)(self._draw)  # the tensors of a case come one by one

    def ref_kernel(self, data: Any) -> Any:  # noqa: ANN401 - a tensor, or a tuple
        """What the original's reference returns for ``data``, as it stands."""
        return self.function(REFERENCE)(data)

    def function(self, name: str) -> Callable[..., Any]:
        """A function of ``reference.py``.

        Raises:
            FormulaError: there is none of this name, or the file cannot be run.
        """
        function = getattr(self._module("reference"), name, None)
        if not callable(function):
            raise FormulaError(f"{self.folder / 'reference.py'} has no function {name}")
        return function  # type: ignore[no-any-return] # whatever it returns

    def module(self, name: str) -> ModuleType:
        """A file of the folder, run, without its suffix.

        Raises:
            FormulaError: it cannot be run.
        """
        return self._module(name)

    def call(self, module: ModuleType, name: str, *arguments: Any) -> Any:  # noqa: ANN401
        """What a function or a class of a file returns.

        Raises:
            FormulaError: there is none of this name, or it fails.
        """
        function = getattr(module, name, None)
        if not callable(function):
            raise FormulaError(f"{module.__name__}.py has no {name}")
        return _tried(name, partial(function, *arguments))

    def instance(self, module: str, name: str) -> Any:  # noqa: ANN401 - of a class of the folder
        """An object of a class of one of the files.

        Raises:
            FormulaError: there is no such class, or it cannot be made.
        """
        kind = getattr(self._module(module), name, None)
        if not isinstance(kind, type):
            raise FormulaError(f"{self.folder / module}.py has no class {name}")
        return _tried(name, kind)

    def inputs(self, **sizes: Any) -> Drawn:  # noqa: ANN401 - as the original has them
        """What ``generate_input`` makes for these sizes."""
        return Drawn(self, sizes)

    def data(self, spec: Spec, seed: int) -> tuple[Any, ...]:
        """All that ``generate_input`` makes for a test, in order: not to be changed.

        Raises:
            FormulaError: it fails.
        """
        drawn = self.drawn(spec, seed)
        return tuple(drawn) if isinstance(drawn, tuple | list) else (drawn,)

    def drawn(self, spec: Spec, seed: int) -> Any:  # noqa: ANN401 - a tensor, or a tuple
        """The same as ``generate_input`` returns it.

        Raises:
            FormulaError: it fails.
        """
        frozen = {name: tuple(value) if isinstance(value, list) else value for name, value in spec.items()}
        return self._last(tuple(sorted(frozen.items())), seed % _MOST_SEED)

    def _draw(self, spec: tuple[tuple[str, Any], ...], seed: int) -> Any:  # noqa: ANN401
        function, named = self.function(GENERATE), dict(spec)
        if _SEED in inspect.signature(function).parameters:
            named[_SEED] = seed
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return _tried(GENERATE, partial(function, **named))

    def results(self, data: Sequence[Any], *, packed: bool) -> list[Any]:
        """What the reference makes of copies of ``data``, in order; nothing of these is changed.

        Raises:
            FormulaError: it fails.
        """
        copies = [value.clone() if isinstance(value, torch.Tensor) else value for value in data]
        return self.returned(copies, packed=packed)

    def returned(self, data: Sequence[Any], *, packed: bool) -> list[Any]:
        """What the reference makes of ``data``, in order, which it may change.

        Raises:
            FormulaError: it fails.
        """
        result = _tried(REFERENCE, lambda: self.ref_kernel(tuple(data) if packed else data[0]))
        return list(result) if isinstance(result, tuple | list) else [result]

    def compared(self, data: Any, output: Any) -> tuple[float, float] | None:  # noqa: ANN401
        """The relative and the absolute tolerance of ``check_implementation``, in its first comparison.

        None where it compares in a way of its own.

        Raises:
            FormulaError: it fails.
        """
        try:
            with _Comparing():
                _tried(CHECK, lambda: self.function(CHECK)(data, output))
        except _ComparedError as comparison:
            return comparison.rtol, comparison.atol
        return None

    def _module(self, name: str) -> ModuleType:
        """A file of the folder, run once, whose imports from the folder are those files."""
        if name in self._modules:
            return self._modules[name]
        path, module = self.folder / f"{name}.py", ModuleType(name)
        module.__dict__.update(
            {
                "__file__": str(path),
                "__builtins__": {**vars(builtins), "__import__": self._import},
                _DEVICE: lambda: torch.get_default_device().type,
                _CUDA: _CUDA_HERE,
            }
        )
        self._modules[name] = module
        try:
            tree = ast.parse(path.read_bytes(), str(path))
            ast.fix_missing_locations(_here(tree))
            exec(compile(tree, path, "exec"), vars(module))  # noqa: S102 - as a module of an assignment
        except Exception as error:  # a teacher's code may raise anything
            del self._modules[name]
            raise FormulaError(f"{path} cannot be run: {type(error).__name__}: {error}") from error
        return module

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 - as Python calls it
        locals: Mapping[str, Any] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Python's import, with the files of the folder ahead of all others."""
        if name == _CHALLENGE_BASE.__name__:
            return _CHALLENGE_BASE
        if name == "utils" and set(fromlist or ()) <= vars(_UTILS).keys():
            return _UTILS
        if "." not in name and (self.folder / f"{name}.py").is_file():
            module = self._module(name)
            if name == "utils":
                module.__dict__.update(_OF_UTILS)
            return module
        return __import__(name, globals, locals, fromlist or (), level)


@dataclass(frozen=True)
class Drawn:
    """The inputs of an original for some sizes."""

    original: Original
    sizes: Spec

    def content(
        self, number: int, *shape: int, also: Content | None = None, repeated: bool = False
    ) -> Content:
        """What ``generate_input`` makes as number ``number`` of its data, from 0 on.

        Args:
            number: of the tensor.
            shape: that it has.
            also: content in whose further distributions the tensor may be, too.
            repeated: whether all its elements may also be the same.
        """

        def usual(random: np.random.Generator, _shape: tuple[int, ...]) -> NDArray[Any]:
            # All draws of a case have this seed, however much of it the others have used.
            seed = int(random.bit_generator.seed_seq.entropy)  # type: ignore[attr-defined]
            array = to_array(self.original.data(self.sizes, seed)[number])
            if array.shape != shape:
                sizes = ", ".join(f"{name} = {value}" for name, value in self.sizes.items())
                raise FormulaError(
                    f"generate_input makes {array.shape} as number {number} for {sizes}, not {shape}"
                )
            return array

        def equal(random: np.random.Generator, shape: tuple[int, ...]) -> NDArray[Any]:
            array = usual(random, shape)
            return np.full_like(array, array.flat[0] if array.size else 0)

        def draws(dtype: str) -> Mapping[str, Draw]:
            further = {} if also is None else also.draws(dtype)
            return {**further, **({EQUAL: equal} if repeated else {}), NORMAL: usual}

        return Content(shape, draws)


def to_array(tensor: Tensor) -> NDArray[Any]:
    """The numbers of a tensor as problems hold them."""
    dense = tensor.detach().contiguous()
    if dense.dtype is torch.bfloat16:
        return dense.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return (dense.view(torch.uint8) if dense.dtype is torch.bool else dense).numpy()


def to_tensor(array: NDArray[Any], dtype: str) -> Tensor:
    """A tensor of the element type ``dtype`` with the numbers of an array, as ``to_array`` makes it."""
    own = np.array(array, DTYPES[dtype].storage)
    if dtype == "bfloat16":
        return torch.from_numpy(own.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(own).view(getattr(torch, dtype))


def tolerant(
    original: Original,
    *,
    id: str,  # noqa: A002 - the field's name
    file: str,
    function: str,
    arguments: Mapping[str, str | type],
    results: Mapping[str, str],
    tests: Sequence[Spec],
    tolerance: Tolerance,
    timing: Sequence[Spec] = (),
    in_place: Sequence[str] = (),
    packed: bool = False,
    spread: bool = False,
    initial: int | None = None,
    weights: Sequence[str] = (),
    torch_operators: Operators = "views",
) -> ModuleProblem:
    """The problem of an original that no formula can be traced of: its cases are its tests, with fresh seeds.

    Args:
        original: its files.
        id: the module's name.
        file: the Python file of a submission.
        function: the name of the function in it.
        arguments: as in ``formula_module.module``.
        results: likewise.
        tests: what ``generate_input`` gets beside the seed, for each case. Numbers of type int are the sizes
            of the case; the others say which distribution it has.
        tolerance: how far an element may be from what the reference returns.
        timing: the same for the cases that performance is measured on.
        in_place: those arguments that are filled whose content counts before.
        packed: whether the reference and the function take one tuple of all arguments.
        spread: whether the function takes them one by one, all the same.
        initial: as in ``formula_module.module``.
        weights: likewise.
        torch_operators: which operators of PyTorch it may use.
    """
    listed = _Listed(
        original, parameters_of(arguments, results, in_place), tuple(arguments), packed, tolerance
    )
    specs = {_key(*_split(spec)): spec for spec in (*tests, *timing)}

    def cases(seed: int, group: str, chosen: Sequence[Spec]) -> tuple[Case, ...]:
        rows = {_key(*split): (group, *split) for split in map(_split, chosen)}
        return build_cases(seed, rows.values())

    def spec(case: Case) -> Spec:
        return specs[_key(case.sizes, case.distribution)]

    return ModuleProblem(
        id=id,
        file=file,
        entry_point=function,
        parameters=listed.parameters,
        groups=(TESTS,),
        cases=lambda seed: cases(seed, TESTS, tests),
        timing_cases=lambda seed: cases(seed, "timed", timing),
        inputs=lambda case: listed.inputs(spec(case), case.seed),
        oracle=lambda _case, inputs: listed.expected(inputs),
        minimal_bytes=lambda case: listed.bytes(spec(case), case.seed),
        wide=tolerance.why,
        made=tuple(name for name in results if name not in arguments),
        packed=packed and not spread,
        initial=initial,
        weights=tuple(weights),
        torch_operators=torch_operators,
        tolerance=tolerance,
    )


def _split(spec: Spec) -> tuple[dict[str, int], str]:
    """The sizes of a test, and a text about everything else that it says."""
    sizes = {name: value for name, value in spec.items() if type(value) is int}
    further = ", ".join(f"{name} {value}" for name, value in spec.items() if name not in sizes)
    return sizes, further or NORMAL


def _key(sizes: Mapping[str, int], distribution: str) -> tuple[object, ...]:
    return (*sizes.items(), distribution)


@dataclass(frozen=True)
class _Listed:
    """The inputs of an original's tests, and what its reference makes of them."""

    original: Original
    parameters: tuple[Parameter, ...]
    passed: tuple[str, ...]
    packed: bool
    tolerance: Tolerance

    @property
    def arrays(self) -> Mapping[str, ArrayParameter]:
        """The tensors by name."""
        return {value.name: value for value in self.parameters if isinstance(value, ArrayParameter)}

    @property
    def outputs(self) -> list[ArrayParameter]:
        """The tensors that are returned or filled, in order."""
        return [array for array in self.arrays.values() if array.role is not Role.INPUT]

    def inputs(self, spec: Spec, seed: int) -> Inputs:
        """The arguments of a case."""
        data = dict(zip(self.passed, self.original.data(spec, seed), strict=True))
        results = self.original.results(tuple(data.values()), packed=self.packed)
        return Inputs(
            {
                name: to_array(value)
                for name, value in data.items()
                if name in self.arrays and self.arrays[name].role is not Role.OUTPUT
            },
            {
                output.name: tuple(result.shape)
                for output, result in zip(self.outputs, results, strict=True)
                if output.role is Role.OUTPUT
            },
            {name: value for name, value in data.items() if name not in self.arrays},
        )

    def expected(self, inputs: Inputs) -> Mapping[str, Expectation]:
        """What the reference makes of them, and the original's tolerance around it."""

        def value(name: str) -> Any:  # noqa: ANN401 - a tensor or a number
            if name not in self.arrays:
                return inputs.scalars[name]
            dtype = self.arrays[name].dtype
            if name in inputs.outputs:
                return torch.zeros(inputs.outputs[name], dtype=getattr(torch, dtype))
            array = inputs.arrays[name]
            assert array is not None
            return to_tensor(array, dtype)

        results = self.original.results(tuple(map(value, self.passed)), packed=self.packed)
        return {
            output.name: self._around(to_array(result))
            for output, result in zip(self.outputs, results, strict=True)
        }

    def _around(self, result: NDArray[Any]) -> Expectation:
        exact = result.dtype.kind in "iu" and not self.tolerance.rtol and self.tolerance.atol < 1
        wide = result if exact else result.astype(np.float64)
        with np.errstate(invalid="ignore"):
            allowed = self.tolerance.atol + self.tolerance.rtol * np.abs(result.astype(np.float64))
        return Expectation((Candidate(wide, np.where(np.isfinite(allowed), allowed, 0.0)),))

    def bytes(self, spec: Spec, seed: int) -> int:
        """Every input read and every output written once."""
        inputs = self.inputs(spec, seed)
        arrays = (array for array in inputs.arrays.values() if array is not None)
        written = (
            (output.dtype, inputs.outputs[output.name])
            for output in self.outputs
            if output.name in inputs.outputs
        )
        again = sum(
            array.nbytes for output in self.outputs if (array := inputs.arrays.get(output.name)) is not None
        )
        made = sum(DTYPES[dtype].itemsize * prod(shape) for dtype, shape in written)
        return sum(array.nbytes for array in arrays) + again + made


def _tried(name: str, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever it returns
    """The result of a function of an original.

    Raises:
        FormulaError: it fails; one line says how.
    """
    try:
        return call()
    except FormulaError:
        raise
    except Exception as error:  # a teacher's code may raise anything
        text = str(error).partition("\n")[0].rstrip(".")
        raise FormulaError(f"{name} fails on the CPU: {type(error).__name__}: {text}") from error


def _here(node: ast.AST) -> ast.AST:
    """Code for "cuda" as code that runs on whatever device is PyTorch's default."""
    match node:
        case ast.Constant(value=str(text)) if _NAMED_CUDA.fullmatch(text):
            return _device()
        case ast.JoinedStr() | ast.MatchValue():
            return node
        case ast.Assert(test=test) if _OF_DEVICE.search(ast.unparse(test)):
            return ast.Pass()
        case ast.Attribute(value=ast.Name("torch"), attr="cuda"):
            return ast.Name(_CUDA, ast.Load())
        case ast.Call(func=ast.Attribute(attr="cuda") as function):
            function.attr, node.args = "to", [_device()]
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            setattr(node, name, _here(value))
        elif isinstance(value, list):
            setattr(node, name, [_here(part) if isinstance(part, ast.AST) else part for part in value])
    return node


def _device() -> ast.expr:
    return ast.Call(ast.Name(_DEVICE, ast.Load()), [], [])


class _ComparedError(BaseException):
    """A check compares now: no error, and none that a check may catch."""

    def __init__(self, rtol: float, atol: float) -> None:
        super().__init__()
        self.rtol, self.atol = rtol, atol


class _Comparing(TorchFunctionMode):
    """Ends at the first comparison by PyTorch inside of it."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - PyTorch's protocol
        named = dict(kwargs or {})
        if func in {torch.allclose, torch.isclose, torch.Tensor.allclose, torch.Tensor.isclose}:
            _close(*args, **named)
        if func in {torch.equal, torch.Tensor.equal}:
            _equal()
        return func(*args, **named)


def _close(
    _output: object, _expected: object, rtol: float = 1e-5, atol: float = 1e-8, *_: object, **__: object
) -> NoReturn:
    raise _ComparedError(rtol, atol)


def _equal(*_: object, **__: object) -> NoReturn:
    raise _ComparedError(0.0, 0.0)


def _match(
    _data: object, _output: object, reference: object = None, rtol: float = 1e-5, atol: float = 1e-8
) -> NoReturn:
    del reference
    raise _ComparedError(rtol, atol)


def _match_of(reference: object, **tolerances: float) -> Callable[..., NoReturn]:
    return partial(_match, reference=reference, **tolerances)


def _nothing(*_: object, **__: object) -> None:
    pass


_CUDA_HERE = SimpleNamespace(
    synchronize=_nothing,
    empty_cache=_nothing,
    manual_seed=_nothing,
    manual_seed_all=_nothing,
    is_available=lambda: True,
    current_device=lambda: 0,
    device_count=lambda: 1,
)
"""What reference files ask of ``torch.cuda``."""

_OF_UTILS: Mapping[str, Any] = {
    "make_match_reference": _match_of,
    "match_reference": _match,
    "verbose_allclose": _close,
    "verbose_allequal": _equal,
    "DeterministicContext": contextlib.nullcontext,
    "set_seed": torch.manual_seed,
    "clear_l2_cache": _nothing,
    "get_device": torch.get_default_device,
}


class _ChallengeBase:
    """What a challenge of the LeetGPU form says of itself."""

    def __init__(
        self, name: str = "", atol: float = 1e-5, rtol: float = 1e-5, num_gpus: int = 1, **_: object
    ) -> None:
        self.name, self.atol, self.rtol, self.num_gpus = name, atol, rtol, num_gpus


_CHALLENGE_BASE = ModuleType("core.challenge_base")
_CHALLENGE_BASE.__dict__["ChallengeBase"] = _ChallengeBase

_UTILS = ModuleType("utils")
_UTILS.__dict__.update(_OF_UTILS)
"""What the form gives to reference files beside their own folder."""
