"""What an assignment is: points, targets and limits as typed data, read from one TOML file.

Every key of the file is a field here, with its type, default and meaning; any other key is refused with the
nearest valid name.

Layer: imports nothing else of the grader.
"""

from __future__ import annotations

import difflib
import hashlib
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

if TYPE_CHECKING:
    from collections.abc import Mapping

_FOLDER = Path(__file__).parent

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Points = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class AssignmentError(Exception):
    """An assignment that does not exist or is wrong; the message names file, key and remedy."""


class _Table(BaseModel):
    """A table of the TOML file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Limits(_Table):
    """What compiling and running one submission may use."""

    compile_seconds: Positive = Field(default=180.0, description="processor time to compile one file")
    compile_memory_gib: Positive = Field(default=6.0, description="memory to compile one file")
    run_seconds_gpu: Positive = Field(default=10.0, description="device time of one call on a GPU")
    run_seconds_sim: Positive = Field(
        default=60.0, description="processor time of the host code of one call on the simulator"
    )
    sim_instructions: int = Field(
        default=16_000_000, gt=0, description="warp instructions of one call on the simulator, at least"
    )
    sim_instructions_per_element: int = Field(
        default=512, ge=0, description="and so many more for each element of the call's largest array"
    )
    sim_instructions_per_row: int = Field(
        default=16_384,
        ge=0,
        description="in all, if warps end or pass barriers: four times the above, and so many for each row",
    )
    host_memory_gib: Positive = Field(
        default=2.0, description="host memory of the process that runs the kernels"
    )
    processes: int = Field(default=64, gt=0, description="processes and threads at a time")
    output_mib: float = Field(
        default=1.0, gt=0, le=1, description="what one call of the student's code may print; a pipe holds it"
    )
    scratch_mib: Positive = Field(default=256.0, description="files written while running")


class ProblemPoints(_Table):
    """What one problem of the assignment is worth."""

    id: str = Field(description="name of the problem's module in grader/problems")
    title: str = Field(description="what the reports call it")
    correctness: Points = Field(
        description="points for right results, in proportion to the case groups passed"
    )
    performance: Points = Field(description="points for speed: times min(1, speedup / target)")
    target: Positive = Field(
        description="speedup over the unfused baseline that earns all performance points"
    )
    host_target: Positive | None = Field(
        default=None,
        description="target of a launcher that takes host pointers, whose time is mostly copies; the same if "
        "there is none",
    )
    graded: bool = Field(
        default=True, description="false: not part of this release's grading, its points stay undecided"
    )

    @property
    def possible(self) -> float:
        """All points of this problem."""
        return self.correctness + self.performance

    def with_host_pointers(self) -> ProblemPoints:
        """The same for a launcher that takes host pointers."""
        return self.model_copy(update={"target": self.host_target or self.target})


class Waiver(_Table):
    """What is not held against a submission in some cases of a problem: those that meet any condition."""

    problem: str = Field(description="id of the problem")
    reason: str = Field(description="why, for the reports")
    findings: tuple[str, ...] = Field(
        default=(),
        strict=False,
        description="kinds of findings that cost nothing there; without any, those cases are not run",
    )
    numbers: bool = Field(
        default=False, description="whether wrong numbers cost nothing there either, nor a launcher's end"
    )
    not_multiple_of: dict[str, Annotated[int, Field(gt=0)]] = Field(
        default_factory=dict, description="condition: the size named is no multiple of the number"
    )
    above: dict[str, int] = Field(
        default_factory=dict, description="condition: the size named is above the number"
    )
    contents: tuple[str, ...] = Field(
        default=(), strict=False, description="condition: the case has one of these distributions of values"
    )

    @model_validator(mode="after")
    def _conditional(self) -> Waiver:
        if not (self.not_multiple_of or self.above or self.contents):
            raise ValueError("no condition. Name some of: not_multiple_of, above, contents.")
        return self

    def covers(self, sizes: Mapping[str, int], content: str) -> bool:
        """Whether a case of the problem meets a condition.

        Args:
            sizes: the sizes of the case by name.
            content: its distribution of values.
        """
        odd = any(name in sizes and sizes[name] % number for name, number in self.not_multiple_of.items())
        large = any(sizes.get(name, 0) > number for name, number in self.above.items())
        return odd or large or content in self.contents


class Assignment(_Table):
    """A set of problems with points and targets."""

    id: str = Field(description="stable name, also the name of the TOML file")
    title: str = Field(description="what the reports call it")
    group_points: dict[str, Points] = Field(
        default_factory=dict,
        description="points, of each problem's correctness points, of the case groups named here; "
        "the other groups share the rest equally",
    )
    allowed_imports: tuple[str, ...] = Field(
        default=(),
        strict=False,
        description="regular expressions of functions and libraries that a built library may use beyond the "
        "import policy; those of C++ by their mangled names, which nm -D shows",
    )
    limits: Limits = Field(default=Limits(), description="limits of compiling and running")
    problems: tuple[ProblemPoints, ...] = Field(min_length=1, strict=False, description="in order of reports")
    waivers: tuple[Waiver, ...] = Field(
        default=(),
        strict=False,
        description="what is not held against a submission; the first that fits counts",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Assignment:
        ids = [problem.id for problem in self.problems]
        if twice := {name for name in ids if ids.count(name) > 1}:
            raise ValueError(f"problem {min(twice)!r} stands twice")
        for waiver in self.waivers:
            if waiver.problem not in ids:
                raise ValueError(f"a waiver names {waiver.problem!r}.{nearest(waiver.problem, ids)}")
        for pattern in self.allowed_imports:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"allowed_imports: {pattern!r} is no regular expression: {error}") from error
        named = sum(self.group_points.values())
        for problem in self.problems:
            if named > problem.correctness:
                raise ValueError(
                    f"group_points sum to {named:g}, more than the {problem.correctness:g} "
                    f"correctness points of {problem.id!r}"
                )
        return self

    @property
    def sha256(self) -> str:
        """The hash of all of it: only records with the same one compare with each other."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    def problem(self, problem_id: str) -> ProblemPoints:
        """The entry of one problem.

        Raises:
            AssignmentError: the assignment has no such problem.
        """
        for problem in self.problems:
            if problem.id == problem_id:
                return problem
        ids = [problem.id for problem in self.problems]
        raise AssignmentError(f"{self.id} has no problem {problem_id!r}.{nearest(problem_id, ids)}")


def available() -> tuple[str, ...]:
    """Ids of the assignments that come with the grader."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def load(assignment_id: str) -> Assignment:
    """The assignment of that id.

    Raises:
        AssignmentError: there is none, or its file is wrong.
    """
    if assignment_id not in available():
        raise AssignmentError(
            f"there is no assignment {assignment_id!r}.{nearest(assignment_id, list(available()))}"
        )
    return read(_FOLDER / f"{assignment_id}.toml")


def read(path: Path) -> Assignment:
    """The assignment in a TOML file.

    Raises:
        AssignmentError: the file cannot be read, is no TOML, or has a wrong, missing or unknown key.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors mark UTF-8 at its beginning
        assignment = Assignment.model_validate(tomllib.loads(text))
    except OSError as error:
        raise AssignmentError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AssignmentError(f"{path}: not TOML: {error}") from error
    except ValidationError as error:
        problems = "; ".join(
            _explain(detail["loc"], detail["type"], detail["msg"]) for detail in error.errors()
        )
        raise AssignmentError(f"{path}: {problems}") from error
    if assignment.id != path.stem:
        raise AssignmentError(f"{path}: id is {assignment.id!r}; it must be the file's name, {path.stem!r}")
    return assignment


def _explain(where: tuple[int | str, ...], kind: str, message: str) -> str:
    """One line for one fault of a file; ``where`` is the path of keys to it."""
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where).lstrip(".")
    if kind == "extra_forbidden":
        return f"unknown key {place!r}.{nearest(str(where[-1]), list(_table_at(where).model_fields))}"
    if kind == "missing":
        return f"missing key {place!r}"
    message = message.removeprefix("Value error, ")  # of pydantic, for what a validator here says itself
    return f"{place}: {message}" if place else message


def _table_at(where: tuple[int | str, ...]) -> type[_Table]:
    """The model whose key the last part of ``where`` is."""
    table: type[_Table] = Assignment
    for part in where[:-1]:
        if isinstance(part, str):
            annotation = table.model_fields[part].annotation
            candidates = (annotation, *get_args(annotation))
            table = next(kind for kind in candidates if isinstance(kind, type) and issubclass(kind, _Table))
    return table


def nearest(name: str, valid: list[str]) -> str:
    """The end of a message about a name that does not exist."""
    near = difflib.get_close_matches(name, valid, n=1, cutoff=0.5)
    return f" Did you mean {near[0]!r}?" if near else f" Valid: {', '.join(valid)}."
