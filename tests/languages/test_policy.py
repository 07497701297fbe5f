"""What no launcher needs is refused with its line in a submission's Python file, and nothing else.

python tests/languages/test_policy.py writes the table of what is allowed into its page.
"""

# ruff: noqa: E501, ISC004 - programs in one line

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from grader.languages import allowed
from grader.languages.policy import public, review

ROOT = Path(__file__).parents[2]
GIVEN = {"kernels": public(ast.parse((ROOT / "student_template" / "kernels.py").read_text()))}
TORCH = "import torch\n"


PAGE = ROOT / "docs" / "triton.md"
BEGIN, END = "<!-- python tests/languages/test_policy.py -->", "<!-- end -->"


def reasons(text: str) -> tuple[str, ...]:
    return review(ast.parse(text), "kernel.py", GIVEN).reasons


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import ctypes", "kernel.py:1 imports ctypes"),
        ("from os import path", "imports os"),
        ("from triton.runtime import jit", "imports triton.runtime.jit"),
        ("from torch.utils import data", "imports torch.utils.data, whose utils"),
        ("from . import other", "imports ."),
        ("from math import *", "imports all of math"),
        ("def f():\n  def g():\n    import gc", "kernel.py:3 imports gc"),
        (TORCH + "torch.ops.load_library('a.so')", "kernel.py:2 uses .ops of torch"),
        (TORCH + "torch._C.x", "uses ._C of torch"),
        ("import triton\ntriton.runtime.driver.active = None", "changes triton.runtime.driver.active"),
        ("import triton\ntriton.runtime.driver.active.utils", "uses .utils of triton.runtime.driver.active"),
        (TORCH + "torch.utils.data", "uses .utils of torch"),
        (TORCH + "torch.load('a')", "uses .load of torch"),
        (TORCH + "torch.from_file('a')", "uses .from_file of torch"),
        ("import triton\ntriton.runtime.driver.set_active(None)", "of triton"),
        ("import triton.language as tl\ntl.extra.cuda.globaltimer()", "uses .globaltimer"),
        ("import triton.language as tl\ntl.core.builtins", "uses .core of triton.language"),
        (TORCH + "t = torch\nt.sys.modules", "passes the module torch on"),
        (TORCH + "print(torch)", "passes the module torch on"),
        ("import dataclasses\ndataclasses.sys", "uses .sys of dataclasses"),
        ("import torch.nn.functional as F\nF.torch", "uses .torch of torch.nn.functional"),
        ("import operator\noperator.attrgetter('a.b')", "kernel.py:2 uses .attrgetter of operator"),
        ("from operator import attrgetter as get", "imports operator.attrgetter"),
        ("from operator import methodcaller", "imports operator.methodcaller"),
        ("from functools import singledispatch", "imports functools.singledispatch"),
        ("from typing import get_type_hints", "imports typing.get_type_hints"),
        ("from dataclasses import make_dataclass", "imports dataclasses.make_dataclass"),
        ("x = (1).__class__.__bases__", "uses .__class__"),
        (TORCH + "x = torch.Tensor.__subclasses__()", "uses .__subclasses__"),
        ("def f(): pass\nf.__globals__", "kernel.py:2 uses .__globals__"),
        ("def f(): pass\nf.__code__", "uses .__code__"),
        ("def f(): yield\nf().gi_frame", "uses .gi_frame"),
        ("class A:\n  gi_frame = 0\ndef f(): yield\nf().gi_frame", "uses .gi_frame"),
        ("class A:\n  __globals__ = 0", "uses __globals__"),
        ("try: pass\nexcept ValueError as e: e.__traceback__.tb_frame", "uses .__traceback__"),
        ("try: pass\nexcept ValueError as e: e.with_traceback(None)", "uses .with_traceback"),
        ("def f(): pass\nmatch f:\n  case object(__globals__=g): pass", "uses .__globals__"),
        ("class A:\n  __match_args__ = ('x',)", "uses __match_args__"),
        ("class M(type):\n  def __instancecheck__(c, o): return True", "uses __instancecheck__"),
        ("class M(type): pass\nclass A(metaclass=M): pass", "makes a class by metaclass"),
        ("eval('1')", "uses eval"),
        ("o = open", "uses open"),
        ("def f(open): pass\nopen('a')", "kernel.py:2 uses open"),
        ("if False: open = 1\nopen('a')", "uses open"),
        ("class A:\n  if False: open = 1\n  x = open('a')", "uses open"),
        ("x = [open for open in ()] or open('a')", "uses open"),
        ("__import__('os')", "uses __import__"),
        ("globals()['x']", "uses globals"),
        ("vars(1)", "uses vars"),
        ("dir(1)", "uses dir"),
        ("setattr(1, 'a', 2)", "uses setattr"),
        ("__builtins__['print']", "uses __builtins__"),
        ("getattr(1, 're' + 'al')", "looks something up by a text that it computes"),
        ("getattr(1, '__class__')", "uses .__class__"),
        (TORCH + "getattr(torch, 'ops')", "uses .ops of torch"),
        (TORCH + "getattr(torch, 'o' + 'ps')", "looks something up by a text"),
        ("g = getattr", "looks something up by a text"),
        ("list(map(getattr, (1,), ('real',)))", "looks something up by a text"),
        ("'{0.__class__}'.format(1)", "looks something up by a text"),
        ("'{0[x]}'.format(1)", "looks something up by a text"),
        ("x = '{}'\nx.format(1)", "looks something up by a text"),
        ("str.format('{}', 1)", "looks something up by a text"),
        ("'{x}'.format_map({})", "looks something up by a text"),
        ("f'{(1).__class__}'", "uses .__class__"),
        ("t = type(1)", "passes on what type() gives"),
        ("type('A', (), {})", "passes on what type() gives"),
        ("t = type", "passes type on"),
        ("type(1).mro()", "passes on what type() gives"),
        ("import triton\ntriton.cdiv = None", "changes triton.cdiv"),
        ("import triton as t\ndel t.cdiv", "changes t.cdiv"),
        ("from torch import Tensor\nTensor.add = None", "changes .add"),
        (TORCH + "type(torch.ones(1)).add = None", "passes on what type() gives"),
        ("from kernels import os", "imports kernels.os"),
        ("import kernels\nkernels.os.system('ls')", "uses .os of kernels"),
        ("import kernels\nkernels.launch = None", "changes kernels.launch"),
        ("from kernels import launch\nlaunch.calls['a'] += 1", "uses .calls"),
        ("async def f(): pass", "uses async"),
        ("@eval\ndef f(): pass", "uses eval"),
        ("f = lambda x=open: x", "uses open"),
        ("__name__ = '__main__'\nif __name__ == '__main__':\n  import os", "uses __name__"),
        ("import math as __name__\nif __name__ == '__main__':\n  import os", "uses __name__"),
        ("if __name__ == '__main__':\n  pass\nelse:\n  import os", "imports os"),
        ("TYPE_CHECKING = True\nif TYPE_CHECKING:\n  import os", "imports os"),
        ("from typing import TYPE_CHECKING\nTYPE_CHECKING = 1\nif TYPE_CHECKING:\n  import os", "imports os"),
        (TORCH + "torch.ones(1).shpae", "uses .shpae, which no launcher needs (did you mean shape?)"),
    ],
)
def test_what_no_launcher_needs_is_named_with_its_line(text: str, said: str) -> None:
    found = reasons(text)
    assert any(said in reason for reason in found), found


@pytest.mark.parametrize(
    "text",
    [
        "def f(n):\n  try: n()\n  except RuntimeError as e:\n    raise ValueError(f'{f.__name__}: {type(e).__name__}') from e",
        "def f(e): return e.__class__.__name__, type(e) is int, type(e)(1), type(e) in (int, float)",
        "def f(x): return f.__doc__, print(type(x)), {int: 1}[type(x)]",
        "def f(input, open): return input + open",
        "def f(x): return getattr(x, 'shape', None), hasattr(x, '__len__')",
        TORCH + "x = getattr(torch, 'float8_e4m3fn', None) if hasattr(torch, 'float8_e4m3fn') else None",
        "'{:>8} {name}'.format(1, name=2) + '%s' % 1 + f'{1:{2}}'",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n  import os\n  from collections.abc import Callable",
        "from dataclasses import dataclass, replace\n@dataclass(frozen=True)\nclass A:\n  tile: int = 1\nreplace(A(), tile=2).tile",
        "from collections import namedtuple\nA = namedtuple('A', 'tile warps')\nA(1, 2)._replace(tile=3).warps",
        "import enum\nclass K(enum.IntEnum):\n  SMALL = 1\nK.SMALL.name, K.SMALL.value",
        "from contextlib import suppress\nimport itertools, functools, operator, math\n"
        "with suppress(ValueError): functools.reduce(operator.mul, itertools.chain([math.pi]))",
        "class A:\n  def __init__(self): self.tile = 1; self.dropout = 2\n  def f(self): return self.tile, self.dropout",
        "class A:\n  queue = code = 1\nA().queue, A().code",
        "def f(x):\n  match x:\n    case int() | [1, *_]: return 1\n    case {'a': y}: return y",
        "import triton\n@triton.autotune([triton.Config({'B': 1}, num_warps=2)], key=['n'])\n"
        "@triton.heuristics({'E': lambda a: a['n'] % 2 == 0})\n@triton.jit\ndef k(x, n): pass\nk.best_config.kwargs",
        "import triton.language as tl\nfrom triton.language.extra import libdevice\n"
        "def k(x): return tl.math.exp(x), libdevice.log1p(x), x.dtype.element_ty, tl.extra.libdevice.tanh(x)",
        "import triton\nDEVICE = triton.runtime.driver.active.get_active_torch_device()",
        "import torch.nn.functional as F\nfrom torch import Tensor, nn\n"
        "def f(x: Tensor): return F.scaled_dot_product_attention(x, x, x), nn.init.xavier_uniform_(x), x.add_(1)",
        TORCH + "@torch.no_grad()\ndef f(p):\n  p.grad = None\n  p.data = p.data * 2\n  return torch.autograd.grad(p, p)",
        "import numpy as np\nnp.sqrt(2.0)",
        "import kernels\nfrom kernels import launch, DEVICE\nkernels.launch('a', kernels.DEVICE)",
        "x = nothing_of_this_name",
        "import abc\nclass A(metaclass=abc.ABCMeta):\n  @abc.abstractmethod\n  def f(self): ...",
        "class A:\n  def __init__(self, n): self.weight = n\ndef of(m):\n  a = A(1)\n  a.weight = m.weight\n  return a",
        "if __name__ == '__main__':\n  import os\n  print(open(os.environ['HOME']), eval('1'))",
    ],
)  # fmt: skip
def test_what_right_files_use_is_allowed(text: str) -> None:
    assert reasons(text) == ()


@pytest.mark.parametrize(
    "pattern",
    [
        "assignments/*/reference_triton/*.py",
        "assignments/*/student_template_triton/*.py",
        "assignments/*/variants/*/*.py",
        "assignments/*/reference/*.py",
        "assignments/*/student_template/r*.py",
        "reference/*.py",
        "student_template/transformer.py",
    ],
)
def test_the_files_of_the_assignments_break_no_policy(pattern: str) -> None:
    paths = list(ROOT.glob(pattern))
    assert paths
    assert [reason for path in paths for reason in reasons(path.read_text())] == []


@pytest.mark.parametrize(
    ("text", "misspelt"),
    [
        (TORCH + "torch.ones(1).shpae", True),
        (TORCH + "torch.emptylike(torch.ones(1))", True),
        (TORCH + "torch.ones(1).shpae\ntorch.ones(1).__dict__", False),
        (TORCH + "torch.ones(1)._shape", False),
        ("import triton.language as tl\ntl.core", False),
        (TORCH + "torch.ones(1).shape", False),
    ],
)
def test_a_misspelt_name_is_told_from_an_attempt_to_reach_something(text: str, *, misspelt: bool) -> None:
    assert review(ast.parse(text), "kernel.py").mistaken is misspelt


@pytest.mark.parametrize(
    "text",
    [
        "import torch.utils.cpp_extension",
        "import os\nfrom torch.utils import cpp_extension\nos.environ['A'] = 'b'",
        "from torch.utils.cpp_extension import load_inline\nload_inline('a').add(1)",
    ],
)
def test_kernels_in_another_language_are_told_what_to_hand_in_instead(text: str) -> None:
    outcome = review(ast.parse(text), "kernel.py", languages=("triton", "cupy", "cuda"))
    (reason,) = outcome.reasons
    assert outcome.mistaken
    assert "imports torch.utils.cpp_extension: kernels in C++ that it builds are not taken" in reason
    assert reason.endswith("Hand in kernels under @triton.jit, CUDA C++ by cupy.RawKernel or a .cu file")
    assert reason.startswith("kernel.py:2" if text.startswith("import os") else "kernel.py:1")


@pytest.mark.parametrize(
    ("text", "used"),
    [
        (
            "import cupy as cp\nkernel = cp.ElementwiseKernel('T x', 'T y', 'y = x')",
            "uses cupy.ElementwiseKernel",
        ),
        ("from cupy import ReductionKernel", "imports cupy.ReductionKernel"),
        ("from cuda.bindings import driver, nvrtc", "imports cuda.bindings"),
    ],
)
def test_a_way_that_is_not_there_is_told_beside_those_of_the_same_module_that_are(
    text: str, used: str
) -> None:
    modules = {"cupy": ("RawKernel",), "cuda": (), "cuda.core": ("Program",)}
    outcome = review(ast.parse(text), "kernel.py", modules, languages=("nvrtc",))
    (reason,) = outcome.reasons
    assert outcome.mistaken
    assert used in reason
    assert reason.endswith("are not taken in this file. Hand in CUDA C++ by cuda.core")


def test_no_module_of_the_table_leads_to_another_one_that_is_not_in_it() -> None:
    for module in allowed.MODULES:
        if module.startswith("triton"):
            continue  # it need not be installed
        parts = {name for name in allowed.names(module) if f"{module}.{name}" in allowed.MODULES}
        assert allowed.ANY not in parts
        assert not {"sys", "os", "builtins", "gc", "modules"} & allowed.names(module), module


def test_no_attribute_of_the_table_leads_inside_of_python() -> None:
    inside = ("f_", "gi_", "cr_", "ag_", "tb_", "co_", "__")
    read = {name for name in allowed.attributes() if name.startswith(inside)}
    assert read == {"__doc__", "__init__", "__name__", "__qualname__"}


def test_the_page_shows_the_table() -> None:
    assert PAGE.read_text() == page(PAGE.read_text()), "run: python tests/languages/test_policy.py"


def page(text: str) -> str:
    """The page with the table of what is allowed between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    rows = [(f"`{name}`", used) for name, used in allowed.MODULES.items() if used]
    rows += [("Python's own functions", allowed.BUILTINS), ("names with two underscores", allowed.NAMES)]
    rows += [("such names to define", allowed.DEFINED)]
    rows += [(f"of values: {group.title}", group.names) for group in allowed.ATTRIBUTES]
    rows += [("of values, to change", allowed.CHANGED)]
    kinds = {allowed.ANY, allowed.OPERATORS, allowed.CLASSES, allowed.FUNCTIONS}
    lines = [
        f"| {title} | {', '.join(name if name in kinds else f'`{name}`' for name in used)} |"
        for title, used in rows
    ]
    table = "\n".join(["| of | what may be used |", "|---|---|", *lines])
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
