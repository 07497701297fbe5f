"""A worker that grades, but ``dies`` or ``hangs`` when it is first asked for vector_add: MET HOW LIFELINE."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from grader.batch import worker


def main() -> None:
    met, how = Path(sys.argv[1]), sys.argv[2]
    del sys.argv[1:3]
    real = worker.answer

    def answer(query: dict[str, Any], *rest: object) -> dict[str, Any]:
        if query["problems"] == ["vector_add"] and not met.exists():
            met.touch()
            if how == "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(600)
        return real(query, *rest)

    worker.answer = answer
    worker.main()


if __name__ == "__main__":
    main()
