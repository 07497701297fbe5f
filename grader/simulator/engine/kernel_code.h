// A kernel made ready to run: its code and that of all functions it may call, as one array of instructions.
#pragma once

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/machine.h"
#include "engine/ptx/module.h"

namespace sim {

// Where %tid and its like lie: entries of 128 bytes in the warp's and the launch's banks.
enum class WarpSpecial : std::uint32_t { tid_x, tid_y, tid_z, warp, ctaid_x, ctaid_y, ctaid_z, multiprocessor, count };
enum class LaunchSpecial : std::uint32_t {
  lane,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  ntid_x,
  ntid_y,
  ntid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  warps,
  multiprocessors,
  zero,
  dynamic_shared,
  total_shared,
  reserved_shared,
  workspace_high,
  workspace_low,
  count
};
inline constexpr std::uint32_t special_bytes = 128;
inline constexpr std::uint32_t frame_header = 128;  // its first word: where this call's local variables begin
inline constexpr std::uint32_t carry_offset = 64;   // the carry flag
inline constexpr std::int64_t clock_lag = 977;  // of a multiprocessor's clock to the next one's

inline constexpr std::uint32_t local_gap = 64;          // between the local variables of two calls
inline constexpr std::uint32_t call_stack = 64 * 1024;  // per thread, for recursion

// Values that a call hands over: lane after lane, `size` bytes each, at `offset` of a frame.
struct Area {
  std::uint32_t offset = 0, size = 0;
};

struct FunctionCode {
  std::uint32_t number = 0;  // in the module
  std::string_view name;
  std::uint32_t entry = 0, frame_bytes = 0, local_bytes = 0;
  std::vector<Area> parameters, results;
  std::vector<Slot> registers{};
  std::vector<Slot> shuffled{};  // registers that shuffles read, also of lanes that never wrote them
};

enum class Builtin : std::uint8_t { none, vprintf, assertfail, malloc, free };

struct CallSite {
  std::int32_t function =
      -1;  // index into KernelCode::functions; -1: builtin, or through a register (Instruction::o[0])
  Builtin builtin = Builtin::none;
  std::vector<Area> arguments, results;
};

// A parameter as ld.param wants it: broadcast into the launch's bank.
struct ParameterSlot {
  std::uint32_t offset, bytes, slot_offset;
};

// An instruction that compares integers.
struct ComparisonCode {
  std::uint32_t instruction = 0;
  Handler compare = nullptr, observe = nullptr;  // the latter does as well, and keeps what it has met
  Slot a = 0, b = 0;
  bool is_signed = false, equality = false;
};

struct KernelCode {
  std::string_view kernel;
  std::vector<Instruction> code;
  std::vector<FunctionCode> functions;  // the kernel first
  std::vector<CallSite> calls;
  std::vector<std::vector<std::uint32_t>> branch_tables;
  std::vector<Refusal> unknown;  // what is said where a warp reaches such an instruction
  std::vector<ComparisonCode> comparisons;
  std::vector<std::uint32_t> lists;  // operands of instructions that have many (Warp::lists)
  std::vector<std::uint32_t> statements;  // per instruction: the one of its function that it belongs to
  std::vector<std::byte> constants;
  std::vector<ptx::Place> places;  // per instruction
  std::vector<ParameterSlot> parameter_slots;
  std::vector<Area> parameters;  // where each lies among the bytes of all
  std::uint32_t launch_bank_bytes = 0, static_shared = 0, shared_granule = 4;
  std::uint32_t global_granule = 4;     // bytes: what it stores in global memory are multiples of these
  std::uint32_t smallest_load = 4;      // bytes, of those from global memory that are no multiples of 4
  std::uint32_t reserved_shared = 0;  // behind the block's own, where groups of several warps meet
  std::uint32_t local_bytes = 0;  // per thread, all calls together
  std::unordered_map<std::uint32_t, std::uint32_t> function_by_number;
  bool waits_for_launch_ahead = false;  // somewhere
  bool of_triton = false;  // its source is Python
  // Whether it has strong stores and atomics; of these, what hands something over in global memory (strong stores,
  // exchanges, and atomics that read alone); fences, acquiring or releasing operations; and those that reach beyond the
  // block.
  bool strong_stores = false, publishes = false, fences = false, fences_between_blocks = false;
  bool looks_first = false;  // plainly at what it then changes by an atomic that may fail or do nothing
  bool draws = false;  // what its blocks do may depend on what an atomic in global memory returns, as with a queue
  bool draws_in_block = false;  // the same of its threads, and of atomics in shared memory
  // Threads may order what they do by flags, and blocks.
  bool hands_over() const { return strong_stores && (fences || publishes); }
  bool hands_over_between_blocks() const { return strong_stores && (fences_between_blocks || publishes); }
};

// What decoding needs to know of the module's memory.
struct Layout {
  std::unordered_map<std::string_view, Address> globals;  // .global and .const variables
};

// Throws Refusal for a kernel that cannot begin; an unknown instruction costs nothing until a warp reaches it.
// `checks_overflow`: with the instructions of checks/overflow.h.
std::unique_ptr<KernelCode> decode(const ptx::Module&, std::uint32_t kernel, const Layout&, bool checks_overflow);

// Bytes of a kernel's parameters, aligned as the ABI does.
std::vector<Area> parameter_layout(const ptx::Function&, std::uint32_t& total);

// Adds to `computed` what instructions `begin` to `end` compute from what is in it, as far as they only compute.
template <class Slots>
void add_computed(const KernelCode& program, std::size_t begin, std::size_t end, Slots& computed) {
  for (auto n = begin; n < end; ++n) {
    const auto& i = program.code[n];
    if (i.flow == Flow::plain && std::any_of(i.o + 1, std::end(i.o), [&](Slot s) { return s && computed.contains(s); }))
      computed.insert(i.o[0]);
  }
}

}  // namespace sim
