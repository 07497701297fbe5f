"""Assignments: folders with problems, points, targets and limits; loaded by id or path and checked."""
