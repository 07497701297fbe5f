"""Grades CUDA kernels: whether they are right, on any machine, and whether they are fast, on a GPU."""

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """``reproduce``, ``Judge``: for notebooks and training; imported when asked for, as it takes a second."""
    if name == "Judge":
        from grader.batch.candidates import Judge  # noqa: PLC0415

        return Judge
    if name == "reproduce":
        from grader.cli.reproduce import of_submission  # noqa: PLC0415

        return of_submission
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
