"""Whether a submission's Python file keeps to what it may use; ``allowed`` is the table.

A file that launches kernels needs Triton or the launchers that are given, PyTorch and arithmetic. Every name
and every attribute of it is looked up in the table, modules along their whole path, so what is not known is
refused. Looking things up by a text that the file computes is refused, too: nobody could say what it reaches.
Python can hide anything, so the sandbox and the device hold what this lets through.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import string
import symtable
import types
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.languages import allowed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

_NO_NEED = "which no launcher needs"
_BY_TEXT = "looks something up by a text that it computes"
_INTERNAL = frozenset(
    name
    for kind in (
        *(types.FrameType, types.CodeType, types.TracebackType, types.FunctionType, types.MethodType),
        *(types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType, types.ModuleType),
    )
    for name in dir(kind)
)
"""What Python's own objects have that lead to frames, code and modules: no field may be called so."""
_FUNCTIONS_ON_NAMES = frozenset({"getattr", "hasattr"})


@dataclass(frozen=True)
class Review:
    """The places of a file that break the policy.

    Attributes:
        reasons: a sentence with its line for each.
        mistaken: whether they are mistakes, and no attempt to reach anything: each is a name that is close to
            one that may be used, or they are the file's kernels in a language that is not taken here.
    """

    reasons: tuple[str, ...]
    mistaken: bool


def review(
    tree: ast.Module,
    file: str,
    modules: Mapping[str, Collection[str]] | None = None,
    attributes: Collection[str] = (),
    languages: Collection[str] = (),
) -> Review:
    """Hold a file against the policy.

    What stands under ``if __name__ == "__main__"`` is not looked at, as it does not run.

    Args:
        tree: of the file.
        file: its name, for the sentences.
        modules: modules beyond the table that it may import, and what it may use of them.
        attributes: attributes beyond the table that it may read: functions that it builds itself.
        languages: that kernels may be handed in in.
    """
    body = [node for node in tree.body if not _is_main(node)]
    looking = _Looking(ast.Module(body, []), modules or {}, attributes, languages)
    looking.visit(looking.tree)
    offences = sorted(looking.other_ways[:1] or looking.found, key=lambda offence: offence[0])
    reasons = tuple(dict.fromkeys(f"{file}:{line} {reason}" for line, reason in offences))
    mistaken = bool(looking.other_ways) or (bool(reasons) and looking.misspelt == len(looking.found))
    return Review(reasons, mistaken)


def public(tree: ast.Module) -> frozenset[str]:
    """The names that a module of the assignment defines itself, for those who import it."""
    bound = {
        name.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for name in ast.walk(node)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    }
    bound |= {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return frozenset(name for name in bound if not name.startswith("_"))


class _Looking(ast.NodeVisitor):
    """Walks through a file and notes each reason with its line."""

    def __init__(
        self,
        tree: ast.Module,
        modules: Mapping[str, Collection[str]],
        attributes: Collection[str],
        languages: Collection[str],
    ) -> None:
        self.tree = tree
        self.found: list[tuple[int, str]] = []
        self.misspelt = 0  # of these
        self.other_ways: list[tuple[int, str]] = []  # kernels in another language, of which the rest is part
        self._given = modules
        self._languages = languages
        self._parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self._modules = dict(self._imported())
        self._fields = frozenset((*_fields(tree), *attributes)) - _INTERNAL
        self._builtins = _used_as_builtins(tree)

    def _note(self, node: ast.AST, reason: str) -> None:
        self.found.append((getattr(node, "lineno", 0), reason))

    def _note_import(self, node: ast.AST, path: str, reason: str) -> None:
        """Note an import that is refused, and what to hand in instead where it is of another language."""
        self._note(node, reason)
        self._note_way(node, "imports", path)

    def _note_way(self, node: ast.AST, verb: str, path: str) -> None:
        """Note what to hand in instead, where a path belongs to kernels in another language."""
        for module, kind in allowed.OTHER_WAYS.items():
            if module not in self._given and f"{path}.".startswith(f"{module}."):
                line = node.lineno if isinstance(node, ast.stmt | ast.expr) else 0
                text = f"{verb} {module}: kernels in {kind} are not taken in this file. {self._instead()}"
                self.other_ways.append((line, text))
                return

    def _instead(self) -> str:
        """What to hand in instead of kernels in another language."""
        ways = [allowed.WAYS[language] for language in self._languages]
        if not ways:
            return "Hand in kernels in the files that the problem asks for"
        *first, last = ways
        return f"Hand in {', '.join(first)} or {last}" if first else f"Hand in {last}"

    def _note_unknown(self, node: ast.AST, use: str, name: str, names: Collection[str]) -> None:
        """Note the use of a name that may not be used, with the nearest one that may."""
        near = [] if name.startswith("_") else difflib.get_close_matches(name, names, n=1, cutoff=0.8)
        self.misspelt += len(near)
        self._note(
            node, f"{use}, {_NO_NEED}" + "".join(f" (did you mean {candidate}?)" for candidate in near)
        )

    # --- modules

    def _imported(self) -> Iterator[tuple[str, str]]:
        """The names that stand for modules, and which."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield (alias.asname, alias.name) if alias.asname else (alias.name.partition(".")[0],) * 2
            elif isinstance(node, ast.ImportFrom) and not node.level:
                for alias in node.names:
                    if self._is_module(path := f"{node.module}.{alias.name}"):
                        yield alias.asname or alias.name, path

    def _is_module(self, path: str) -> bool:
        return path in allowed.MODULES or path in self._given

    def _may(self, module: str, name: str) -> bool:
        """Whether a module's name may be used."""
        if name in self._given.get(module, ()):
            return True
        if module not in allowed.MODULES:
            return False
        names = allowed.names(module)
        return name in names or (allowed.ANY in names and not name.startswith("_"))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._bind(node, alias.asname or "")
            if not self._is_module(alias.name) and not self._is_for_types(node):
                self._note_import(node, alias.name, f"imports {alias.name}, {self._of_import(alias.name)}")

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            self._bind(node, alias.asname or "")
            path = f"{module}.{alias.name}"
            if self._is_for_types(node) or self._is_module(path):
                continue
            if alias.name == "*":
                self._note(node, f"imports all of {module}: name what it needs")
            elif not self._is_module(module):
                named = path if node.module else module
                self._note_import(node, named, f"imports {named}, {self._of_import(path)}")
            elif not self._may(module, alias.name):
                self._note_unknown(node, f"imports {path}", alias.name, self._of(module))
                self._note_way(node, "imports", path)

    def _of_import(self, path: str) -> str:
        """Which part of a module's path is in the way, if the module itself is not."""
        first, *rest = path.split(".")
        if self._is_module(first):
            for part in rest:
                if not self._is_module(first := f"{first}.{part}"):
                    return f"whose {part} no launcher needs"
        return _NO_NEED

    def _of(self, module: str) -> Collection[str]:
        names = allowed.names(module) if module in allowed.MODULES else ()
        return frozenset({*self._given.get(module, ()), *names})

    def _is_for_types(self, node: ast.stmt) -> bool:
        """Whether an import stands under ``if TYPE_CHECKING`` and so never runs."""
        above = self._parents.get(node)
        if not isinstance(above, ast.If) or node not in above.body:
            return False
        named = ast.unparse(above.test)
        if named == "typing.TYPE_CHECKING":
            return self._modules.get("typing") == "typing"
        return named == "TYPE_CHECKING" and _is_bound_once(self.tree, "typing", "TYPE_CHECKING")

    # --- names

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store | ast.Del):
            self._bind(node, node.id)
        elif node.id in self._modules:
            self._note(node, f"passes the module {node.id} on: name what it needs of it")
        elif not self._is_known(node.id):
            self._note(node, f"uses {node.id}, {_NO_NEED}")
        elif node.id in _FUNCTIONS_ON_NAMES and node.id in self._builtins:
            self._note(node, f"{_BY_TEXT}: {node.id}")
        elif node.id == "type" and node.id in self._builtins:
            self._note(node, "passes type on, which makes classes")

    def _is_known(self, name: str) -> bool:
        if _is_dunder(name):
            return name in allowed.NAMES
        return name not in self._builtins or name in allowed.functions()

    def _bind(self, node: ast.AST, name: str) -> None:
        if _is_dunder(name) and name not in allowed.DEFINED:
            self._note(node, f"uses {name}, {_NO_NEED}")

    def generic_visit(self, node: ast.AST) -> None:
        """Look at the names that a node binds, and go on below it."""
        match node:
            case ast.AsyncFunctionDef() | ast.AsyncFor() | ast.AsyncWith() | ast.Await():
                self._note(node, f"uses async, {_NO_NEED}")
            case ast.FunctionDef(name=str(name)) | ast.arg(arg=str(name)) | ast.ExceptHandler(name=str(name)):
                self._bind(node, name)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                self._bind(node, name)
            case ast.MatchMapping(rest=str(name)):
                self._bind(node, name)
            case ast.MatchClass():
                for name in node.kwd_attrs:
                    self._read(node, name)
            case ast.ClassDef():
                self._bind(node, node.name)
                for word in node.keywords:
                    if word.arg != "total" and ast.unparse(word.value) not in {"ABCMeta", "abc.ABCMeta"}:
                        self._note(node, f"makes a class by {word.arg or 'a mapping'}, {_NO_NEED}")
        super().generic_visit(node)

    # --- attributes

    def visit_Attribute(self, node: ast.Attribute) -> None:
        chain, root = [node], node.value
        while isinstance(root, ast.Attribute):
            chain.append(root)
            root = root.value
        if isinstance(root, ast.Name) and root.id in self._modules:
            self._of_module(node, self._modules[root.id], chain[::-1])
            return
        if isinstance(node.ctx, ast.Load):
            self._read(node, node.attr)
        elif not isinstance(node.value, ast.Name | ast.Attribute | ast.Subscript):
            self._note(node, f"changes .{node.attr} of {ast.unparse(node.value)}, {_NO_NEED}")
        elif node.attr not in allowed.CHANGED and not self._is_field(node):
            self._note(node, f"changes .{node.attr}, {_NO_NEED}")
        self.visit(node.value)

    def _is_field(self, node: ast.Attribute) -> bool:
        """Whether what is changed is a field of the file's own, and of no object of another's."""
        if _is_dunder(node.attr) or node.attr in _INTERNAL:
            return False
        if _is_first_parameter(node, self._parents):
            return True
        return node.attr in self._fields and (
            node.attr not in allowed.attributes() or self._is_made_here(node)
        )

    def _is_made_here(self, node: ast.Attribute) -> bool:
        """Whether the object is a variable that the function around it makes of a class of the file."""
        function = _function_around(node, self._parents)
        if function is None or not isinstance(node.value, ast.Name):
            return False
        classes = {other.name for other in ast.walk(self.tree) if isinstance(other, ast.ClassDef)}
        if isinstance(self._parents.get(function), ast.ClassDef):
            classes |= {parameter.arg for parameter in function.args.args[:1]}
        values = [
            assignment.value
            for assignment in ast.walk(function)
            if isinstance(assignment, ast.Assign)
            for to in assignment.targets
            if isinstance(to, ast.Name) and to.id == node.value.id
        ]
        return bool(values) and all(
            isinstance(value, ast.Call) and ast.unparse(value.func) in classes for value in values
        )

    def _of_module(self, node: ast.Attribute, module: str, chain: list[ast.Attribute]) -> None:
        """Look at the attributes behind the name of a module, from the first one on."""
        if not isinstance(node.ctx, ast.Load):
            self._note(node, f"changes {ast.unparse(node)}, which belongs to the module")
            return
        while chain and self._is_module(f"{module}.{chain[0].attr}"):
            module = f"{module}.{chain.pop(0).attr}"
        if not chain:
            self._note(node, f"passes the module {module} on: name what it needs of it")
            return
        first, *rest = (attribute.attr for attribute in chain)
        if not self._is_module(module):
            return  # the import is refused
        if not self._may(module, first):
            self._note_unknown(node, f"uses .{first} of {module}", first, self._of(module))
            self._note_way(node, "uses", f"{module}.{first}")
            return
        for name in rest:
            self._read(node, name)

    def _read(self, node: ast.AST, name: str) -> None:
        if name == "__class__" and self._is_named(node):
            return
        if name in {"format", "format_map"}:
            if not self._is_plain_format(node):
                self._note(node, f"{_BY_TEXT}: .{name} takes a constant text without attributes")
            return
        if name in allowed.attributes() or (name in self._fields and not _is_dunder(name)):
            return
        names = {*allowed.attributes(), *self._fields}
        self._note_unknown(node, f"uses .{name}", name, names)

    def _is_named(self, node: ast.AST) -> bool:
        """Whether nothing but the name is asked of what ``node`` gives."""
        above = self._parents.get(node)
        return isinstance(above, ast.Attribute) and above.attr in {"__name__", "__qualname__"}

    @staticmethod
    def _is_plain_format(node: ast.AST) -> bool:
        match node:
            case ast.Attribute(value=ast.Constant(value=str(text)), attr="format"):
                try:
                    fields = [field for _, field, _, _ in string.Formatter().parse(text) if field is not None]
                except ValueError:  # Python refuses it, too
                    return True
                return not any(mark in field for field in fields for mark in ".[")
        return False

    # --- calls

    def visit_Call(self, node: ast.Call) -> None:
        match node.func:
            case ast.Name(id="type") if "type" in self._builtins:
                if len(node.args) != 1 or node.keywords or not self._is_compared(node):
                    self._note(node, "passes on what type() gives, which leads into classes")
                self._visit_all(node.args, node.keywords)
            case ast.Name(id="getattr" | "hasattr" as function) if function in self._builtins:
                self._of_text(node, function)
            case _:
                self.generic_visit(node)

    def _visit_all(self, *nodes: Collection[ast.AST]) -> None:
        for group in nodes:
            for node in group:
                self.visit(node)

    def _of_text(self, node: ast.Call, function: str) -> None:
        match node.args:
            case [value, ast.Constant(value=str(name)), *default]:
                attribute = ast.copy_location(ast.Attribute(value, name, ast.Load()), node)
                if function == "getattr":
                    self._parents[attribute] = self._parents[node]
                    self.visit_Attribute(attribute)
                elif not (isinstance(value, ast.Name) and value.id in self._modules):
                    self.visit(value)
                self._visit_all(default, node.keywords)
            case _:
                self._note(node, f"{_BY_TEXT}: {function} takes a constant text")

    def _is_compared(self, node: ast.Call) -> bool:
        """Whether what ``type`` gives is only compared, called, printed, named, or a key."""
        above = self._parents.get(node)
        match above:
            case ast.Attribute() | ast.Compare() | ast.FormattedValue():
                return not isinstance(above, ast.Attribute) or self._is_named(node)
            case ast.Call(func=called):
                return called is node or ast.unparse(called) in {"print", "repr", "str", "isinstance"}
            case ast.Subscript(slice=index):
                return index is node
        return False


def _is_main(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and not node.orelse and ast.unparse(node.test) == "__name__ == '__main__'"


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _is_first_parameter(node: ast.Attribute, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether the attribute is one of ``self`` or ``ctx``, the first parameter of a method around it."""
    function = _function_around(node, parents)
    if function is None or not isinstance(parents.get(function), ast.ClassDef) or not function.args.args:
        return False
    return isinstance(node.value, ast.Name) and node.value.id == function.args.args[0].arg


def _function_around(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> ast.FunctionDef | None:
    above: ast.AST | None = node
    while above is not None and not isinstance(above, ast.FunctionDef):
        above = parents.get(above)
    return above


def _fields(tree: ast.Module) -> Iterator[str]:
    """The names that classes of a file define: methods, fields, attributes of ``self``, named tuples."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef():
                for part in node.body:
                    match part:
                        case ast.FunctionDef() | ast.ClassDef():
                            yield part.name
                        case ast.Assign() | ast.AnnAssign():
                            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
                            yield from (
                                name.id
                                for to in targets
                                for name in ast.walk(to)
                                if isinstance(name, ast.Name)
                            )
            case ast.Attribute(ctx=ast.Store()) if _is_first_parameter(node, parents):
                yield node.attr
            case ast.Call(func=ast.Name(id="namedtuple"), args=[_, ast.Constant(value=str(text))]):
                yield from text.replace(",", " ").split()
            case ast.Call(func=ast.Name(id="namedtuple"), args=[_, ast.List() | ast.Tuple() as listed]):
                yield from (
                    element.value
                    for element in listed.elts
                    if isinstance(element, ast.Constant) and isinstance(element.value, str)
                )
            case ast.Call(func=ast.Name(id="SimpleNamespace")):
                yield from (word.arg for word in node.keywords if word.arg is not None)


def _used_as_builtins(tree: ast.Module) -> frozenset[str]:
    """The names of Python's own functions that may be meant where the file uses these names.

    At the top level and in the body of a class a name that is not bound yet means Python's own.
    """
    source = ast.unparse(ast.fix_missing_locations(tree))
    tables, names = [symtable.symtable(source, "", "exec")], set()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        inner = table.get_type() not in {"module", "class"}
        names |= {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_referenced()
            and (symbol.is_global() or not inner)
            and hasattr(builtins, symbol.get_name())
        }
    return frozenset(names)


def _is_bound_once(tree: ast.Module, module: str, name: str) -> bool:
    """Whether a name is imported from a module and bound nowhere else."""
    imported = [
        alias.asname is None
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == module
        for alias in node.names
        if alias.name == name
    ]
    bindings = sum(
        (isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.arg) and node.arg == name)
        or (isinstance(node, ast.alias) and (node.asname or node.name) == name)
        or (isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name)
        for node in ast.walk(tree)
    )
    return imported == [True] and bindings == 1
