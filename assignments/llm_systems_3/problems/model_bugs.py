"""What typical mistakes around the launchers compute: the names of a wrong gradient for ``transformer``.

Each bug gives the outputs of one function that it gets wrong, and nothing for the other functions.

Layer: imports torch and the decoder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from . import decoder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray
    from torch import Tensor

    from grader.problems.problem import Bug, Inputs

    Outputs = Mapping[str, Tensor]


def _tensors(data: Inputs) -> dict[str, Tensor]:
    return {
        name: torch.from_numpy(array.astype(np.float64))
        for name, array in data.arrays.items()
        if array is not None
    }


def _named(outputs: Outputs) -> dict[str, NDArray[np.float64]]:
    """Each gradient under both of its names."""
    results = {name: value.detach().numpy() for name, value in outputs.items()}
    return results | {f"{name}, backward again": value for name, value in results.items() if name != "output"}


def _of_softmax(wrong: Callable[[dict[str, Tensor], bool], Outputs]) -> Bug:
    def bug(data: Inputs) -> Mapping[str, NDArray[np.float64]]:
        if "mask_future" not in data.scalars:
            return {}
        return _named(wrong(_tensors(data), bool(data.scalars["mask_future"])))

    return bug


def _of_norm(wrong: Callable[[Tensor, Tensor, Tensor, Tensor], Outputs]) -> Bug:
    """A wrong backward, from inp, scale, bias and the gradient of the output."""

    def bug(data: Inputs) -> Mapping[str, NDArray[np.float64]]:
        if "scale" not in data.arrays:
            return {}
        arrays = _tensors(data)
        return _named(wrong(*(arrays[name] for name in ("inp", "scale", "bias", "upstream"))))

    return bug


def _masked_otherwise(arrays: dict[str, Tensor], mask: Tensor | None, *, future: bool) -> Outputs:
    inp = arrays["inp"].clone().requires_grad_()
    output = decoder.softmax(inp, mask, future=future, marks={})
    (gradient,) = torch.autograd.grad(output, inp, arrays["upstream"])
    return {"output": output, "gradient of inp": gradient}


def _saved_scores(arrays: dict[str, Tensor], _: bool) -> Outputs:
    scores, upstream = arrays["inp"], arrays["upstream"]
    return {"gradient of inp": scores * (upstream - (upstream * scores).sum(-1, keepdim=True))}


def _unscaled(arrays: dict[str, Tensor], _: bool) -> Outputs:
    return {"gradient of inp": arrays["upstream"]}


def _rows(tensor: Tensor) -> Tensor:
    return tensor.reshape(-1, tensor.shape[-1])


def _normalised(inp: Tensor, like: Tensor) -> Tensor:
    """``inp`` with the means and variances of the rows of ``like``."""
    variance = like.var(-1, correction=0, keepdim=True)
    return (inp - like.mean(-1, keepdim=True)) / torch.sqrt(variance + decoder.EPSILON)


def _swapped(inp: Tensor, _scale: Tensor, _bias: Tensor, upstream: Tensor) -> Outputs:
    of_scale = _rows(upstream * _normalised(inp, inp)).sum(0)
    return {"gradient of scale": _rows(upstream).sum(0), "gradient of bias": of_scale}


def _of_first_row(inp: Tensor, _scale: Tensor, _bias: Tensor, upstream: Tensor) -> Outputs:
    of_scale = _rows(upstream * _normalised(inp, inp))[0]
    return {"gradient of scale": of_scale, "gradient of bias": _rows(upstream)[0]}


def _saved_output(inp: Tensor, scale: Tensor, bias: Tensor, upstream: Tensor) -> Outputs:
    saved = _normalised(inp, inp) * scale + bias
    return {"gradient of scale": _rows(upstream * _normalised(saved, inp)).sum(0)}


BUGS: Mapping[str, Bug] = {
    "the padding mask does not reach the kernel": _of_softmax(
        lambda arrays, future: _masked_otherwise(arrays, None, future=future)
    ),
    "mask_future does not reach the kernel": _of_softmax(
        lambda arrays, _: _masked_otherwise(arrays, arrays.get("attn_mask"), future=False)
    ),
    "the backward reads the scores: save the weights that the forward returns": _of_softmax(_saved_scores),
    "the gradient comes back as it came: the kernel's result is not returned": _of_softmax(_unscaled),
    "the gradients of scale and bias are swapped": _of_norm(_swapped),
    "only the first row counts: the gradient is a sum over all rows": _of_norm(_of_first_row),
    "the backward reads the output: save the input of the forward": _of_norm(_saved_output),
}
