"""What concerns the grader's own processes: temporary folders with an owner, signals while modules load."""
