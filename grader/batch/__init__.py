"""Grading of many submissions: finds them in a folder, grades them in parallel, makes one gradebook."""
