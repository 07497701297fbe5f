// What an instruction handler sees: the decoded instruction and the warp it runs on.
//
// An operand is a slot: a bank in the two top bits and a byte offset, where 32 lanes of the operand's width lie side by
// side (a predicate is one 32-bit mask). All instructions are executed for 32 lanes at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device.h"
#include "engine/ptx/space.h"

namespace sim {

inline constexpr unsigned lane_count = 32;

using Mask = std::uint32_t;
inline constexpr Mask all_lanes = ~Mask{0};

using Slot = std::uint32_t;
enum Bank : std::uint32_t {
  frame_bank = 0,  // registers of the function that runs
  constant_bank = 1,  // immediates, broadcast
  warp_bank = 2,  // special registers that differ between warps
  launch_bank = 3,  // special registers and parameters that are the same in the whole grid
};
inline constexpr std::uint32_t bank_shift = 30;

// Generic addresses outside the arenas.
inline constexpr Address function_window = 0x0f00'0000'0000;
inline constexpr Address shared_window = 0x1000'0000'0000;
inline constexpr Address local_window = 0x1100'0000'0000;
inline constexpr Address parameter_window = 0x1200'0000'0000;
inline constexpr Address window_size = 0x0000'4000'0000;
inline constexpr std::uint32_t shared_granularity = 128;  // bytes that a GPU rounds a block's shared memory up to
inline constexpr std::uint32_t local_margin = 576;  // bytes that a GPU maps behind the local memory of a thread

struct Warp;
struct Instruction;
using Handler = void (*)(Warp&, const Instruction&, Mask);

// How the run loop goes on after an instruction.
enum class Flow : std::uint8_t {
  plain,  // next instruction
  memory,  // the same, but lanes may have faulted
  branch,  // to `target` for the lanes of the guard
  table,  // brx: target found through the handler's table
  call,
  ret,
  exit,
  barrier,  // bar.sync, bar.red
  arrive,  // bar.arrive: does not wait
  collective,  // waits for the lanes of a member mask, then runs the handler
  trap,
  yield,  // nanosleep, and loads in what may be a spin loop
  active,  // activemask: only lanes that have stayed together need to be there
  clock,
  unknown,  // ends the launch; `target` is its number in KernelCode::unknown
};

struct alignas(64) Instruction {
  Handler run = nullptr;
  Slot o[6]{};  // operands in PTX order, vectors spread out
  Slot guard = 0;  // 0: none
  bool guard_negated = false;
  Flow flow = Flow::plain;
  ptx::Space space = ptx::Space::generic;
  std::uint8_t size = 0;  // bytes that a lane accesses
  std::uint32_t target = 0;  // of branch and call; number of another table for others
  std::uint32_t place = 0;  // of the module's; of a comparison that is observed, which of Warp::compared
  std::int64_t offset = 0;  // of an address; of others an immediate
  std::uint32_t site = 0;  // its own index
  bool narrow_address = false;
  bool hidden : 1 = false;  // made by the decoder: not counted
  bool read_only : 1 = false;  // ld.global.nc, through a cache that does not see what the launch writes
  bool is_volatile = false;  // volatile, relaxed, acquire, release or an atomic
  bool only_volatile : 1 = false;  // of these, a load or store that is no stronger than that
  bool revises : 1 = false;  // of these, a store of what is computed from a load of the same place
  bool may_spin : 1 = false;  // of these, what a loop that waits for another thread would use
  bool waits : 1 = false;  // of these, what asks an mbarrier, and would rather sleep
  bool publishes : 1 = false;  // a store to global memory that other threads may wait for
  // Behind which others may run in the reversed order: this, an atomic that may change global memory, and a strong look
  // at it.
  bool lets_others_run : 1 = false;
  bool polls : 1 = false;  // an atomic that changes nothing, as atomicAdd(p, 0): a loop that waits may read with it
  // Of memory accesses and fences, by "Memory Consistency Model" of the PTX ISA:
  bool strong : 1 = false;  // relaxed, acquire, release, volatile or atomic
  bool acquires : 1 = false, releases : 1 = false;
  bool sequential : 1 = false;  // fence.sc, and membar, which is the same
  bool of_block : 1 = false;  // .cta, and .cluster, as each block is a cluster of its own
  bool reduces : 1 = false;  // red: nobody learns what it has read
  bool overwrites : 1 = false;  // of these, an exchange, which decides nothing by what it has read
  bool draws : 1 = false, draws_in_block : 1 = false;  // an atomic whose result tells its thread what others have done
  bool packed : 1 = false;  // an atomic on two halves, each by itself
  // Of two relaxed atomics behind each other: nothing orders them, so the second one may take place first.
  bool may_be_passed : 1 = false, passes : 1 = false;
};

struct Region {
  Address base = 1, end = 0;
};

// A comparison that is observed, and the extremes of what it has met: of unsigned numbers the bits.
struct Compared {
  Handler run = nullptr;  // which does the work
  Slot a = 0, b = 0;
  bool below = false, equal = false, above = false, met = false;
  std::int64_t a_low = 0, a_high = 0, b_low = 0, b_high = 0;
};

struct Worker;
struct Block;

struct Warp {
  std::byte* bank[4] = {};
  Region* regions = nullptr;  // per site: the allocation touched there last
  Compared* compared = nullptr;
  std::byte* shared = nullptr;
  std::byte* local = nullptr;
  const std::byte* parameters = nullptr;
  const std::uint32_t* lists = nullptr;  // operands of instructions that have many
  std::uint32_t shared_size = 0, local_stride = 0, local_top = 0, parameter_size = 0;
  bool watched = false;  // a checker or counter looks at memory accesses
  bool wrote_margin = false;  // of its local memory
  bool descending = false;  // its stores begin with the last lane
  Mask fallen = 0;  // lanes that a fault has just ended
  Mask live = 0, started = 0;  // lanes that have not exited; lanes that the launch has
  std::uint32_t number = 0;  // in the block
  Worker* worker = nullptr;
  Block* block = nullptr;
};

template <class T>
inline T* lanes_at(const Warp& w, Slot s) {
  return reinterpret_cast<T*>(w.bank[s >> bank_shift] + (s & ((1u << bank_shift) - 1)));
}

// One warp's access to memory: the addresses of the active lanes within `space`.
struct Access {
  enum class Shape : std::uint8_t { contiguous, uniform, scattered } shape = Shape::scattered;
  ptx::Space space = ptx::Space::global;
  bool write = false, atomic = false;
  std::uint32_t size = 0;  // bytes per lane
  Mask mask = 0;
  Mask outside = 0;  // of these, lanes outside of every allocation, which go on as on a GPU: no checker looks at them
  Address low = 0, high = 0;  // over all active lanes, high exclusive
  alignas(64) Address address[lane_count];
  const std::byte* value[4] = {};  // of a store: the lanes of each element
  std::uint32_t element = 0;  // bytes of an element, not of atomics
};

// Out of the ordinary: bounds or alignment do not hold for the region at hand. Looks at each lane, reports what is
// wrong, ends the lanes that fault, and leaves the others in the mask. False if none is left.
bool admit(Warp&, const Instruction&, Access&);
// Lets the checkers and counters see an access, before it takes place.
void watch(Warp&, const Instruction&, const Access&);
// Before a load from global memory that is strong or looks plainly at what an atomic then changes, in the reversed
// order: lanes that read the value before the last one, which is put into `values`, each lane's where it would be in an
// array. The memory model of the PTX ISA lets a read bring any value that nothing orders before another one that this
// thread knows of ("Causality Order", "Coherence"): for each write and block a number that looks random says how many
// reads come too early. The same for an atomic that `updates` what it reads: it may come before a store. What it
// writes is then lost, and has to be handed to put_before.
Mask lagging(const Warp&, const Access&, std::byte* values, bool updates = false);
// What an atomic has left at a place, where a store has come since: the value before the last one.
void put_before(const Warp&, Address, std::uint64_t value);
// Lanes of a generic access that do not point into the space; -1: mixed.
ptx::Space space_of(Address);

}  // namespace sim
