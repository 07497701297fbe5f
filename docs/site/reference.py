"""Pages of the documentation that are made from the code: a hook of MkDocs, which adds them to the site."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click
from mkdocs.structure.files import File
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from grader.assignments.rules import (
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
from grader.records.diagnosis import Diagnosis
from grader.records.findings import Line
from grader.records.record import SCHEMA_VERSION, PlaceRecord, Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from pydantic.fields import FieldInfo


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    for name, text in pages().items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def pages() -> Mapping[str, str]:
    """The text of each page by its name."""
    return {
        "command-line": "\n".join(_command_line()),
        "assignment-toml": "\n".join(_assignment_toml()),
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


def _assignment_toml() -> Iterator[str]:
    yield "# assignment.toml\n"
    yield (
        "Any other key is refused, with the nearest one that exists. [Assignments](../assignments.md) says "
        "what else lies in the folder.\n"
    )
    tables: tuple[tuple[str, type[BaseModel]], ...] = (
        ("The top of the file", Rules),
        ("[[problems]]", ProblemPoints),
        ("[problems.program]", ProgramTable),
        ("[[problems.steps]]", Step),
        ("[[problems.demands]]", Demand),
        ("[limits]", WorkLimits),
        ("[deadline]", Deadline),
        ("[hidden]", Hidden),
        ("[[waivers]]", Waiver),
    )
    for title, model in tables:
        yield f"## {title}\n"
        yield from _fields(model)


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
    return f"`{name}`"


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
