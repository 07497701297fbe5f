"""What names of files mean where an assignment lists those that are handed in."""

from __future__ import annotations


def is_pattern(name: str) -> bool:
    """Whether a name stands for every file that it matches, as in a shell."""
    return not {"*", "?", "["}.isdisjoint(name)


MARKER = "grader.toml"
"""What names the assignment that a student's folder is for."""

HANDOUTS = ("ASSIGNMENT.md", "HANDOUT.md", "README.md")
"""What the text for students may be called."""
