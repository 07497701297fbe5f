"""The text of a program of one file that calls launchers on saved arrays, and of what builds it."""

from __future__ import annotations

import math
import os
import textwrap
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from grader.devices.device import ArrayArgument, HandleArgument, Memory, ScalarArgument, StreamArgument
from grader.problems.dtypes import DTYPES
from grader.problems.problem import Role
from grader.records.mangled import demangled

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from grader.devices.device import Argument, Call
    from grader.problems.problem import Case, KernelProblem, Scalar

_WIDTH = 110  # of a line
_CUDA = """\
// {title}.
// Calls {functions} as the grader does, and prints the first wrong elements. See the Makefile.
#include "{source}"
#include <cmath>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

template <typename T> std::vector<T> load_npy(const std::string &name) {{
  std::ifstream file(name + ".npy", std::ios::binary);
  if (!file) std::cerr << name << ".npy is missing: run this in its folder\\n", std::exit(2);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {{}});
  const size_t header = 10 + (unsigned char)bytes[8] + 256 * (unsigned char)bytes[9];
  return std::vector<T>((const T *)&bytes[header], (const T *)(bytes.data() + bytes.size()));
}}
{on_device}template <typename T> void print_wrong(const std::string &name, const T *output, std::vector<size_t> sizes) {{
  const auto expected = load_npy<std::conditional_t<std::is_integral_v<T>, T, double>>(name + "_expected");
  const std::vector<double> allowed = load_npy<double>(name + "_allowed");
  std::vector<T> actual(expected.size());
  cudaMemcpy(actual.data(), output, actual.size() * sizeof(T), cudaMemcpyDefault);
  size_t wrong = 0;
  for (size_t i = 0; i < actual.size(); i++) {{
    const auto a = static_cast<std::conditional_t<(sizeof(T) < 4), float, T>>(actual[i]);
    const auto e = expected[i];
    if (a == e || (a != a && e != e) || std::abs(double(a - e)) <= allowed[i] || wrong++ >= 5) continue;
    std::string index;
    for (size_t axis = sizes.size(), rest = i; axis-- > 0; rest /= sizes[axis])
      index = std::to_string(rest % sizes[axis]) + (index.empty() ? "" : ", ") + index;
    std::cout << name << "[" << index << "]: expected " << +e << ", got " << +a << "\\n";
  }}
  std::cout << name << ": " << wrong << " of " << actual.size() << " wrong\\n";
}}

int main() {{
{body}}}
"""  # noqa: E501 - a line of C++
_ON_DEVICE = """\
template <typename T> T *on_device(const std::string &name) {
  const std::vector<T> elements = load_npy<T>(name);
  T *device;
  cudaMalloc(&device, elements.size() * sizeof(T));
  cudaMemcpy(device, elements.data(), elements.size() * sizeof(T), cudaMemcpyHostToDevice);
  return device;
}
"""
_THROUGH_STREAM = """\
template <typename T> T *on_device(const std::string &name, cudaStream_t stream) {
  const std::vector<T> elements = load_npy<T>(name);
  T *host, *device;
  cudaMallocHost(&host, elements.size() * sizeof(T));
  std::copy(elements.begin(), elements.end(), host);
  cudaMalloc(&device, elements.size() * sizeof(T));
  cudaMemcpyAsync(device, host, elements.size() * sizeof(T), cudaMemcpyHostToDevice, stream);
  return device;
}
"""
_PYTHON = """\
\"\"\"{title}.

Calls {functions} as the grader does, and prints the first wrong elements. The Makefile says how to run it.
\"\"\"

import sys
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / {folder!r}))

from {module} import {functions}


def load(name):
    return torch.from_numpy(np.load(HERE / f"{{name}}.npy"))


def print_wrong(name, output):
    actual = output.cpu()
    actual = actual.double().numpy() if actual.is_floating_point() else actual.numpy()
    expected, allowed = np.load(HERE / f"{{name}}_expected.npy"), np.load(HERE / f"{{name}}_allowed.npy")
    with np.errstate(all="ignore"):
        wrong = (actual != expected) & ~(np.abs(actual - expected) <= allowed)
    wrong &= ~((actual != actual) & (expected != expected))
    for index in map(tuple, np.argwhere(wrong)[:5].tolist()):
        print(f"{{name}}{{list(index)}}: expected {{expected[index]:.9g}}, got {{actual[index]:.9g}}")
    print(f"{{name}}: {{wrong.sum()}} of {{wrong.size}} wrong")


{body}"""
_MAKEFILE = """\
# {title}
#   make run        build and run on this machine's GPU
#   make simulate   run on the grader's simulator, which needs no GPU, with all of its checks
#   make debug      step through it with cuda-gdb
#   make sanitize   run it under compute-sanitizer
# printf works in kernels, too: if (blockIdx.x == 0 && threadIdx.x == 0) printf("%f\\n", value);
NVCC ?= nvcc
GRADER ?= grader

run: main
\t./main
simulate:
\t$(GRADER) simulate main.cu
debug: main_debug
\tcuda-gdb ./main_debug
sanitize: main
\tcompute-sanitizer ./main
main: main.cu {source}
\t$(NVCC) -std=c++17 -O3 -lineinfo -o $@ main.cu
main_debug: main.cu {source}
\t$(NVCC) -std=c++17 -g -G -o $@ main.cu
.PHONY: run simulate debug sanitize
"""
_MAKEFILE_OF_PYTHON = """\
# {title}
#   make run        run on this machine's GPU
#   make simulate   run on the grader's simulator, which needs no GPU, with all of its checks
#   make debug      let the kernels run in Python, where print and pdb work
#   make sanitize   run it under compute-sanitizer
GRADER ?= grader

run:
\tpython main.py
simulate:
\t$(GRADER) simulate main.py
debug:
\tTRITON_INTERPRET=1 python main.py
sanitize:
\tcompute-sanitizer python main.py
.PHONY: run simulate debug sanitize
"""


def files(
    problem: KernelProblem, case: Case, seed: int, source: Path, call: Call, folder: Path
) -> Mapping[str, str]:
    """A program of one file for ``folder``, and its Makefile, by name.

    Args:
        problem: as the launcher takes it.
        case: that is called.
        seed: of the run.
        source: the submission's file, in CUDA or Python.
        call: of the launcher.
        folder: where the program will be, beside the arrays.
    """
    title = f"{problem.id}, case {case.name!r}, seed {seed}"
    where = os.path.relpath(source.resolve(), folder.resolve())
    if source.suffix == ".py":
        text = _PYTHON.format(
            title=title,
            functions=", ".join(dict.fromkeys(step.entry_point for step in call.steps)),
            folder=str(PurePath(where).parent),
            module=source.stem,
            body="\n".join(_python(problem, call)) + "\n",
        )
        return {"main.py": text, "Makefile": _MAKEFILE_OF_PYTHON.format(title=title)}
    functions = ", ".join(dict.fromkeys(demangled(step.entry_point) for step in call.steps))
    streams: dict[int, str] = {}
    for argument in call.arguments:
        if isinstance(argument, StreamArgument):
            streams.setdefault(argument.index, argument.name)
    staged = case.staged and len(streams) == 1 and call.memory is not Memory.HOST
    on_device = "" if call.memory is Memory.HOST else _THROUGH_STREAM if staged else _ON_DEVICE
    lines = (
        *_declared_streams(streams.values()),
        *_declared_arguments(call, streams[0] if staged else ""),
        *_called(call, streams),
        *_compared(problem, call, streams[0] if staged else ""),
    )
    body = "".join(f"  {line}\n" for line in lines)
    text = _CUDA.format(title=title, functions=functions, source=where, on_device=on_device, body=body)
    return {"main.cu": text, "Makefile": _MAKEFILE.format(title=title, source=where)}


def _declared_streams(names: Collection[str]) -> Iterator[str]:
    if names:
        yield f"cudaStream_t {', '.join(names)};"
        pointers = ", ".join(f"&{name}" for name in names)
        create = "cudaStreamCreateWithFlags(each, cudaStreamNonBlocking);"
        yield f"for (cudaStream_t *each : {{{pointers}}}) {create}"


def _declared_arguments(call: Call, stream: str) -> Iterator[str]:
    """The arrays of main(), which come through ``stream`` if it is not empty."""
    for argument in call.arguments:
        if isinstance(argument, ArrayArgument):
            kind, name = _cpp_type(argument), variable(argument.name)
            if argument.null:
                yield f"{kind} *{name} = nullptr;"
            elif call.memory is Memory.HOST:
                yield f'std::vector<{kind}> {name} = load_npy<{kind}>("{name}");'
            else:
                passed = f'"{name}", {stream}' if stream else f'"{name}"'
                yield f"{kind} *{name} = on_device<{kind}>({passed});"
        elif isinstance(argument, ScalarArgument) and argument.ctype == "longs":
            yield f"const long {argument.name}[] = {{{', '.join(map(str, _numbers(argument.value)))}}};"


def _called(call: Call, streams: Mapping[int, str]) -> Iterator[str]:
    host = call.memory is Memory.HOST
    for number, step in enumerate(call.steps):
        passed = ", ".join(_passed(argument, streams, host=host) for argument in step.arguments)
        kept = f"auto *{_returned(number)} = " if step.returns else ""
        line = f"{kept}{demangled(step.entry_point)}({passed});"
        yield from textwrap.wrap(line, _WIDTH, subsequent_indent="  ", break_long_words=False)


def variable(name: str) -> str:
    """What an array is called in the program, and its file: ``x_2`` for the row ``x[2]`` of x."""
    return name.replace("[", "_").removesuffix("]")


def _returned(step: int) -> str:
    """The variable that holds the pointer which a call returns."""
    return f"returned_{step}"


def _compared(problem: KernelProblem, call: Call, stream: str) -> Iterator[str]:
    ended = f"cudaStreamSynchronize({stream})" if stream else "cudaDeviceSynchronize()"
    yield f'std::cout << "CUDA says: " << cudaGetErrorString({ended}) << "\\n";'
    end = ".data()" if call.memory is Memory.HOST else ""
    for array in _outputs(problem, call):
        sizes = ", ".join(map(str, array.shape))
        name = variable(array.name)
        yield f'print_wrong("{name}", {name}{end}, {{{sizes}}});'


def _cpp_type(argument: ArrayArgument) -> str:
    """What the elements of an array are in C++; bool is a byte, of which a vector can be made."""
    kind = DTYPES[argument.dtype].spellings[0]
    return "unsigned char" if kind == "bool" else kind


def _python(problem: KernelProblem, call: Call) -> Iterator[str]:
    """The statements behind the functions."""
    for argument in call.arguments:
        if isinstance(argument, ArrayArgument):
            name = variable(argument.name)
            if argument.null:
                value = "None"
            else:
                own = DTYPES[argument.dtype].storage.isbuiltin != 1  # its bits are saved
                view = f".view(torch.{argument.dtype})" if own else ""
                value = f'load("{name}"){view}.cuda()'
            yield f"{name} = {value}"
    for number, step in enumerate(call.steps):
        passed = ", ".join(
            _passed_in_python(argument)
            for argument in step.arguments
            if not isinstance(argument, StreamArgument)
        )
        yield f"{f'{_returned(number)} = ' if step.returns else ''}{step.entry_point}({passed})"
    for array in _outputs(problem, call):
        yield f'print_wrong("{variable(array.name)}", {variable(array.name)})'


def _passed_in_python(argument: ArrayArgument | ScalarArgument | HandleArgument) -> str:
    match argument:
        case ArrayArgument(name=name):
            return variable(name)
        case HandleArgument(step=step):
            return _returned(step)
        case ScalarArgument(value=value):
            return repr(value)


def _outputs(problem: KernelProblem, call: Call) -> list[ArrayArgument]:
    """The arrays that the launcher writes, but for those that are null, or free afterwards."""
    return [
        argument
        for argument in call.arguments
        if isinstance(argument, ArrayArgument)
        and problem.roles[argument.name.partition("[")[0]] is not Role.INPUT
        and argument.name.partition("[")[0] not in problem.free
        and not argument.null
    ]


def _passed(argument: Argument, streams: Mapping[int, str], *, host: bool) -> str:
    """An argument of the call in C++."""
    match argument:
        case HandleArgument(step=step):
            return _returned(step)
        case ArrayArgument(name=array, null=null, dtype=dtype):
            name = variable(array)
            pointer = f"{name}.data()" if host and not null else name
            return f"reinterpret_cast<bool *>({pointer})" if dtype == "bool" else pointer
        case StreamArgument(index=index):
            return streams[index]
        case ScalarArgument(name=name, ctype="longs"):
            return name
        case ScalarArgument(name=name, ctype=ctype, value=value):
            return f"/*{name}=*/{_literal(ctype, value)}"


def _literal(ctype: str, value: Scalar) -> str:
    """A number in C++."""
    if ctype == "bool":
        return "true" if value else "false"
    assert not isinstance(value, tuple)
    if isinstance(value, float) and not math.isfinite(value):
        return "NAN" if math.isnan(value) else f"{'-' * (value < 0)}INFINITY"
    if ctype == "float":
        return f"{float(str(np.float32(value)))!r}f"
    return f"{float(value)!r}" if ctype == "double" else f"{value}{'L' * (ctype == 'long')}"


def _numbers(value: Scalar) -> list[int]:
    assert isinstance(value, tuple)
    return [number for number in value if isinstance(number, int)]
