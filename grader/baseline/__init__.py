"""The baseline of every speedup: a formula as a chain of generic operations, with one kernel for each."""
