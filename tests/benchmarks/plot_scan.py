"""Draws the times of the RG-LRU and of attention over the length, from the record of assignments_gpu.py.

    python tests/benchmarks/plot_scan.py RECORD.json docs/rglru.svg

Needs matplotlib.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "scan"  # the same records make the same file
from matplotlib import pyplot as plt  # noqa: E402 - after the backend was chosen

PANELS = {"rglru_forward": "forward", "rglru_both": "forward and backward"}


def main(record: Path, target: Path) -> None:
    shapes = json.loads(record.read_text())["shapes"]
    figure, panels = plt.subplots(1, len(PANELS), figsize=(9, 4))
    for axes, (problem, title) in zip(panels, PANELS.items(), strict=True):
        mine = [shape for shape in shapes if shape["problem"] == problem]
        for name in dict.fromkeys(name for shape in mine for name in shape["us"]):
            points = [(shape["size"], shape["us"][name] / 1000) for shape in mine if name in shape["us"]]
            axes.plot(*zip(*points, strict=True), marker=".", label=name)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_title(title)
        axes.set_xlabel("length")
        axes.set_ylabel("ms")
        axes.legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
