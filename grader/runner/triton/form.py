"""How a function in Python takes the arguments of a call, and gives its outputs back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class NotReturnedError(Exception):
    """A function does not return what it has to; the text, behind the function's name, is for its author."""


class WeightError(Exception):
    """An object has no weight of this name; the text, behind the file's name, is for its author."""


@dataclass(frozen=True)
class Form:
    """The fields of ``Form`` in ``grader/devices/device.py``, as the judge has sent them."""

    names: Sequence[str]
    made: Sequence[str]
    outputs: Sequence[str]
    packed: bool
    operators: str
    initial: int | None = None
    weights: Sequence[str] = ()

    def call(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:  # noqa: ANN401
        """What ``function`` returns, called with those of all ``arguments`` that it is given.

        Raises:
            WeightError: its object has no such weight.
        """
        named = zip(self.names, arguments, strict=True)
        passed = tuple(value for name, value in named if name not in self.made) if self.names else arguments
        if self.initial is not None:
            made, rest = function(*passed[: self.initial]), passed[self.initial :]
            for name, value in zip(self.weights, rest, strict=False):
                _set(made, name, value)
            return made(*rest[len(self.weights) :])
        return function(tuple(passed)) if self.packed else function(*passed)

    def returned(self, returned: Any, arguments: Sequence[Any]) -> Iterator[tuple[str, Any, Any]]:  # noqa: ANN401
        """Of each output that was returned: its name, what was returned, and the argument that it stands for.

        A function returns all outputs, those alone that it is not given, or nothing where it is given all.

        Raises:
            NotReturnedError: it returned another number of values.
        """
        if not self.outputs or (returned is None and not self.made):
            return
        by_name = dict(zip(self.names, arguments, strict=True))
        values = returned if isinstance(returned, tuple | list) else [returned]
        names = self.outputs if len(values) == len(self.outputs) else self.made or self.outputs
        if len(values) != len(names):
            raise NotReturnedError(f"returns {len(values)} values, not {len(names)}: {', '.join(names)}")
        for name, value in zip(names, values, strict=True):
            yield name, value, by_name[name]


def _set(made: Any, name: str, value: Any) -> None:  # noqa: ANN401 - an object of a file
    """Let a parameter or a buffer of a module of PyTorch be ``value``, where it is one of its shape."""
    *path, last = name.split(".")
    owner, kind = made, type(made).__name__
    for part in path:
        owner = getattr(owner, part, None)
    for values in (getattr(owner, "_parameters", {}), getattr(owner, "_buffers", {})):
        if values.get(last) is not None:
            if values[last].shape != value.shape:
                shapes = f"{list(values[last].shape)}, and it has {list(value.shape)} in Model"
                raise WeightError(f"the weight {name} of {kind} has the shape {shapes}")
            values[last] = value
            return
    raise WeightError(f"{kind} has no weight {name}, which Model has: name its weights as Model does")
