"""The texts of ``load_inline`` in a Python file, read and not run, with the lines that they stand in."""

from __future__ import annotations

import ast

import pytest

from grader.languages.inline.constants import SourceError
from grader.languages.inline.source import Extension, extensions, without_settings
from grader.languages.policy import review
from grader.runner.inlined import key

IMPORT = "from torch.utils.cpp_extension import load_inline; "  # in the first line of each text


def read(text: str) -> Extension:
    whole = IMPORT + text
    (extension,) = extensions(ast.parse(whole), whole.encode())
    return extension


@pytest.mark.parametrize(
    ("text", "content", "lines"),
    [
        ('C = """a\nb"""', "a\nb", (1, 2)),
        ('C = "a\\nb"', "a\nb", (1, 1)),
        ('C = r"""a\\n\nb"""', "a\\n\nb", (1, 2)),
        ('C = """a\\\nb\nc"""', "ab\nc", (1, 3)),
        ('C = ("a\\n"\n     "b\\n"\n     "c")', "a\nb\nc", (1, 2, 3)),
        ('N = 3\nC = f"""a{N}\nb{{}}"""', "a3\nb{}", (2, 3)),
        ('A = "a\\n"\nC = A + "b"', "a\nb", (1, 2)),
        ('C = """\n\na\n""".strip()', "a", (3,)),
    ],
    ids=["lines", "escapes", "raw", "joined lines", "parts", "formatted", "sum", "stripped"],
)
def test_each_line_of_a_text_knows_its_line_of_the_file(
    text: str, content: str, lines: tuple[int, ...]
) -> None:
    extension = read(f'{text}\nload_inline("name", "", [C], functions="run")')
    (read_text,) = extension.cuda
    assert (read_text.content, read_text.lines) == (content, lines)


def test_the_compiler_is_told_the_lines() -> None:
    (text,) = read('C = """a\\\nb\nc\nd"""\nload_inline("name", C, functions=["run"])').cpp
    assert text.placed("answer.py") == '#line 1 "answer.py"\nab\n#line 3 "answer.py"\nc\nd'


def test_what_runs_has_the_key_of_what_was_read() -> None:
    extension = read(
        'C = "a"\nload_inline(name="b", cpp_sources=[C], functions={"run": "text"}, verbose=True)'
    )
    assert extension.key == key({"cpp_sources": ["a"], "functions": {"run": "text"}})
    assert extension.key != key({"cpp_sources": ["b"], "functions": ["run"]})


def test_names_of_functions_are_those_named_or_defined() -> None:
    defined = 'PYBIND11_MODULE(x, m) { m.def("run", &run); m.def( "_hidden", &run); }'
    assert read(f"load_inline('name', '{defined}')").names == {"run"}
    assert read("load_inline('name', '', functions=['first', 'second'])").names == {"first", "second"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            'C = "a"\nC = "b"\nload_inline("name", C, functions="run")',
            "gets cpp_sources from C, which is known",
        ),
        (
            'load_inline("name", open("a").read(), functions="run")',
            r"gets cpp_sources from open\('a'\)\.read\(\)",
        ),
        ('load_inline("name", "", functions=["a b"])', "'a b' as the name of a function"),
        ('load_inline(*("name", ""))', r"arguments by \* or \*\*"),
        ('load_inline("name", "", function="run")', "has no parameter function"),
        ('load_inline("name", "", functions="run", extra_ldflags=["-lcublas"])', "gets extra_ldflags"),
    ],
)
def test_what_cannot_be_built_is_told(text: str, said: str) -> None:
    with pytest.raises(SourceError, match=said) as error:
        read(text)
    assert error.value.line == len(text.splitlines())


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ('import os\nos.environ["TORCH_CUDA_ARCH_LIST"] = "9.0"', False),
        ('import os\nos.environ["LD_PRELOAD"] = "a.so"', True),
        ('import os\nos.environ["CXX"] = "g++"\nos.system("true")', True),
        ('import os\nos.environ["CXX"] = open("a").read()', True),
        ("import os", True),
    ],
)
def test_settings_of_the_build_alone_are_passed_over(text: str, refused: bool) -> None:
    assert bool(review(without_settings(ast.parse(text)), "answer.py").reasons) is refused


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("import torch.utils.cpp_extension as built", "built.load_inline"),
        ("from torch.utils.cpp_extension import load_inline as build", "build"),
    ],
)
def test_a_call_by_another_name_is_read(text: str, function: str) -> None:
    whole = f"{text}\n{function}('name', '', functions='run')"
    assert len(extensions(ast.parse(whole), whole.encode())) == 1
