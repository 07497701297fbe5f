"""Assignments: which problems, how many points, which targets and limits. One TOML file each."""
