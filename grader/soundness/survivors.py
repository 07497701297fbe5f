"""Mutants that no case can or need find, each with the reason: ``mutants/survivors.toml`` of an assignment.

    [[survivor]]
    key = "0123456789"         # as the report prints it
    edit = "reference/file.cu:12 `<` becomes `<=`"      # for people; the report prints that, too
    equivalent = true          # right for every input that the handout allows
    reason = "The element behind the last is never read."

Layer: imports assignments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from grader.assignments.rules import AssignmentError, tables

if TYPE_CHECKING:
    from grader.assignments.assignment import Assignment

FILE = "mutants/survivors.toml"


class Survivor(BaseModel):
    """Why a mutant may survive."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    key: str = Field(description="of the mutant")
    edit: str = Field(description="what it changes, for people")
    equivalent: bool = Field(description="whether it is right for every input that the handout allows")
    reason: str = Field(min_length=1, description="why no case finds it")


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    survivor: tuple[Survivor, ...] = Field(default=(), strict=False)


def explained(assignment: Assignment) -> dict[str, Survivor]:
    """The survivors that an assignment explains, by key; none without the file.

    Raises:
        AssignmentError: the file is wrong.
    """
    path = assignment.folder / FILE
    if not path.exists():
        return {}
    try:
        survivors = _File.model_validate(tables(path)).survivor
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" for detail in error.errors()
        )
        raise AssignmentError(f"{path}: {faults}") from error
    return {survivor.key: survivor for survivor in survivors}
