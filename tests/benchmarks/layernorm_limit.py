"""What LayerNorm backward of few rows waits for: its parts alone, and without their arithmetic.

    PYTHONPATH=tests python tests/benchmarks/layernorm_limit.py [--json FILE] [--rounds N]

Each version is the reference with some of its work left out, so all but the first are wrong. They are timed
as in ``kernels.py``; percentages are the time of a streaming kernel with the same minimal bytes over theirs.
No kernel that sums columns as the reference does can take less time than its columns alone.
"""

# ruff: noqa: T201 - a command prints

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from candidates import REFERENCE, edited
from first_assignment import KERNELS
from kernels import REFERENCE_NAME, ROUNDS, STREAM, Lab, case_of, launcher, seconds, shape, streaming, traffic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kernels import Way

PROBLEM = KERNELS["layernorm_backward"]
SHAPES = ((1024, 256), (5120, 256))
_SIDE_BY_SIDE = "ker_ln_bw_split<B::GROUP, B::CHUNKS><<<column_blocks + row_blocks,"
_COLUMNS = (_SIDE_BY_SIDE, _SIDE_BY_SIDE.replace("column_blocks + row_blocks", "column_blocks"))
_NO_COLUMNS = ("column_blocks = blocks_for(hidden_dim, SLAB);", "column_blocks = 0;")
_NO_SUMS_OF_ROWS = ("  reduce<Sum, GROUP>(sum, shared);\n", "")
_ONLY_ADDED = (
    ("          mean[a] = means[row];\n          variance[a] = vars[row];\n", ""),
    ("sum[w] += dy[a][w] * ((x[a][w] - mean[a]) * inverse_sigma);", "sum[w] += x[a][w];"),
)
LEFT_OUT: Mapping[str, tuple[tuple[str, str], ...]] = {
    REFERENCE_NAME: (),
    "rows": (_NO_COLUMNS,),
    "rows, no sums": (_NO_COLUMNS, _NO_SUMS_OF_ROWS),
    "columns": (_COLUMNS,),
    "columns, only added": (_COLUMNS, *_ONLY_ADDED),
    "both, only added": (_NO_SUMS_OF_ROWS, *_ONLY_ADDED),
    "a launch": ((_SIDE_BY_SIDE, _SIDE_BY_SIDE.replace("column_blocks + row_blocks", "1")), _NO_COLUMNS),
}
"""Edits of the reference by version; each text occurs once."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N")
    options = parser.parse_args(arguments)
    lab, header = Lab(), (REFERENCE / "row.cuh").read_text()

    def of(edits: Sequence[tuple[str, str]]) -> Way:
        texts = {PROBLEM.file: edited(PROBLEM.file, edits), "row.cuh": header}
        function = lab.function(PROBLEM.file, texts, PROBLEM.entry_point)
        return lambda arrays, given: launcher(function, PROBLEM, arrays, given)

    ways = {name: of(edits) for name, edits in LEFT_OUT.items()}
    found = {}
    for rows, columns in SHAPES:
        case = case_of(({"batch_size": rows, "hidden_dim": columns}, "normal"))
        one = shape(PROBLEM, case)
        moved = traffic(PROBLEM, case, one.given)
        launches = {STREAM: [streaming(lab.stream, *moved) for _ in one.sets]}
        launches |= {name: one.launches(way) for name, way in ways.items()}
        times = seconds(launches, one.restore, options.rounds)
        us = {name: median(all_) * 1e6 for name, all_ in times.items()}
        found[case.name] = us
        cells = [f"{name} {time:.2f} us ({us[STREAM] / time:.0%})" for name, time in us.items()]
        print(case.name, *cells, sep="  ", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
