"""Wrong kernels in Triton: edits of ``reference_triton``, with the reason of each."""

from __future__ import annotations

from functools import partial

from grader.assignments.mutants import Mutant
from grader.problems.problem import MEMORY_GROUP

_mutant = partial(Mutant, language="triton")
_softmax, _softmax_bw = (
    partial(_mutant, problem=f"softmax_{way}", file="softmax_kernel.py") for way in ("forward", "backward")
)
_norm, _norm_bw = (
    partial(_mutant, problem=f"layernorm_{way}", file="layernorm_kernel.py")
    for way in ("forward", "backward")
)

MUTANTS = (
    _softmax(
        id="triton-maximum-missing",
        old="    weight = tl.exp(logit - most[:, None])",
        new="    weight = tl.exp(logit)",
        why="exp overflows where the largest logit is not subtracted",
        group="large offset",
    ),
    _softmax(
        id="triton-future-strict",
        old="(key[None, :] <= (row % queries)[:, None])",
        new="(key[None, :] < (row % queries)[:, None])",
        why="a query does not see its own key",
        group="future mask",
    ),
    _softmax(
        id="triton-future-by-row",
        old="(row % queries)[:, None]",
        new="row[:, None]",
        why="the queries of all heads are counted on, so that later heads see the future",
        group="future mask",
    ),
    _softmax(
        id="triton-mask-of-heads",
        old="(row // per_batch)[:, None] * keys",
        new="(row // queries)[:, None] * keys",
        why="each head reads a mask of its own behind those of the batch",
        group=MEMORY_GROUP,
    ),
    _softmax(
        id="triton-hidden-count",
        old='mask=visible, other=float("-inf"))',
        new="mask=visible, other=0.0)",
        why="what is hidden counts as a logit of zero",
        group="short rows",
    ),
    _softmax(
        id="triton-mask-subtracted",
        old="        logit += tl.load(mask",
        new="        logit -= tl.load(mask",
        why="the mask has the wrong sign",
        group="padding mask",
    ),
    _softmax(
        id="triton-store-whole-tile",
        old="weight / total[:, None], mask=inside)",
        new="weight / total[:, None], mask=(row < rows)[:, None])",
        why="columns behind the row are written as well, which belong to the next one",
        group="lengths around a bucket border",
    ),
    _softmax(
        id="triton-last-tile-missing",
        old="    forward[(triton.cdiv(rows, tall),)](",
        new="    forward[(max(1, rows // tall),)](",
        why="rows behind the last whole tile are left as they are",
        group="many rows",
    ),
    _softmax(
        id="triton-half-logits",
        old="    most = tl.max(logit, axis=1)",
        new="    logit = logit.to(tl.float16).to(tl.float32)\n    most = tl.max(logit, axis=1)",
        why="the logits are rounded to float16",
        group="long rows",
    ),
    _softmax_bw(
        id="triton-sum-missing",
        old="weight * (upstream - total[:, None])",
        new="weight * upstream",
        why="the sum of the row is not subtracted",
        group="short rows",
    ),
    _softmax_bw(
        id="triton-sum-of-gradients",
        old="tl.sum(upstream * weight, axis=1)",
        new="tl.sum(upstream, axis=1)",
        why="the sum is over the gradients, without the weights",
        group="short rows",
    ),
    _softmax_bw(
        id="triton-factors-exchanged",
        old="weight * (upstream - total[:, None])",
        new="upstream * (weight - total[:, None])",
        why="weight and gradient are exchanged",
        group="long rows",
    ),
    _softmax_bw(
        id="triton-gradient-of-next-rows",
        old="upstream = tl.load(grad + at, mask=inside, other=0.0)",
        new="upstream = tl.load(grad + at, mask=(row < rows)[:, None], other=0.0)",
        why="the last row is read beyond its end",
        group=MEMORY_GROUP,
    ),
    _softmax_bw(
        id="triton-last-tile-missing",
        old="    backward[(triton.cdiv(rows, tall),)](",
        new="    backward[(max(1, rows // tall),)](",
        why="rows behind the last whole tile are left as they are",
        group="many rows",
    ),
    _softmax_bw(
        id="triton-half-products",
        old="tl.sum(upstream * weight, axis=1)",
        new="tl.sum((upstream * weight).to(tl.float16).to(tl.float32), axis=1)",
        why="tiny products are zero in float16",
        group="tiny gradients",
    ),
    _norm(
        id="triton-padding-in-variance",
        old="difference = tl.where(inside, value - mean[:, None], 0.0)",
        new="difference = value - mean[:, None]",
        why="columns behind the row add the square of the mean to its variance",
        group="large offset",
    ),
    _norm(
        id="triton-mean-over-the-tile",
        old="    mean = tl.sum(value, axis=1) / hidden",
        new="    mean = tl.sum(value, axis=1) / wide",
        why="the mean is over the tile, not over the row",
        group="hidden sizes around a border",
    ),
    _norm(
        id="triton-unbiased",
        old="tl.sum(difference * difference, axis=1) / hidden",
        new="tl.sum(difference * difference, axis=1) / (hidden - 1)",
        why="the variance is divided by one less",
        group="small hidden sizes",
    ),
    _norm(
        id="triton-epsilon-missing",
        old="difference * tl.rsqrt(variance + EPSILON)[:, None]",
        new="difference * tl.rsqrt(variance)[:, None]",
        why="rows of equal numbers are divided by zero",
        group="constant rows",
    ),
    _norm(
        id="triton-bias-missing",
        old="normal * factor + shift, mask=inside",
        new="normal * factor, mask=inside",
        why="the bias is not added",
        group="small hidden sizes",
    ),
    _norm(
        id="triton-deviation-in-vars",
        old="tl.store(variances + row, variance, ",
        new="tl.store(variances + row, tl.sqrt(variance), ",
        why="vars gets the root of the variance",
        group="large hidden sizes",
    ),
    _norm(
        id="triton-means-unmasked",
        old="tl.store(means + row, mean, mask=row < rows)",
        new="tl.store(means + row, mean)",
        why="the last program writes behind the end of means",
        group=MEMORY_GROUP,
    ),
    _norm_bw(
        id="triton-mean-missing",
        old="both = tl.sum(gradient, axis=1)[:, None] + normal",
        new="both = normal",
        why="the mean of the gradient is not subtracted",
        group="small hidden sizes",
    ),
    _norm_bw(
        id="triton-mean-over-the-tile",
        old="root * (gradient - both / hidden)",
        new="root * (gradient - both / wide)",
        why="the means are over the tile, not over the row",
        group="hidden sizes around a border",
    ),
    _norm_bw(
        id="triton-last-rows-only",
        old="of_gamma += tl.sum(upstream * normal, axis=0)",
        new="of_gamma = tl.sum(upstream * normal, axis=0)",
        why="each program keeps only the last of its tiles",
        group="many rows",
    ),
    _norm_bw(
        id="triton-gamma-in-betta",
        old="of_betta += tl.sum(upstream, axis=0)",
        new="of_betta += tl.sum(gradient, axis=0)",
        why="the gradient of the bias is multiplied by gamma",
        group="small hidden sizes",
    ),
    _norm_bw(
        id="triton-programs-short",
        old="inside = (part < programs)[:, None]",
        new="inside = (part < programs - 1)[:, None]",
        why="the last program is left out",
        group="many rows",
    ),
    _norm_bw(
        id="triton-unwritten-parts",
        old="tl.store(place, of_gamma, mask=column < hidden)",
        new="tl.store(place, of_gamma, mask=column < hidden - 1)",
        why="the last column of the parts is read and was never written",
        group=MEMORY_GROUP,
    ),
    _norm_bw(
        id="triton-rows-twice",
        old="rows, tl.num_programs(0) * tall):",
        new="rows, tl.num_programs(0) * ((tall + 1) // 2)):",
        why="tiles overlap by half, so most rows count twice",
        group="many rows",
    ),
    _norm_bw(
        id="triton-mean-of-inp-missing",
        old="other=0.0) - mean, 0.0) * root",
        new="other=0.0), 0.0) * root",
        why="inp is scaled without its mean being subtracted",
        group="large offset",
    ),
)
