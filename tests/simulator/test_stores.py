"""What has stored last into an element: the kernel, the line and the thread, a copy, or nothing."""

import struct

import pytest
from built_programs import LIBRARY, Compile, marked_lines

from grader.records.stores import By, LastStore
from grader.simulator.driver import Element, Options, Order, Simulator

FIRST, SECOND, READS = "_Z5firstPi", "_Z6secondPi", "_Z9read_onlyPKiPi"
SOURCE = """
struct alignas(16) Four { int of[4]; };
__global__ void first(int* to) { to[threadIdx.x] = 1; }  // first
__global__ void second(int* to) {
  if (threadIdx.x == 2) to[5] = 2;  // scattered
  if (threadIdx.x >= 8 && blockIdx.x == 3) reinterpret_cast<Four*>(to)[threadIdx.x] = {};  // vector
  if (threadIdx.x == 1) atomicAdd(to + 6, 1);  // atomic
  if (threadIdx.x == 1 && atomicAdd(to + 7, 0) == 77) to[4] = 1;
  to[8] = 9;  // together
}
__global__ void read_only(const int* from, int* to) { if (from[3] == 77) to[4] = 1; }
"""


@pytest.mark.parametrize("order", [Order.PROGRAM, Order.REVERSED])
def test_the_last_store_of_all_launches_and_copies_counts(nvcc: Compile, order: Order) -> None:
    library = nvcc(SOURCE, "stores.so", *LIBRARY)
    numbers = (0, 1, 2, 5, 6, 7, 8, 33, 60)
    with Simulator(Options(order=order)) as simulator:
        simulator.load(library)
        base = simulator.allocate(256)
        simulator.fill(base, 0, 256)
        simulator.watch([Element(base + 4 * number, 4) for number in numbers])
        to = struct.pack("<Q", base)
        for kernel, blocks, threads, arguments in (
            (FIRST, 1, 8, (to,)),
            (SECOND, 4, 12, (to,)),
            (READS, 1, 32, (to, to)),
        ):
            assert simulator.launch(kernel, (blocks, 1, 1), (threads, 1, 1), arguments)
        simulator.fill(base + 4, 0, 8)
        stores = dict(zip(numbers, simulator.last_stores(), strict=True))
        simulator.watch(())
        assert simulator.last_stores() == ()
    lines = {mark: line for mark, (line,) in marked_lines(SOURCE).items()}

    def told(store: LastStore) -> tuple[str, int, object, object]:
        return store.kernel, store.place.line, store.place.block, store.place.thread

    assert told(stores[0]) == (FIRST, lines["first"], (0, 0, 0), (0, 0, 0))
    assert stores[1] == stores[2] == LastStore(By.COPY)
    last_block = 3 if order is Order.PROGRAM else 0
    assert told(stores[5]) == (SECOND, lines["scattered"], (last_block, 0, 0), (2, 0, 0))
    assert told(stores[6]) == (SECOND, lines["atomic"], (last_block, 0, 0), (1, 0, 0))
    assert stores[6].place.does == "updates"
    assert told(stores[7]) == (FIRST, lines["first"], (0, 0, 0), (7, 0, 0))
    last_lane = 11 if order is Order.PROGRAM else 0
    assert told(stores[8]) == (SECOND, lines["together"], (last_block, 0, 0), (last_lane, 0, 0))
    assert told(stores[33]) == (SECOND, lines["vector"], (3, 0, 0), (8, 0, 0))
    assert stores[33].place.bytes == 16
    assert stores[60] == LastStore(By.NOTHING)
