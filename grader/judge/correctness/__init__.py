"""Whether a kernel is right: cases, comparison with the oracle, and what is likely to be wrong."""
