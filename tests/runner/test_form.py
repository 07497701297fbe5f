"""How functions in Python are called and what they may return, with a device that only counts."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch")

from grader.runner.raised import RefusedError  # noqa: E402 - behind the question whether PyTorch is here
from grader.runner.triton.arrays import Arrays, DeviceTensor  # noqa: E402
from grader.runner.triton.form import Form, NotReturnedError  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable


class HostAsDevice:
    """A device whose memory is that of this process."""

    stream = 0

    def __init__(self) -> None:
        self._blocks: dict[int, Any] = {}

    def allocate_on(self, _stream: int, nbytes: int) -> int:
        block = ctypes.create_string_buffer(max(1, nbytes))
        self._blocks[ctypes.addressof(block)] = block
        return ctypes.addressof(block)

    def release_on(self, _stream: int, address: int) -> None:
        del self._blocks[address]

    def copy_on(self, _stream: int, to: int, source: int, nbytes: int) -> None:
        ctypes.memmove(to, source, nbytes)

    def copy_in(self, to: int, source: int, nbytes: int) -> None:
        ctypes.memmove(to, source, nbytes)

    def copy_out(self, to: int, source: int, nbytes: int) -> None:
        ctypes.memmove(to, source, nbytes)

    def fill(self, address: int, nbytes: int, _stream: int) -> None:
        ctypes.memset(address, 0, nbytes)

    def synchronize(self) -> None:
        pass


def on_device(arrays: Arrays, *numbers: float) -> DeviceTensor:
    with arrays:
        tensor = torch.empty(len(numbers), device="cuda")
    assert isinstance(tensor, DeviceTensor)
    (ctypes.c_float * len(numbers)).from_address(tensor.address)[:] = numbers
    return tensor


def held(tensor: DeviceTensor) -> list[float]:
    return list((ctypes.c_float * tensor.numel()).from_address(tensor.address))


@pytest.fixture(params=["views"])
def arrays(request: pytest.FixtureRequest) -> Arrays:
    return Arrays(HostAsDevice(), request.param)  # type: ignore[arg-type]


every_operator = pytest.mark.parametrize("arrays", ["all"], indirect=True)
no_operator = pytest.mark.parametrize("arrays", ["none"], indirect=True)


@pytest.mark.parametrize(
    ("form", "passed"),
    [
        (Form((), (), (), False, "views"), (1, 2, 3)),
        (Form(("a", "b", "c"), (), ("c",), True, "views"), ((1, 2, 3),)),
        (Form(("a", "b", "c"), ("c",), ("c",), True, "views"), ((1, 2),)),
        (Form(("a", "b", "c"), ("c",), ("c",), False, "views"), (1, 2)),
    ],
)
def test_a_function_gets_what_it_does_not_make_one_by_one_or_as_a_tuple(
    form: Form, passed: tuple[Any, ...]
) -> None:
    assert form.call(lambda *arguments: arguments, (1, 2, 3)) == passed


class Scaled:
    """A class as an answer may be: what it is made with comes before what it is called with."""

    def __init__(self, scale: int) -> None:
        self.scale = scale

    def __call__(self, x: int, y: int) -> tuple[int, int, int]:
        return self.scale, x, y


def test_an_object_is_made_with_the_first_arguments_and_called_with_the_others() -> None:
    form = Form(("scale", "x", "y", "out"), ("out",), ("out",), False, "views", 1)
    assert form.call(Scaled, (1, 2, 3, 4)) == (1, 2, 3)


FILLED_AND_MADE = Form(("a", "b", "c"), ("c",), ("b", "c"), False, "views")
FILLED = Form(("a", "b"), (), ("b",), False, "views")


@pytest.mark.parametrize(
    ("form", "returned", "in_place_of"),
    [
        (FILLED_AND_MADE, ("B", "C"), [("b", "B", 2), ("c", "C", 3)]),
        (FILLED_AND_MADE, "C", [("c", "C", 3)]),
        (FILLED, None, []),
        (FILLED, "B", [("b", "B", 2)]),
        (FILLED, ["B"], [("b", "B", 2)]),
        (Form((), (), (), False, "views"), "anything", []),
    ],
)
def test_it_returns_all_outputs_or_those_that_it_makes_or_nothing(
    form: Form, returned: object, in_place_of: list[tuple[str, object, int]]
) -> None:
    assert list(form.returned(returned, (1, 2, 3)[: len(form.names)])) == in_place_of


def test_another_number_of_values_is_refused() -> None:
    with pytest.raises(NotReturnedError, match="returns 3 values, not 1: c"):
        list(FILLED_AND_MADE.returned((1, 2, 3), (1, 2, 3)))


def test_what_is_returned_is_copied_to_where_the_judge_looks(arrays: Arrays) -> None:
    returned, output = on_device(arrays, 1, 2, 3), on_device(arrays, 0, 0, 0)
    arrays.take("y", returned, output)
    assert held(output) == [1, 2, 3]


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (lambda _: None, r"nothing for y, which is a tensor \(2,\) of float32 on the device"),
        (lambda _: 3.0, "a float for y"),
        (lambda _: torch.zeros(2), r"a tensor \(2,\) of float32 of the host for y"),
        (lambda arrays: on_device(arrays, 1, 2, 3), r"a tensor \(3,\) of float32 on the device for y"),
        (lambda arrays: on_device(arrays, 1, 2).as_subclass(DeviceTensor).half, "a builtin"),
    ],
    ids=["nothing", "a number", "of the host", "another shape", "no tensor"],
)
def test_what_is_no_such_tensor_is_refused(
    arrays: Arrays, returned: Callable[[Arrays], object], said: str
) -> None:
    with pytest.raises(NotReturnedError, match=f"returns {said}"):
        arrays.take("y", returned(arrays), on_device(arrays, 0, 0))


def test_a_tensor_with_gaps_is_refused(arrays: Arrays) -> None:
    values = on_device(arrays, 1, 2, 3, 4)
    with arrays:
        every_other = values[::2]
    with pytest.raises(NotReturnedError, match=r"strides \(2,\) for y: it has to be contiguous"):
        arrays.take("y", every_other, on_device(arrays, 0, 0))


@no_operator
def test_without_operators_there_are_no_views_but_new_tensors(arrays: Arrays) -> None:
    values = on_device(arrays, 1, 2)
    with arrays:
        assert torch.zeros_like(values).shape == (2,)
        with pytest.raises(RefusedError, match="view is PyTorch's, and this problem allows none"):
            values.view(1, 2)
        with pytest.raises(RefusedError, match="mT is PyTorch's"):
            _ = torch.empty(1, 2, device="cuda").mT


def test_with_views_nothing_is_computed(arrays: Arrays) -> None:
    values = on_device(arrays, 1, 2)
    with arrays:
        assert values.view(1, 2).address == values.address  # type: ignore[attr-defined]
        with pytest.raises(RefusedError, match="exp is PyTorch's and would compute"):
            values.exp()


@every_operator
def test_all_operators_compute_on_what_the_device_holds(arrays: Arrays) -> None:
    values = on_device(arrays, 1, 5, 2)
    with arrays:
        total = values * 2 + torch.arange(3, device="cuda")
        largest = values.max(0).values
        values[1:] += 1
        part = values[1:]
        part.mul_(2)
        ordered = torch.sort(values)[0]
        number = values.sum().item()
        on_host = values.cpu()
    assert held(total) == [2, 11, 6]
    assert held(largest) == [5]
    assert held(values) == [1, 12, 6]
    assert part.address == values.address + 4  # type: ignore[attr-defined]
    assert held(ordered) == [1, 6, 12]
    assert (number, on_host.tolist()) == (19, [1, 12, 6])


@every_operator
def test_all_operators_move_tensors_to_the_device_and_leave_others_alone(arrays: Arrays) -> None:
    with arrays:
        moved = torch.tensor([1.0, 2.0]).cuda()
        made = torch.full((2,), 3.0, device="cuda")
        stays = torch.tensor([4.0]) + 1
        assert moved.to("cuda") is moved or held(moved.to("cuda")) == [1, 2]
    assert (held(moved), held(made)) == ([1, 2], [3, 3])
    assert not isinstance(stays, DeviceTensor)


@every_operator
def test_all_operators_write_to_an_output_that_is_named(arrays: Arrays) -> None:
    values, output = on_device(arrays, 1, 4), on_device(arrays, 0, 0)
    with arrays:
        assert torch.sqrt(values, out=output) is output
    assert held(output) == [1, 2]
