"""The grader's own processes: clean-up of their temporary folders, and signals while modules are imported."""
