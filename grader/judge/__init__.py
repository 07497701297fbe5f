"""The trusted process: correctness, timing and diagnosis. It never loads code of a submission."""
