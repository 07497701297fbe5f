"""What a checker of an assignment says of outputs of which more than one is right.

A checker is a function of the case, its inputs and the outputs by name (``problem.Checker``). It returns ""
where all is right; else one sentence, or ``Wrong`` with the elements that are wrong::

    def check(case, inputs, outputs):
        near = outputs["near"]
        outside = (near < 0) | (near >= case.sizes["n"])
        return Wrong("an index points outside of x", "near", outside)  # right where none is true

Of outputs that are drawn at random, ``follows`` and ``frequencies`` say whether they can come from a
distribution. Each calls right samples wrong with a probability below ``FALSE_ALARM``, whatever their number
is: both bounds hold for every number of samples, and not in the limit alone. A grading that makes no more
than ``CALLS`` such calls, a case under each order of execution, so takes points from a right kernel with a
probability below 1e-9.

Layer: imports numpy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

FALSE_ALARM = 1e-13
"""Of one call of ``follows`` or ``frequencies``."""

CALLS = 10_000
"""Of both together in a grading, so that its false alarms stay below 1e-9."""


@dataclass(frozen=True)
class Wrong:
    """Outputs that a checker finds wrong.

    Attributes:
        message: what is wrong, in one sentence that the student reads.
        output: the name of the output that is wrong; "" if that may be any.
        elements: which of its elements are wrong, true and false in its shape; None if that is the output as
            a whole. The first of them are shown as examples; where none is true, nothing is wrong.
    """

    message: str
    output: str = ""
    elements: NDArray[np.bool_] | None = None


def follows(
    samples: ArrayLike,
    cumulative: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    false_alarm: float = FALSE_ALARM,
) -> str:
    """Why ``samples`` are not drawn independently from a continuous distribution; "" if they can be.

    The largest distance D between the shares of the samples and the cumulative distribution is compared with
    what chance allows: P(D > d) <= 2 exp(-2 n d^2) for n samples (Massart, "The tight constant in the
    Dvoretzky-Kiefer-Wolfowitz inequality", 1990).

    Args:
        samples: any number of them, in any shape.
        cumulative: the probability that a sample is at most a number, for an array of numbers.
        false_alarm: the probability with which right samples may be called wrong.
    """
    ordered = np.sort(np.asarray(samples, np.float64), axis=None)
    if not np.isfinite(ordered).all():
        return f"{np.count_nonzero(~np.isfinite(ordered)):,} of {ordered.size:,} samples are not finite"
    if not ordered.size:
        return ""
    steps = np.arange(ordered.size + 1) / ordered.size
    right = cumulative(ordered)
    distances = np.maximum(steps[1:] - right, right - steps[:-1])
    worst, allowed = int(distances.argmax()), float(np.sqrt(np.log(2 / false_alarm) / (2 * ordered.size)))
    if distances[worst] <= allowed:
        return ""
    below = right[worst] - steps[worst] == distances[worst]
    share, words = (steps[worst], "below") if below else (steps[worst + 1], "at most")
    return (
        f"{share:.1%} of {ordered.size:,} samples are {words} {ordered[worst]:.4g}, where {right[worst]:.1%} "
        f"are expected: chance explains a difference of {allowed:.1%}"
    )


def frequencies(
    counts: ArrayLike, probabilities: ArrayLike, false_alarm: float = FALSE_ALARM, names: Sequence[Any] = ()
) -> str:
    """Why counts of independent draws do not have these probabilities; "" if they can have them.

    Each count k of n draws is compared with what chance allows: P(K >= k) <= exp(-n KL(k/n, p)) above the
    mean, and likewise below it (Chernoff's bound in the form of Hoeffding, "Probability inequalities for sums
    of bounded random variables", 1963, theorem 1). It is never narrower than the exact interval of Clopper
    and Pearson. The probability of a false alarm is shared by all counts.

    Args:
        counts: how often each value was drawn; their sum is the number of draws.
        probabilities: of each value; their sum is 1.
        false_alarm: the probability with which right draws may be called wrong.
        names: of the values, for the message; without them their numbers from 0.
    """
    drawn, expected = np.asarray(counts, np.float64).ravel(), np.asarray(probabilities, np.float64).ravel()
    number = drawn.sum()
    if not number:
        return ""
    share = drawn / number
    with np.errstate(divide="ignore", invalid="ignore"):
        above = np.where(share > 0, share * np.log(share / expected), 0.0)
        below = np.where(share < 1, (1 - share) * np.log((1 - share) / (1 - expected)), 0.0)
        divergence = number * (above + below)
    allowed = np.log(2 * drawn.size / false_alarm)
    worst = int(divergence.argmax())
    if divergence[worst] <= allowed:
        return ""
    name = names[worst] if len(names) else worst
    return (
        f"{name} was drawn {int(drawn[worst]):,} times of {int(number):,}, which is {share[worst]:.2%}: "
        f"{expected[worst]:.2%} are expected, and chance does not explain the difference"
    )
