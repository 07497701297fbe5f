"""Wrong programs: each is the reference with one edit."""

from __future__ import annotations

from functools import partial

from grader.assignments.mutants import Mutant
from grader.problems.problem import MEMORY_GROUP

blur = partial(Mutant, problem="blur", file="blur.cu")
sobel = partial(Mutant, problem="sobel", file="sobel.cu")
equalize = partial(Mutant, problem="equalize", file="equalize.cu")

MUTANTS = (
    blur(
        id="blur-no-right-border",
        old="min(max(x + dx, 0), width - 1)",
        new="max(x + dx, 0)",
        why="beyond the right border it reads the next row, and beyond the last one what is no pixel",
        group=MEMORY_GROUP,
        theme="borders",
    ),
    blur(
        id="blur-border-of-the-other-side",
        old="min(max(y + dy, 0), height - 1)",
        new="(y + dy + 64 * height) % height",
        why="rows wrap around instead of being repeated",
        group="odd sizes",
        theme="borders",
    ),
    blur(
        id="blur-rounds-down",
        old="(sum[channel] + count / 2) / count",
        new="sum[channel] / count",
        why="the mean is rounded down",
        group="large images",
        theme="arithmetic",
    ),
    blur(
        id="blur-window-too-small",
        old="dx <= radius",
        new="dx < radius",
        why="the last column of the window is missing",
        group="large images",
        theme="bounds",
    ),
    blur(
        id="blur-grid-rounds-down",
        old="grid((image.width + 15) / 16, ",
        new="grid(max(image.width / 16, 1), ",
        why="the columns behind the last whole block are never written",
        group="odd sizes",
        theme="launch",
    ),
    blur(
        id="blur-no-test-of-x",
        old="if (x >= width || y >= height) return;",
        new="if (y >= height) return;",
        why="threads behind the end of a row write into the next one",
        group=MEMORY_GROUP,
        theme="bounds",
    ),
    blur(
        id="blur-one-channel",
        old="for (int channel = 0; channel < 3; ++channel) sum[channel] += pixel[channel];",
        new="for (int channel = 0; channel < 3; ++channel) sum[channel] += pixel[0];",
        why="all channels become that of red",
        group="large images",
        theme="indices",
    ),
    sobel(
        id="sobel-no-barrier",
        old="  __syncthreads();\n",
        new="",
        why="threads read the tile before the others have filled it",
        group=MEMORY_GROUP,
        theme="barriers",
    ),
    sobel(
        id="sobel-wraps-above-255",
        old="min(abs(gx) + abs(gy), 255)",
        new="abs(gx) + abs(gy)",
        why="more than 255 loses its upper bits",
        group="large images",
        theme="arithmetic",
    ),
    sobel(
        id="sobel-squares",
        old="abs(gx) + abs(gy)",
        new="int(sqrtf(gx * gx + gy * gy))",
        why="it is the root of the squares, which the handout does not ask for",
        group="large images",
        theme="arithmetic",
    ),
    sobel(
        id="sobel-weight",
        old="2 * tile[i][j + 1]",
        new="tile[i][j + 1]",
        why="the weight of the neighbour on the right is 1",
        group="large images",
        theme="arithmetic",
    ),
    sobel(
        id="sobel-tile-without-border",
        old="place < (TILE + 2) * (TILE + 2); place += TILE * TILE",
        new="place < TILE * TILE; place += TILE * TILE",
        why="the last places of the tile are never filled",
        group="large images",
        theme="bounds",
    ),
    sobel(
        id="sobel-swapped-sizes",
        old="sobel<<<grid, block>>>(in, out, image.width, image.height);",
        new="sobel<<<grid, block>>>(in, out, image.height, image.width);",
        why="width and height are swapped",
        group="odd sizes",
        theme="indices",
    ),
    equalize(
        id="equalize-not-cleared",
        old="  CHECK(cudaMemset(histogram, 0, VALUES * sizeof(int)));\n",
        new="",
        why="the histogram begins with whatever memory holds",
        group=MEMORY_GROUP,
        theme="initialisation",
    ),
    equalize(
        id="equalize-no-atomic",
        old="atomicAdd(&mine[in[i]], 1);",
        new="mine[in[i]] += 1;",
        why="threads overwrite each other's counts",
        group=MEMORY_GROUP,
        theme="races",
    ),
    equalize(
        id="equalize-one-barrier-in-the-scan",
        old="(value >= step ? below[value - step] : 0);\n    __syncthreads();\n",
        new="(value >= step ? below[value - step] : 0);\n",
        why="a number of the scan is overwritten before its neighbour has read it",
        group=MEMORY_GROUP,
        theme="barriers",
    ),
    equalize(
        id="equalize-half-a-scan",
        old="step < VALUES; step *= 2",
        new="step < VALUES / 2; step *= 2",
        why="the last step of the scan is missing",
        group="large images",
        theme="bounds",
    ),
    equalize(
        id="equalize-keeps-the-least",
        old="((below[value] - least) * 255 + rest / 2) / rest",
        new="(below[value] * 255 + size / 2) / size",
        why="the smallest value does not become black",
        group="small images",
        theme="arithmetic",
    ),
    equalize(
        id="equalize-divides-by-zero",
        old="rest ? ((below",
        new="true ? ((below",
        why="an image of one value divides by zero",
        group="one value",
        theme="arithmetic",
    ),
    equalize(
        id="equalize-stride",
        old="i += gridDim.x * VALUES",
        new="i += VALUES",
        why="pixels are counted by more than one block",
        group="large images",
        theme="indices",
    ),
)
