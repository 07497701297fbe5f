"""Reports, each of which is made only from ``result.json`` and runs nothing."""
