"""Makes candidates for one problem, to measure at which rate they are judged: half of them right, none twice.

python tests/batch/make_candidates.py row_softmax FOLDER [--count 24]
grader judge row_softmax FOLDER/* --assignment tensor_functions --device sim --json
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

from grader.assignments.assignment import load
from grader.assignments.mutants import table

ASSIGNMENT = load(str(Path(__file__).parents[2] / "assignments" / "tensor_functions"))
LANGUAGES = ("triton", "load_inline")


def candidates(problem: str, folder: Path, count: int) -> list[Path]:
    """Write files, those of both languages and right and wrong ones in turn; returns them."""
    folder.mkdir(parents=True, exist_ok=True)
    kinds, paths = [], []
    for language in LANGUAGES:
        file = ASSIGNMENT.reference_in(language) / f"{problem}.py"
        mutants = [mutant for mutant in table(ASSIGNMENT, language) if mutant.problem == problem]
        kinds.append(itertools.repeat(("right", file.read_text())))
        kinds.append(itertools.cycle(("wrong", mutant.text(ASSIGNMENT)) for mutant in mutants))
    in_turn = itertools.chain.from_iterable(zip(*kinds, strict=True))
    for number, (kind, text) in enumerate(itertools.islice(in_turn, count)):
        # Of two files that differ in a comment, both are built; of two texts of C++ in them, too.
        marked = text.replace("__global__", f"/* candidate {number} */ __global__")
        paths.append(folder / f"{number:03}_{kind}.py")
        paths[-1].write_text(f"{marked}\n# candidate {number}\n")
    return paths


def main() -> None:
    """Write the files that the command line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("problem")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=24)
    options = parser.parse_args()
    candidates(options.problem, options.folder, options.count)


if __name__ == "__main__":
    main()
