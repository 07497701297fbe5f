"""The calls of ``load_inline`` in a Python file, read and not run: their texts, and the lines of these."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grader.runner.inlined import PARAMETERS, USED, key, texts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

_LOAD_INLINE = "load_inline"
_DEFINED = re.compile(r"\.def\(\s*\"(\w+)\"")
_MODULE = "PYBIND11_MODULE"
_SETTINGS = frozenset({"TORCH_CUDA_ARCH_LIST", "MAX_JOBS", "CUDA_LAUNCH_BLOCKING", "CXX", "CC"})
"""Variables of the environment that say how C++ is built, or how its launches are waited for."""
_ESCAPES = re.compile(
    r"\\(?:\r\n|[0-7]{1,3}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}]*\}|.)", re.DOTALL
)


class SourceError(Exception):
    """A call cannot be built; the text says why, for its author.

    Attributes:
        line: of the call.
    """

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line


@dataclass(frozen=True)
class Text:
    """A text of the file.

    Attributes:
        content: what it holds.
        lines: the line of the file that each line of it begins in.
    """

    content: str
    lines: tuple[int, ...]

    def __add__(self, other: Text) -> Text:
        """Both, one behind the other: a line that has begun in the first goes on in the second."""
        begun = bool(self.content) and not self.content.endswith("\n")
        lines = self.lines + other.lines[1:] if begun else self.lines[:-1] + other.lines
        return Text(self.content + other.content, lines)

    def placed(self, file: str) -> str:
        """The text with directives by which the compiler names the lines of ``file``."""
        written: list[str] = []
        expected = 0
        for line, number in zip(self.content.split("\n"), self.lines, strict=True):
            if number != expected and not (written and written[-1].endswith("\\")):
                written.append(f'#line {number} "{file}"')
                expected = number
            written.append(line)
            expected += 1
        return "\n".join(written)


@dataclass(frozen=True)
class Extension:
    """A module of C++ that a file builds.

    Attributes:
        line: of the call.
        key: the name of what it builds.
        cpp: the texts for the host's compiler.
        cuda: the texts for nvcc.
        functions: the functions that Python may call, where the texts define no module by themselves.
        functions_line: the line that they are named in.
        cpp_flags: for the host's compiler.
        cuda_flags: for nvcc.
        implicit: whether the usual headers are included.
    """

    line: int
    key: str
    cpp: tuple[Text, ...]
    cuda: tuple[Text, ...]
    functions: tuple[str, ...]
    functions_line: int
    cpp_flags: tuple[str, ...]
    cuda_flags: tuple[str, ...]
    implicit: bool

    @property
    def names(self) -> frozenset[str]:
        """The names of the functions that Python may call."""
        defined = {name for text in (*self.cpp, *self.cuda) for name in _DEFINED.findall(text.content)}
        return frozenset(name for name in {*self.functions, *defined} if not name.startswith("_"))


def extensions(tree: ast.Module, content: bytes, file: str) -> tuple[Extension, ...]:
    """The modules that a file builds, in the order of their calls.

    Args:
        tree: of the file.
        content: of the file.
        file: its name.

    Raises:
        SourceError: a call cannot be built from what the file says.
    """
    reading = _Reading(tree, content.decode(errors="replace"), file)
    names = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name == _LOAD_INLINE
    }
    calls = sorted(
        (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_load_inline(node.func, names)),
        key=lambda node: (node.lineno, node.col_offset),
    )
    return tuple(map(reading.extension, calls))


def without_settings(tree: ast.Module) -> ast.Module:
    """A file without what it says of how PyTorch builds C++, and the import that this alone needs.

    Many files set ``os.environ["TORCH_CUDA_ARCH_LIST"]``. It means nothing here, and does no harm.
    """
    body = [node for node in tree.body if not _is_setting(node)]
    needed = len(body) == len(tree.body) or any(
        isinstance(node, ast.Name) and node.id == "os" for part in body for node in ast.walk(part)
    )
    return ast.Module([node for node in body if needed or ast.unparse(node) != "import os"], [])


def _is_setting(node: ast.stmt) -> bool:
    match node:
        case ast.Assign(
            targets=[
                ast.Subscript(
                    value=ast.Attribute(value=ast.Name(id="os"), attr="environ"),
                    slice=ast.Constant(value=str(name)),
                )
            ],
            value=ast.Constant(value=str()),
        ):
            return name in _SETTINGS
    return False


def _is_load_inline(function: ast.expr, names: Collection[str]) -> bool:
    match function:
        case ast.Name(id=name):
            return name in names
        case ast.Attribute(attr=name):
            return name == _LOAD_INLINE
    return False


class _Reading:
    """Reads the constants of a file."""

    def __init__(self, tree: ast.Module, source: str, file: str) -> None:
        self._source = source
        self._file = file
        self._bound = Counter(name for node in ast.walk(tree) for name in _bound(node))
        self._values = {name: value for node in ast.walk(tree) for name, value in _assigned(node)}

    def extension(self, call: ast.Call) -> Extension:
        """What a call builds."""
        nodes = self._parameters(call)
        read: dict[str, Any] = {}
        for name in USED:
            node = nodes.get(name)
            try:
                read[name] = None if node is None else self._value(node)
            except _ComputedError as error:
                raise SourceError(
                    call.lineno,
                    f"load_inline gets {name} from {ast.unparse(error.node)[:60]}, which is known only when "
                    "the file runs: write a text there, or a name that one text is assigned to",
                ) from error
        parameters = {name: _plain(value) for name, value in read.items()}
        cpp, cuda = (_texts(read[name]) for name in ("cpp_sources", "cuda_sources"))
        functions = tuple(texts(parameters["functions"]))
        for function in functions:
            if not function.isidentifier():
                raise SourceError(call.lineno, f"load_inline gets {function!r} as the name of a function")
        if not functions and not any(_MODULE in text.content for text in (*cpp, *cuda)):
            raise SourceError(
                call.lineno,
                f"load_inline gets neither functions nor a {_MODULE}: name what Python is to call",
            )
        if texts(parameters["extra_ldflags"]):
            raise SourceError(
                call.lineno, "load_inline gets extra_ldflags: CUDA's runtime alone is linked here"
            )
        return Extension(
            call.lineno,
            key(parameters),
            cpp,
            cuda,
            functions,
            nodes["functions"].lineno if functions else call.lineno,
            tuple(texts(parameters["extra_cflags"])),
            tuple(texts(parameters["extra_cuda_cflags"])),
            not parameters["no_implicit_headers"],
        )

    @staticmethod
    def _parameters(call: ast.Call) -> Mapping[str, ast.expr]:
        """The arguments of a call, by name."""
        if any(isinstance(argument, ast.Starred) for argument in call.args) or any(
            word.arg is None for word in call.keywords
        ):
            raise SourceError(call.lineno, "load_inline gets arguments by * or **: name each of them")
        nodes = dict(zip(PARAMETERS, call.args, strict=False))
        nodes |= {word.arg: word.value for word in call.keywords if word.arg is not None}
        for name in nodes.keys() - set(PARAMETERS):
            raise SourceError(call.lineno, f"load_inline has no parameter {name}")
        return nodes

    def _value(self, node: ast.expr) -> Any:  # noqa: ANN401
        """The constant that an expression stands for, with texts as ``Text``.

        Raises:
            _ComputedError: it is none.
        """
        match node:
            case ast.Constant(value=str()):
                return self._text(node)
            case ast.Constant():
                return node.value
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                return [self._value(part) for part in parts]
            case ast.Dict(keys=names):
                return [self._value(name) for name in names if name is not None]
            case ast.Name(id=name) if self._bound[name] == 1 and name in self._values:
                return self._value(self._values[name])
        return self._composed(node)

    def _composed(self, node: ast.expr) -> Any:  # noqa: ANN401
        """The constant that is made of others."""
        match node:
            case ast.JoinedStr():
                return self._joined(node)
            case ast.BinOp(op=ast.Add()):
                first, second = self._value(node.left), self._value(node.right)
                if type(first) is type(second) and isinstance(first, Text | list):
                    return first + second
            case ast.Call(func=ast.Attribute(value=value, attr="strip"), args=[], keywords=[]):
                if isinstance(text := self._value(value), Text):
                    return _stripped(text)
        raise _ComputedError(node)

    def _text(self, node: ast.Constant) -> Text:
        """A text with the lines of the file; it may be written in several parts."""
        segment = ast.get_source_segment(self._source, node) or ""
        text = Text("", (node.lineno,))
        for token in tokenize.generate_tokens(io.StringIO(f"({segment})").readline):
            if token.type == tokenize.STRING:
                text += _literal(token.string, node.lineno + token.start[0] - 1)
        # What the parts of a text do not add up to has its lines from its first one on.
        return text if text.content == node.value else _from(str(node.value), node.lineno)

    def _joined(self, node: ast.JoinedStr) -> Text:
        text = Text("", (node.lineno,))
        for part in node.values:
            match part:
                case ast.Constant(value=str(content)):
                    text += _from(content, text.lines[-1])
                case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                    content = self._value(value)
                    inserted = content.content if isinstance(content, Text) else str(content)
                    text += Text(inserted, (text.lines[-1],) * (1 + inserted.count("\n")))
                case _:
                    raise _ComputedError(node)
        return text


class _ComputedError(Exception):
    """An expression is no constant."""

    def __init__(self, node: ast.expr) -> None:
        super().__init__()
        self.node = node


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The name that a statement gives to one expression."""
    match node:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value)
            | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
        ):
            yield name, value


def _bound(node: ast.AST) -> Iterator[str]:
    """The names that a node binds by itself."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            yield from (alias.asname or alias.name for alias in aliases)


def _plain(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, Text):
        return value.content
    return [_plain(element) for element in value] if isinstance(value, list) else value


def _texts(value: Any) -> tuple[Text, ...]:  # noqa: ANN401
    if isinstance(value, Text):
        return (value,) if value.content.strip() else ()
    return tuple(text for text in value or () if isinstance(text, Text) and text.content.strip())


def _from(content: str, line: int) -> Text:
    """A text each line of which is a line of the file, from ``line`` on."""
    return Text(content, tuple(range(line, line + 1 + content.count("\n"))))


def _literal(token: str, line: int) -> Text:
    """The text of one literal that begins in ``line``: an escape may be a line of the text, or hide one."""
    prefix = token[: re.search("['\"]", token).start()].lower()  # type: ignore[union-attr]
    content = str(ast.literal_eval(token))
    quotes = 3 if token[len(prefix) :].startswith(('"""', "'''")) else 1
    body = token[len(prefix) + quotes : -quotes]
    lines, position = [line], 0
    while position < len(body):
        escape = None if "r" in prefix else _ESCAPES.match(body, position)
        written = escape[0] if escape else body[position]
        line += written.count("\n")
        if (written == "\n") if escape is None else ast.literal_eval(f'"{written}"') == "\n":
            lines.append(line)
        position += len(written)
    return Text(content, tuple(lines))


def _stripped(text: Text) -> Text:
    before = text.content[: len(text.content) - len(text.content.lstrip())].count("\n")
    content = text.content.strip()
    return Text(content, text.lines[before : before + 1 + content.count("\n")])


def flags(
    options: Sequence[str], allowed: re.Pattern[str], ignored: re.Pattern[str]
) -> tuple[list[str], list[str]]:
    """The flags of a compiler that are taken, and those that are refused."""
    taken, refused = [], []
    for flag in (part for text in options for part in text.split()):
        if allowed.fullmatch(flag):
            taken.append(flag)
        elif not ignored.fullmatch(flag):
            refused.append(flag)
    return taken, refused
