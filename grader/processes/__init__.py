"""The grader's own processes: temporary folders, signals while modules are imported, and threads."""
