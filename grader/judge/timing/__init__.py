"""Whether a kernel is fast: the timing protocol, statistics, plausibility, and the record of a speed."""
