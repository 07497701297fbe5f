"""Pages of the documentation that are made from the code: a hook of MkDocs, which adds them to the site.

The keys of assignment.toml and the operations of formulas are wanted without the site, too: ``python
docs/site/reference.py`` writes these pages into ``docs``, and a test holds that they are up to date.
"""

from __future__ import annotations

import dataclasses
import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import click
import torch
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from grader.assignments.rules import (
    Band,
    Deadline,
    Demand,
    Hidden,
    ProblemPoints,
    ProgramTable,
    Rules,
    Step,
    Waiver,
    WorkLimits,
)
from grader.cli.main import commands
from grader.problems.rounding import EXACT, MODELLED, RELATIVE
from grader.problems.tracing import WITH_KERNELS
from grader.records.diagnosis import Diagnosis
from grader.records.findings import Line
from grader.records.record import SCHEMA_VERSION, PlaceRecord, Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from pydantic.fields import FieldInfo


KEYS = Path(__file__).parents[1] / "assignment_toml.md"
"""The page with the keys of assignment.toml."""

OPERATIONS = KEYS.with_name("operations.md")
"""The page with the operations of formulas."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - one page is made without MkDocs

    for name, text in pages().items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def pages() -> Mapping[str, str]:
    """The text of each page by its name."""
    return {
        "command-line": "\n".join(_command_line()),
        "record": "\n".join(_record()),
    }


def _command_line() -> Iterator[str]:
    yield "# The command line\n"
    yield "`grader COMMAND --help` prints the same. `python -m grader` is another way to call it.\n"
    yield (
        "Exit codes: 0 full marks of what could be measured, 1 points lost, 2 wrong usage, 3 a fault of the "
        "machine, 4 a bug in the grader, 130 interrupted. Progress goes to stderr and results to stdout; the "
        "last line of `grader grade` is `Score: EARNED/DECIDED (POSSIBLE possible)`.\n"
    )
    yield from _commands(commands, "grader")


def _commands(group: click.Group, path: str) -> Iterator[str]:
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from _commands(command, f"{path} {name}")
            continue
        context = click.Context(command, info_name=f"{path} {name}")
        yield f"## {path} {name}\n"
        yield f"```\n{command.get_usage(context).removeprefix('Usage: ')}\n```\n"
        yield f"{_plain(command.help or '')}\n"
        records = (option.get_help_record(context) for option in command.params)
        yield from _table(("Option", "Does"), [(f"`{one[0]}`", _plain(one[1])) for one in records if one])


def keys() -> str:
    """The text of the page ``KEYS``."""
    return "\n".join(_assignment_toml())


def operations() -> str:
    """The text of the page ``OPERATIONS``."""
    return "\n".join(_operations())


def _operations() -> Iterator[str]:
    yield "# Which operations of PyTorch formulas may use\n"
    yield (
        "A formula may call whatever PyTorch makes of the operations below, forward and backward: `softmax`, "
        "`layer_norm`, `einsum`, `conv2d` or `gelu` need no row of their own. Views, such as `x[:, 1:]`, "
        "`reshape`, `permute` and `expand`, are always allowed. Operations on integers alone are exact, "
        "whatever they are. What is missing is refused by name. This page is made from the code.\n"
    )
    yield (
        "Every operation has an error model, from which "
        "[the bound](assignments.md#a-problem-from-one-formula) follows. Those in the last column have no "
        "kernel of their own in the baseline. PyTorch makes some of them of others (`stack`, `triu`, "
        "`roll`); of what it does not, `grader problems` says so, and a formula with it has no speedup over "
        "the baseline. Give such a problem no `timing`, or `replace(PROBLEM, unfused=...)`.\n"
    )
    yield (
        "The shape of a result has to follow from the sizes alone. That of `bincount`, `nonzero`, `unique`, "
        "`masked_select` and `x[mask]` depends on the numbers. Write "
        "`torch.zeros(k).index_add(0, x.long(), torch.ones(n))` for `bincount(x)`, and "
        "`torch.where(mask, x, 0)` for `x[mask]`. If such a shape is that of an output, a "
        "[checker](checkers.md) says what is right.\n"
    )
    yield (
        "An array of `unsigned char` is `uint8` in a formula, which PyTorch takes for numbers: write "
        "`mask.bool()`, or `mask != 0`, where it is a condition, as in `torch.where(mask.bool(), x, y)`. "
        "An array of `bool` needs no such call. Sums of small integers are `int64`, and `x.int()` before a "
        "product keeps one of `uint8` or `int8` from wrapping.\n"
    )
    rows = [
        (meaning, _names(names & WITH_KERNELS), _names(names - WITH_KERNELS))
        for meaning, names in _by_error().items()
    ]
    yield from _table(("Error of a result", "Operations", "Without a kernel of their own"), rows)
    yield (
        "u is the roundoff of a right kernel's arithmetic: 2^-24, or 2^-53 where an output is `double*`. The "
        "text of `grader/problems/rounding.py` has the whole derivation.\n"
    )


def _by_error() -> dict[str, set[str]]:
    """The operations by the size of their errors, those without any first."""
    by_error: dict[str, set[str]] = {"none: they choose, move or compare": set(EXACT)}
    for name, units in RELATIVE.items():
        by_error.setdefault(f"{units:g} u of it", set()).add(name)
    by_error["that of its size and its operands"] = set(MODELLED - EXACT - {*RELATIVE})
    return by_error


def _names(names: Iterable[str]) -> str:
    """Names that people write, and no others of PyTorch's inside."""
    public = (torch, torch.Tensor, torch.nn.functional)
    written = (name for name in sorted(names) if any(hasattr(each, name) for each in public))
    return " ".join(f"`{name}`" for name in written if not name.startswith("_"))


def _assignment_toml() -> Iterator[str]:
    yield "# assignment.toml: every key\n"
    yield (
        "Any other key is refused, with the nearest one that exists. [Assignments](assignments.md) says what "
        "else lies in the folder, and shows the keys in use. This page is made from the code.\n"
    )
    tables: tuple[tuple[str, type[BaseModel]], ...] = (
        ("The top of the file", Rules),
        ("[[problems]]", ProblemPoints),
        ("[problems.program]", ProgramTable),
        ("[[problems.steps]]", Step),
        ("[[problems.bands]]", Band),
        ("[[problems.demands]]", Demand),
        ("[limits]", WorkLimits),
        ("[deadline]", Deadline),
        ("[hidden]", Hidden),
        ("[[waivers]]", Waiver),
    )
    for title, model in tables:
        yield f"## {title}\n"
        rows = [
            (f"`{name}`", _in_toml(field.annotation), _toml_default(field), _plain(field.description or ""))
            for name, field in model.model_fields.items()
        ]
        yield from _table(("Key", "Type", "Without it", "Meaning"), rows)


_IN_TOML = {str: "text", int: "integer", float: "number", bool: "true or false", datetime: "date and time"}


def _in_toml(kind: Any) -> str:  # noqa: ANN401 - an annotation
    """What TOML calls a type of Python."""
    origin, parts = get_origin(kind), [part for part in get_args(kind) if part is not type(None)]
    if origin is Literal:
        return " or ".join(f"`{_toml(part)}`" for part in parts)
    if origin is dict:
        return f"table: {_in_toml(parts[1])} by {'name' if parts[0] is str else _in_toml(parts[0])}"
    if origin is tuple:
        return f"list: {_in_toml(parts[0])}"
    if origin is Annotated or parts:
        return _in_toml(parts[0])
    return _IN_TOML.get(kind) or ("table" if issubclass(kind, BaseModel) else "date and time")


def _toml_default(field: FieldInfo) -> str:
    if field.is_required():
        return "has to be there"
    default = field.get_default(call_default_factory=True, validated_data={})
    return "" if default is None or isinstance(default, BaseModel) else f"`{_toml(default)}`"


def _toml(value: object) -> str:
    """A value as TOML writes it."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value)


def _record() -> Iterator[str]:
    yield "# The record, result.json\n"
    yield (
        f"Schema {SCHEMA_VERSION}. A newer minor version adds fields; a record of a newer major version is "
        "refused. The JSON schema is `grader/records/result.schema.json` in the package.\n"
    )
    yield from _models(Record, set())
    for kind in (Line, PlaceRecord, Diagnosis):
        yield f"## {kind.__name__}\n"
        yield f"{_plain((kind.__doc__ or '').partition('Attributes:')[0])}\n"
        rows = [(f"`{each.name}`", f"`{each.type}`") for each in dataclasses.fields(kind)]
        yield from _table(("Key", "Type"), rows)


def _models(model: type[BaseModel], seen: set[type[BaseModel]]) -> Iterator[str]:
    """A model, and those that its fields hold, each once."""
    seen.add(model)
    yield f"## {model.__name__}\n"
    yield f"{(model.__doc__ or '').strip()}\n"
    yield from _fields(model)
    for part in _parts(model):
        if part not in seen:
            yield from _models(part, seen)


def _parts(model: type[BaseModel]) -> list[type[BaseModel]]:
    known = {kind.__name__: kind for kind in _below(BaseModel)}
    definitions = model.model_json_schema().get("$defs", {})
    return [known[name] for name in definitions if name in known]


def _below(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for child in kind.__subclasses__():
        yield child
        yield from _below(child)


def _fields(model: type[BaseModel]) -> Iterator[str]:
    rows = [
        (f"`{field.alias or name}`", _kind(field), _default(field), _plain(field.description or ""))
        for name, field in model.model_fields.items()
    ] + [
        (f"`{name}`", "`str`", "is made of the others", _plain(field.description or ""))
        for name, field in model.model_computed_fields.items()
    ]
    yield from _table(("Key", "Type", "If not given", "Says"), rows)


def _kind(field: FieldInfo) -> str:
    kind = field.annotation
    name = kind.__name__ if isinstance(kind, type) and not hasattr(kind, "__args__") else str(kind)
    for prefix in (
        "typing.",
        "grader.records.record.",
        "grader.assignments.rules.",
        "grader.records.verdict.",
    ):
        name = name.replace(prefix, "")
    escaped = name.replace("|", r"\|")
    return f"`{escaped}`"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "has to be given"
    value = field.default_factory() if callable(field.default_factory) else field.default  # type: ignore[call-arg]
    return "" if value is PydanticUndefined or isinstance(value, BaseModel) else f"`{value!r}`"


def _table(titles: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    if rows:
        yield "\n".join(f"| {' | '.join(row)} |" for row in (titles, tuple("---" for _ in titles), *rows))
        yield ""


def _plain(text: str) -> str:
    """Words in one line, in which nothing is markup."""
    words = " ".join(text.replace("\b", "").split())
    return words.replace("<", "&lt;").replace("*", r"\*").replace("|", r"\|")


if __name__ == "__main__":
    KEYS.write_text(keys(), encoding="utf-8")
    OPERATIONS.write_text(operations(), encoding="utf-8")
