"""Triton in a process whose device is the simulator: its driver, and how a script runs with it."""
