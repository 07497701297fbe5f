"""``python -m grader`` is the same as ``grader``."""

from grader.processes.imports import importing


def main() -> None:
    """Run a command, and end at an interrupt from the first moment on."""
    with importing():
        from grader.cli.main import main as run  # noqa: PLC0415 - here, where an interrupt may come
    run()


if __name__ == "__main__":
    main()
