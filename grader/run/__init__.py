"""One submission from its files to its record: collect, build, check, measure, score."""
