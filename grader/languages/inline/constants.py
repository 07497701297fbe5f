"""The constants of a Python file, read and not run, with the lines that their texts stand in."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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


class Constants:
    """The constants of a file.

    Args:
        tree: of the file.
        content: of the file.
    """

    def __init__(self, tree: ast.Module, content: bytes) -> None:
        self._source = content.decode(errors="replace")
        self._bound = Counter(name for node in ast.walk(tree) for name in _bound(node))
        self._values = {name: value for node in ast.walk(tree) for name, value in _assigned(node)}

    def bound(self, node: ast.expr) -> ast.expr:
        """What a name stands for that the file binds once; another expression itself."""
        match node:
            case ast.Name(id=name) if self._bound[name] == 1 and name in self._values:
                return self.bound(self._values[name])
        return node

    def read(self, call: ast.Call, function: str, name: str, node: ast.expr) -> Any:  # noqa: ANN401
        """The constant that a parameter gets, with texts as ``Text``.

        Args:
            call: of the function.
            function: its name, for the message.
            name: of the parameter.
            node: what it gets.

        Raises:
            SourceError: it is known only when the file runs.
        """
        try:
            return self._value(node)
        except _ComputedError as error:
            raise SourceError(
                call.lineno,
                f"{function} gets {name} from {ast.unparse(error.node)[:60]}, which is known only when "
                "the file runs: write a text there, or a name that one text is assigned to",
            ) from error

    def _value(self, node: ast.expr) -> Any:  # noqa: ANN401
        """The constant that an expression stands for, with texts as ``Text``.

        Raises:
            _ComputedError: it is none.
        """
        match node:
            case ast.Constant(value=value):
                if isinstance(value, bytes):
                    return _from(value.decode(errors="replace"), node.lineno)
                return self._text(node) if isinstance(value, str) else value
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
            case ast.Call(func=ast.Attribute(value=value, attr="encode" | "decode")):
                if isinstance(text := self._value(value), Text):
                    return text
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


def parameters(call: ast.Call, function: str, names: Sequence[str]) -> Mapping[str, ast.expr]:
    """The arguments of a call, by name.

    Args:
        call: of the function.
        function: its name, for messages.
        names: of its parameters, in order.

    Raises:
        SourceError: they are given by ``*`` or ``**``, or there is no such parameter.
    """
    if any(isinstance(argument, ast.Starred) for argument in call.args) or any(
        word.arg is None for word in call.keywords
    ):
        raise SourceError(call.lineno, f"{function} gets arguments by * or **: name each of them")
    nodes = dict(zip(names, call.args, strict=False))
    nodes |= {word.arg: word.value for word in call.keywords if word.arg is not None}
    for name in nodes.keys() - set(names):
        raise SourceError(call.lineno, f"{function} has no parameter {name}")
    return nodes


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


def plain(value: Any) -> Any:  # noqa: ANN401
    """A constant with what its texts hold in their place."""
    if isinstance(value, Text):
        return value.content
    return [plain(element) for element in value] if isinstance(value, list) else value


def texts_of(value: Any) -> tuple[Text, ...]:  # noqa: ANN401
    """The texts that are not empty of a constant that is a text, texts or nothing."""
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
