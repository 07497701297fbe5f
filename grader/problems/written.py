"""What the launchers write in a model, for the oracle of a model problem: recorded, and marked by factors.

The program of an oracle passes each output of a launcher through ``Written``. That records it, so that the
judge can compare what the launches of a submission write inside the model. Where a case is marked, it also
multiplies it by a field of factors, one for each element, as the judge does before the model gets it: results
that do not come from the launches then differ from what is expected.

Layer: imports numpy, and torch where a model is run.
"""

from __future__ import annotations

import zlib
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from numpy.typing import NDArray
    from torch import Tensor

    from grader.problems.problem import Expectation

SEED = "marks"
"""The scalar of a case with the seed of its factors; a case without it is not marked."""
_PREFIX = "written by "
_DECIMALS = 6  # to which rows are equal
_SIXTEENTHS = np.array([8, 9, 10, 11, 12, 13, 14, 18, 19, 20, 21, 22, 23, 24], np.float32) / 16


def key(output: str, use: int) -> str:
    """The name under which the oracle has what is written to ``output``, as ``launcher.parameter``."""
    return f"{_PREFIX}{output} {use}"


def is_written(name: str) -> bool:
    """Whether an expectation is for what a launcher writes, and not for a result of the model."""
    return name.startswith(_PREFIX)


def output(name: str) -> str:
    """The ``launcher.parameter`` of such an expectation."""
    return name.removeprefix(_PREFIX).rpartition(" ")[0]


def use(name: str) -> int:
    """Which use of the launcher in the model such an expectation is for, from 0 in the order of execution."""
    return int(name.rpartition(" ")[2])


def factors(seed: int, name: str, expected: NDArray[np.float64]) -> NDArray[np.float32]:
    """The field that marks what is ``expected`` under ``name``: sixteenths from 0.5 to 1.5, none of them 1.

    Equal rows have equal factors: nobody could say which of them a launch wrote.
    """
    random = np.random.default_rng((seed, zlib.crc32(name.encode())))
    rows = expected.round(_DECIMALS).reshape(-1, expected.shape[-1])
    _, first, alike = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    field = random.choice(_SIXTEENTHS, rows.shape)[first[alike.reshape(-1)]]
    return field.reshape(expected.shape)


def in_turn(steps: Sequence[Mapping[str, Expectation]]) -> dict[str, Expectation]:
    """Join what the launchers write in steps behind each other, each of which counts its uses from 0."""
    outputs: dict[str, Expectation] = {}
    before: Counter[str] = Counter()
    for step in steps:
        names = [name for name in step if is_written(name)]
        outputs |= {key(output(name), before[output(name)] + use(name)): step[name] for name in names}
        before.update(map(output, names))
    return outputs


class Written:
    """Records what launchers write in one run of a model, and marks it.

    Args:
        scalars: of the case, with ``SEED`` if it is marked.
        fields: the factors by ``key``, which the first run of a model decides for those with rounding errors.

    Attributes:
        outputs: what was written, before it was marked, by ``key``.
    """

    def __init__(self, scalars: Mapping[str, Any], fields: dict[str, Tensor]) -> None:
        self._seed = scalars.get(SEED)
        self._fields = fields
        self._uses: Counter[str] = Counter()
        self.outputs: dict[str, Tensor] = {}

    def __call__(self, name: str, value: Tensor) -> Tensor:
        """Record ``value``, which the next launch writes to output ``name``; return what the model gets."""
        use_key = key(name, self._uses[name])
        self._uses[name] += 1
        self.outputs[use_key] = value.detach()
        if self._seed is None:
            return value
        if use_key not in self._fields:
            import torch  # noqa: PLC0415 - the judge of problems without a model imports this module

            field = factors(int(self._seed), use_key, value.detach().numpy())
            self._fields[use_key] = torch.from_numpy(field).to(value.dtype)
        return value * self._fields[use_key]
