"""Many submissions: found in a folder, graded in a process each, shown in one gradebook."""
