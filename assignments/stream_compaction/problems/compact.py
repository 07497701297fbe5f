"""The elements of an array that are not 0, in their order; about half of them are."""

from .operations import operation

PROBLEM = operation(
    "compact",
    lambda random, n: random.integers(-99, 100, n) * random.integers(0, 2, n),
    lambda array: array[array != 0],
)
