"""Some steps of Adam, each with gradients of its own; the moments stay between the steps."""

from grader.problems.contents import Number, positive, real
from grader.problems.formula import Range, problem

NUMBERS = {"rate": Number(0.01, 0.001, 0.1), "keep": 0.9, "keep_squares": 0.999}


def trained(weights, moment, square, gradients, rate, keep, keep_squares, steps):
    for step in range(1, steps + 1):
        gradient = gradients[step - 1]
        moment = keep * moment + (1 - keep) * gradient
        square = keep_squares * square + (1 - keep_squares) * gradient**2
        corrected = moment / (1 - keep**step), square / (1 - keep_squares**step)
        weights = weights - rate * corrected[0] / (corrected[1].sqrt() + 1e-8)
    return weights, moment, square


PROBLEM = problem(
    id="adam",
    file="adam.cu",
    launcher="adam(float* weights, float* moment, float* square, const float* gradients, float rate, "
    "float keep, float keep_squares, int step, int n, cudaStream_t stream)",
    calls=lambda steps: [("adam", {"step": step, "gradients": step - 1}) for step in range(1, steps + 1)],
    formula=trained,
    inputs=lambda steps, n: dict(
        weights=real(n), moment=real(n), square=positive(n), gradients=real(steps, n), **NUMBERS
    ),
    sizes={"steps": Range(1, 8), "n": Range(1, 1 << 20)},
)
