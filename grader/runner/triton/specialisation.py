"""A kernel's specialisation, what Triton compiles it for, as JSON can hold it.

kernel      its name in the submission's file
signature   [name, type] of each parameter, as Triton says it
constants   [path, value] of each that the code holds
attributes  [path, attributes] of each of which something is known, such as its divisibility
options     what was said of warps, stages and registers
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Described = dict[str, Any]

OPTIONS = frozenset({"num_warps", "num_stages", "maxnreg", "enable_fp_fusion"})
"""What a launch may say beside its arguments. Other options lead to files, or to what an sm_80 has not."""


def encoded(source: Any, options: Mapping[str, Any], defaults: Mapping[str, Any]) -> Described:  # noqa: ANN401
    """The specialisation of Triton's ``ASTSource``.

    Args:
        source: the kernel with what it is compiled for.
        options: that it is compiled with, all of them.
        defaults: the options where a launch says nothing.

    Raises:
        TypeError: it holds what cannot be built; the text says what.
    """
    chosen = {name: value for name, value in options.items() if value != defaults.get(name)}
    if unknown := sorted(chosen.keys() - OPTIONS):
        raise TypeError(
            f"{source.name} is launched with {', '.join(unknown)}: only {', '.join(sorted(OPTIONS))}"
        )
    return {
        "kernel": source.fn.fn.__name__,
        "signature": list(source.signature.items()),
        "constants": [(path, _encoded(value)) for path, value in source.constants.items()],
        "attributes": list(source.attrs.items()),
        "options": chosen,
    }


def decoded(
    described: Described, function: Callable[[str], Any], dtype: Callable[[str], Any]
) -> tuple[dict[str, Any], dict[Any, Any], dict[Any, Any], dict[str, Any]]:
    """Signature, constants, attributes and options of a specialisation, as Triton takes them.

    Args:
        described: as ``encoded`` gives it.
        function: finds a function of the file by its name.
        dtype: finds a type of Triton by its name.
    """

    def value(content: Described) -> Any:  # noqa: ANN401
        ((kind, held),) = content.items()
        match kind:
            case "float":
                return float.fromhex(held)
            case "dtype":
                return dtype(held)
            case "function":
                return function(held)
            case "tuple":
                return tuple(map(value, held))
        return held

    return (
        {name: _tuples(kind) for name, kind in described["signature"]},
        {_tuples(path): value(content) for path, content in described["constants"]},
        {_tuples(path): attributes for path, attributes in described["attributes"]},
        {name: described["options"][name] for name in OPTIONS & described["options"].keys()},
    )


def _encoded(value: Any) -> Described:  # noqa: ANN401
    match type(value).__name__:
        case "constexpr":
            return _encoded(value.value)
        case "NoneType" | "bool" | "int" | "str":
            return {"value": value}
        case "float":
            return {"float": value.hex()}
        case "dtype":
            return {"dtype": value.name}
        case "JITFunction":
            return {"function": value.fn.__name__}
        case "tuple" | "list":
            return {"tuple": list(map(_encoded, value))}
    raise TypeError(f"a {type(value).__name__} cannot be a constant of a kernel here")


def _tuples(value: Any) -> Any:  # noqa: ANN401
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
