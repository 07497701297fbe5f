"""Attacks by functions on tensors: none earns points, whatever the file reaches for, keeps or returns."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest
from graded_module import FILLS, RETURNS, edited, graded

from grader.languages.policy import review
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from grader.problems.module import Operators

REACHING = {
    "replace an operator": "torch.softmax = lambda *_: None",
    "replace an operator by its owner": "setattr(torch, 'softmax', None)",
    "replace a method": "torch.Tensor.data_ptr = lambda self: 0",
    "replace what a tensor is": "torch.Tensor.__torch_function__ = None",
    "replace Triton's compiler": "triton.compiler.compile = None",
    "replace Triton's driver": "triton.runtime.driver.set_active(None)",
    "replace a kernel's launch": "ker_row_softmax.run = None",
    "replace a builtin": "import builtins\nbuiltins.isinstance = lambda *_: True",
    "replace a timer": "import time\ntime.perf_counter = lambda: 0",
    "replace an event's time": "torch.cuda.Event.elapsed_time = lambda *_: 0.0",
    "replace synchronising": "torch.cuda.synchronize = lambda: None",
    "shadow the types of the task": "import task\ntask.input_t = None",
    "ask the types for more": "from task import reference",
    "import the reference": "from reference import ref_kernel",
    "import the original's tools": "from utils import make_match_reference",
    "import the grader": "import grader.runner.triton.arrays",
    "look at the modules": "import sys\nsys.modules['grader.runner.triton.launchers']",
    "look at the frames": "import sys\nsys._getframe(1).f_locals",
    "look at frames by inspect": "import inspect\ninspect.stack()",
    "look at frames of an error": "try:\n    1 / 0\nexcept OSError as e:\n    e.__traceback__.tb_frame",
    "look at frames of a generator": "(i for i in ()).gi_frame",
    "look at all objects": "import gc\ngc.get_objects()",
    "look at who refers": "import gc\ngc.get_referrers(1)",
    "look at code": "ker_row_softmax.__code__",
    "look at globals of a function": "row_softmax.__globals__",
    "look at a closure": "row_softmax.__closure__",
    "look at subclasses": "object.__subclasses__()",
    "look at the base of a type": "().__class__.__base__",
    "look at a dictionary of names": "globals()['torch']",
    "look up a computed name": "getattr(torch, 'soft' + 'max')",
    "look up by operator": "import operator\noperator.attrgetter('a.b')",
    "change the memory of a tensor": "torch.empty(1).block = None",
    "change the address of a tensor": "torch.empty(1).address = 0",
    "make a tensor of foreign memory": "torch.frombuffer(b'1234', dtype=torch.float32)",
    "make a tensor of a file": "torch.from_file('a', size=1)",
    "make a tensor of a capsule": "torch.utils.dlpack.from_dlpack(None)",
    "reach PyTorch's inside": "torch._C._cuda_init()",
    "reach the dispatcher": "torch.library.Library('aten', 'IMPL')",
    "reach operators by name": "torch.ops.aten.softmax",
    "load a library": "import ctypes\nctypes.CDLL('libcudart.so')",
    "load a library by PyTorch": "torch.classes.load_library('a.so')",
    "load a pickle": "torch.load('a.pt')",
    "unpickle": "import pickle\npickle.loads(b'')",
    "start a thread": "import threading\nthreading.Thread(target=print).start()",
    "start a pool": "from concurrent.futures import ThreadPoolExecutor",
    "start a process": "import subprocess\nsubprocess.run(['true'])",
    "wait for the end": "import atexit\natexit.register(print)",
    "wait for a signal": "import signal\nsignal.signal(2, print)",
    "wait for a tensor's end": "import weakref\nweakref.finalize(torch, print)",
    "hook imports": "import sys\nsys.meta_path.insert(0, None)",
    "import by name": "__import__('os')",
    "import by importlib": "import importlib\nimportlib.import_module('os')",
    "preload a library": "import os\nos.environ['LD_PRELOAD'] = 'a.so'",
    "read its own process": "open('/proc/self/maps').read()",
    "write another's memory": "open('/proc/self/mem', 'wb')",
    "run a text": "exec('import os')",
    "evaluate a text": "eval('1')",
    "make code": "compile('1', 'a', 'eval')",
    "make a class": "type('A', (torch.Tensor,), {})",
    "make a class by its metaclass": "class A(metaclass=type):\n    pass",
    "define how a class is made": "class A:\n    def __init_subclass__(cls):\n        pass",
    "define how a name is looked up": "def __getattr__(name):\n    return None",
    "define how an object is made": "class A(torch.nn.Module):\n    def __new__(cls):\n        return None",
    "define how an object ends": "class A:\n    def __del__(self):\n        pass",
    "define how attributes are looked up": "class A:\n    def __getattribute__(self, name):\n        pass",
    "define what an object is": "class A:\n    @property\n    def __class__(self):\n        return int",
    "define how PyTorch calls it": "class A:\n    def __torch_function__(self, *_):\n        pass",
    "define foreign memory": "class A:\n    __cuda_array_interface__ = {}",
    "define foreign memory for PyTorch": "class A:\n    def __dlpack__(self):\n        pass",
    "replace the class of an object": "torch.nn.Module().__class__ = None",
    "look into an object": "torch.nn.Module().__dict__['a']",
    "replace how modules are called": "torch.nn.Module.__call__ = None",
    "replace a method of PyTorch's modules": "torch.nn.Softmax.forward = None",
    "hook a module": "torch.nn.Module().register_forward_hook(print)",
    "hook all modules": "torch.nn.modules.module.register_module_forward_hook(print)",
    "hook the loading of a module": "torch.nn.Module()._register_load_state_dict_pre_hook(print)",
    "compile a module by PyTorch": "torch.jit.script(torch.nn.Softmax(-1))",
    "replay a graph": "torch.cuda.CUDAGraph().replay()",
    "replay a module": "torch.cuda.make_graphed_callables(print, ())",
    "share memory": "torch.empty(1).share_memory_()",
    "take another's memory": "torch.empty(1).set_(torch.empty(1))",
    "change the size of memory": "torch.empty(1).untyped_storage().resize_(0)",
}  # fmt: skip


@pytest.mark.parametrize("text", REACHING.values(), ids=REACHING)
def test_what_a_file_reaches_for_is_refused(text: str) -> None:
    outcome = review(ast.parse(edited(RETURNS) + "\n\n" + text), "row_softmax.py")
    assert outcome.reasons
    assert not outcome.mistaken


LAUNCH = "    ker_row_softmax[(rows,)](y, x, columns, size, num_warps=min(8, max(1, size // 256)))\n"
RETURN = "    return y"
DEFINED = "def row_softmax(x):\n"

KEEPING = {
    "keep a result by shape": (
        (DEFINED, "KEPT = {}\n\n\n" + DEFINED),
        (RETURN, "    return KEPT.setdefault(tuple(x.shape), y)"),
    ),
    "keep a result by address": (
        (DEFINED, "KEPT = {}\n\n\n" + DEFINED),
        (RETURN, "    return KEPT.setdefault((x.data_ptr(), x.shape), y)"),
    ),
    "launch once": (
        (DEFINED, "SEEN = []\n\n\n" + DEFINED),
        (LAUNCH, "    SEEN.append(1)\n    if len(SEEN) == 1:\n    " + LAUNCH),
    ),
    "launch for show": ((RETURN, "    return torch.empty_like(x)"),),
    "return the input behind a launch": ((RETURN, "    return x"),),
    "return a clone of the input": ((RETURN, "    return x.clone()"),),
    "return what is cleared": ((RETURN, "    return torch.zeros_like(x)"),),
    "return a tensor of the host": ((RETURN, "    return torch.zeros(rows, columns)"),),
    "return a list of numbers": ((RETURN, "    return [0.0] * rows"),),
    "return too many": ((RETURN, "    return y, y"),),
    "return a view with gaps": ((RETURN, "    return torch.empty(columns, rows, device=x.device).t()"),),
    "return another type": ((RETURN, "    return torch.empty_like(x, dtype=torch.float64)"),),
    "return a tensor of its own class": (
        (DEFINED, "class Right(torch.Tensor):\n    is_cuda = True\n\n\n" + DEFINED),
        (RETURN, "    return torch.zeros(rows, columns).as_subclass(Right)"),
    ),
    "compute with PyTorch": ((RETURN, "    return torch.softmax(x, -1)"),),
    "compute by an operator sign": ((RETURN, "    return y * 1"),),
    "compute on the host": ((RETURN, "    return x.cpu().softmax(-1).cuda()"),),
    "compute by a module": ((RETURN, "    return torch.nn.Softmax(-1)(x)"),),
    "compute without the watch": (
        (RETURN, "    with torch.no_grad():\n        return torch.nn.functional.softmax(x, -1)"),
    ),
    "read behind the end by a view": (
        (LAUNCH, LAUNCH.replace("(y, x,", "(y, x.as_strided((rows, columns), (columns, 1), 7),")),
    ),
    "end with success": ((RETURN, "    raise SystemExit(0)"),),
}


def test_the_reference_passes_where_attacks_are_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("triton", reason="needs Triton: pip install 'kernel-grader[triton]'")
    result = graded(tmp_path, RETURNS, edited(RETURNS), monkeypatch, one_case=True)
    assert result.verdict is Verdict.PASS


@pytest.mark.parametrize("edits", KEEPING.values(), ids=KEEPING)
def test_what_a_function_keeps_or_returns_earns_nothing(
    edits: tuple[tuple[str, str], ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("triton", reason="needs Triton: pip install 'kernel-grader[triton]'")
    result = graded(tmp_path, RETURNS, edited(RETURNS, *edits), monkeypatch, one_case=True)
    assert result.verdict in {Verdict.FAIL, Verdict.UNTRUSTED}
    assert result.points.earned < result.points.possible / 2


@pytest.mark.parametrize(
    ("operators", "text"),
    [
        ("none", "x.view(-1)"),
        ("none", "x[:1]"),
        ("views", "x + 1"),
        ("views", "out.add_(x)"),
        ("views", "torch.add(x, y, out=out)"),
        ("views", "out.__setitem__(0, 1.0)"),
    ],
)
def test_operators_that_a_problem_does_not_allow_are_refused(
    operators: Operators, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("triton", reason="needs Triton: pip install 'kernel-grader[triton]'")
    beside = ("    n = x.shape[0]\n", f"    n = x.shape[0]\n    {text}\n")
    result = graded(tmp_path, FILLS, edited(FILLS, beside), monkeypatch, operators, one_case=True)
    assert result.verdict in {Verdict.FAIL, Verdict.UNTRUSTED}
    assert result.points.earned == 0


IN_CPP = '''import torch
from torch.utils.cpp_extension import load_inline

CODE = r"""
#include <cstdio>
#include <cstdlib>

%s
"""
module = load_inline("attack", CODE, functions=["attack"])


def row_softmax(x):
    return module.attack(x)
'''
BY_THE_HOST = """
torch::Tensor attack(torch::Tensor x) {
  std::vector<float> values(x.numel());
  cudaMemcpy(values.data(), x.data_ptr(), x.nbytes(), cudaMemcpyDeviceToHost);
  for (int64_t row = 0; row < x.size(0); ++row) {
    float* const first = values.data() + row * x.size(1);
    const float largest = *std::max_element(first, first + x.size(1));
    float total = 0;
    for (int64_t at = 0; at < x.size(1); ++at) total += first[at] = std::exp(first[at] - largest);
    for (int64_t at = 0; at < x.size(1); ++at) first[at] /= total;
  }
  auto y = torch::empty_like(x);
  cudaMemcpy(y.data_ptr(), values.data(), y.nbytes(), cudaMemcpyHostToDevice);
  return y;
}
"""
RETURNING = "torch::Tensor attack(torch::Tensor x) { %s }"

CPP = {
    "read a file": (RETURNING % 'fopen("/proc/self/maps", "r"); return x;', Verdict.UNTRUSTED),
    "run before the first call": (
        '__attribute__((constructor)) void first() { setenv("A", "b", 1); }\n' + RETURNING % "return x;",
        Verdict.UNTRUSTED,
    ),
    "call the kernel": (RETURNING % 'asm volatile("syscall"); return x;', Verdict.UNTRUSTED),
    "replace the runtime": (
        'extern "C" cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }\n' + RETURNING % "return x;",
        Verdict.UNTRUSTED,
    ),
    "compute by the host": (BY_THE_HOST, Verdict.FAIL),
    "compute with PyTorch": (RETURNING % "return x.exp();", Verdict.FAIL),
    "keep a result": (
        RETURNING % "static torch::Tensor kept = torch::zeros_like(x); return kept;",
        Verdict.FAIL,
    ),
    "return what is on the host": (
        RETURNING % "return torch::zeros(x.sizes(), torch::kFloat);",
        Verdict.FAIL,
    ),
}


@pytest.mark.parametrize(("code", "verdict"), CPP.values(), ids=CPP)
def test_attacks_in_cpp_earn_nothing(
    code: str, verdict: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = graded(tmp_path, RETURNS, IN_CPP % code, monkeypatch, one_case=True)
    assert result.verdict is verdict, (result.message, result.build, result.trust)
    assert result.build is not None
    assert result.build.ok, result.build.log


FUNCTION = """def row_softmax(x):
    return kernels.launch(x)
"""
CLASS = """import torch


class row_softmax(torch.nn.Module):
    kept = {}

    def __init__(self):
        super().__init__()
        self.softmax = torch.nn.Softmax(-1)

    def forward(self, x):
        return kernels.launch(x)
"""
BY_CLASSES = {
    "keep a result in the class": "self.kept.setdefault(tuple(x.shape), kernels.launch(x))",
    "launch for the first object alone": (
        "self.kept.setdefault('once', kernels.launch(x)) if not self.kept else torch.empty_like(x)"
    ),
    "compute with a module of PyTorch": "self.softmax(x)",
    "return itself": "self",
}


def test_a_class_passes_where_attacks_by_classes_are_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = edited(RETURNS, (FUNCTION, CLASS), language="load_inline")
    result = graded(tmp_path, RETURNS, text, monkeypatch, one_case=True, initial=0)
    assert result.verdict is Verdict.PASS, (result.message, result.trust)


@pytest.mark.parametrize("returned", BY_CLASSES.values(), ids=BY_CLASSES)
def test_what_a_class_keeps_or_returns_earns_nothing(
    returned: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attack = CLASS.replace("return kernels.launch(x)", f"return {returned}")
    text = edited(RETURNS, (FUNCTION, attack), language="load_inline")
    result = graded(tmp_path, RETURNS, text, monkeypatch, one_case=True, initial=0)
    assert result.verdict is Verdict.FAIL, (result.message, result.trust)
    assert result.points.earned < result.points.possible / 2
