"""Draws loss curves from the records of train_translation.py.

    python tests/benchmarks/plot_training.py RESULTS docs/training.svg

RESULTS is a folder with ``fused.json`` and ``unfused.json``. Needs matplotlib.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "training"  # the same records make the same file
from matplotlib import pyplot as plt  # noqa: E402 - after the backend was chosen

SMOOTHED = 20  # steps that a point is the mean of


def main(results: Path, target: Path) -> None:
    figure, axes = plt.subplots(figsize=(7, 4))
    unigram = 0.0
    for name, style in (("unfused", "-"), ("fused", "--")):
        record = json.loads((results / f"{name}.json").read_text())
        losses = record["losses"]
        width = max(1, min(SMOOTHED, len(losses) // 10))
        means = [sum(losses[at : at + width]) / width for at in range(0, len(losses) - width + 1, width)]
        label = f"{name}: {record['seconds']:.1f} s, {record['tokens_per_second']:,.0f} tokens/s"
        axes.plot([(at + 0.5) * width for at in range(len(means))], means, style, label=label)
        unigram = record["unigram"]
    axes.axhline(unigram, color="gray", linewidth=0.8, label="what word frequencies alone reach")
    axes.set_xlabel("step")
    axes.set_ylabel("loss (nats per target token)")
    axes.legend()
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
