// The simulated device: all that the server knows of the engine.
//
// A device pointer is an address in one of two arenas at fixed places. In the device's own process the arenas are
// mapped there, so an address needs no translation; in the runner the device arena is not mapped at all, so host code
// that dereferences a device pointer traps as it does beside a GPU. The shared arena (managed and pinned memory) is one
// memfd mapped in both.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sim {

using Address = std::uint64_t;

inline constexpr Address device_arena = 0x2000'0000'0000;
inline constexpr Address shared_arena = 0x3000'0000'0000;

enum class Space : std::uint8_t { device, managed, pinned };

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
  bool operator==(const Dim3&) const = default;
};

// Codes of the CUDA runtime's cudaError_t.
enum class Fault : int {
  none = 0,
  invalid_value = 1,
  out_of_memory = 2,
  invalid_configuration = 9,
  illegal_address = 700,
  launch_timeout = 702,
  assertion = 710,
  illegal_instruction = 715,
  misaligned_address = 716,
  launch_failure = 719,
  cooperative_too_large = 720,
  unsupported = 801,
};

// Something that a program uses and that is lacking here.
struct Gap {
  enum class Kind : std::uint8_t {
    instruction,  // of PTX; `subject` is its text
    call,  // of the runtime; its name
    code,  // device code as a whole; why it cannot be run
  } kind = Kind::code;
  std::string subject;
  std::string feature{};  // what people call the family of an instruction; empty: nothing
  std::string function{}, file{};
  unsigned line = 0;
  bool operator==(const Gap&) const = default;
};

// The PTX holds something that the engine does not know. Names the instruction or directive and the source line.
struct Refusal : std::runtime_error {
  explicit Refusal(const std::string& why) : std::runtime_error(why), gap{Gap::Kind::code, why} {}
  Refusal(const std::string& why, Gap lack) : std::runtime_error(why), gap(std::move(lack)) {}
  Gap gap;
};

enum class Severity : std::uint8_t { error, warning };

struct Line {
  std::string file;
  unsigned line = 0;
  bool operator==(const Line&) const = default;
};

// Where an access or a barrier is, and who is there.
struct Place {
  std::string file{};
  unsigned line = 0;  // 0: not known
  std::vector<Line> calls{};  // that are inlined there, from the inside
  std::optional<Dim3> thread{}, block{};
  std::string does{};  // reads, writes or updates
  std::uint32_t bytes = 0;
  bool operator==(const Place&) const = default;
};

// What a checker has seen beside that, for a sentence: a number or a name.
struct Fact {
  std::string name;
  std::variant<std::int64_t, std::string> value;
  template <std::integral T> Fact(const char* n, T number) : name(n), value(static_cast<std::int64_t>(number)) {}
  Fact(const char* n, std::string text) : name(n), value(std::move(text)) {}
  bool operator==(const Fact& other) const {  // of a variant it might throw, as the compiler sees it
    const auto *text = std::get_if<std::string>(&value), *other_text = std::get_if<std::string>(&other.value);
    const auto *number = std::get_if<std::int64_t>(&value), *other_number = std::get_if<std::int64_t>(&other.value);
    return name == other.name &&
           (text && other_text ? *text == *other_text : number && other_number && *number == *other_number);
  }
};
using Facts = std::vector<Fact>;

// Some bytes of device memory.
struct Element {
  Address address = 0;
  std::uint64_t bytes = 0;
};

// What has stored last into an element.
struct LastStore {
  enum class By : std::uint8_t { nothing, copy, kernel } by = By::nothing;  // copy: or a fill
  std::string kernel{};
  Place place{};  // of a kernel's store, and its thread
};

// Kinds and their reasons stand in records/findings.py, with the words for people.
struct Finding {
  std::string kind{}, reason{}, kernel{}, file{};
  unsigned line = 0;
  std::vector<Place> places{};  // its own, and of two accesses that race the other one
  Facts facts{};
  Severity severity = Severity::error;
  bool operator==(const Finding&) const = default;
};

// Per source line: what the memory system would have to do.
struct LineCount {
  std::string kernel, file;
  unsigned line = 0;
  std::uint64_t instructions = 0, lanes = 0;  // warp instructions; active lanes summed
  std::uint64_t global_requests = 0, global_sectors = 0, minimal_sectors = 0, global_bytes = 0;
  std::uint64_t shared_requests = 0, shared_wavefronts = 0, minimal_wavefronts = 0;
  std::uint64_t barriers = 0;
  std::uint64_t undefined_lanes = 0;  // that a shuffle gave what no lane of its mask has
  std::uint64_t atomics = 0;  // of lanes
};

// The ways that an instruction with a guard has gone: a branch or anything else that a predicate may leave out.
struct Way {
  std::uint32_t number = 0;  // of the instruction in its kernel
  std::string file;
  unsigned line = 0;
  bool taken = false, passed = false;  // by some lane
};

// The numbers that a comparison of integers has met: a and b in `a < b` and its like, and in the smaller or larger of
// two. Of unsigned ones the bits.
struct Comparison {
  std::uint32_t number = 0;  // of the instruction in its kernel
  std::string file;
  unsigned line = 0;
  bool is_signed = false, equality = false;  // the latter: it tells equal from unequal alone
  bool below = false, equal = false, above = false;  // whether some lane's a was that to its b
  std::int64_t a_low = 0, a_high = 0, b_low = 0, b_high = 0;
};

// What the launches of a kernel have reached.
struct Coverage {
  std::string kernel;
  std::uint64_t fewest_blocks = 0, most_blocks = 0, most_across = 0;  // the last one: along y or z
  std::uint64_t resident = 0;  // at once, fewest of all launches, where blocks hand over to each other; otherwise 0
  std::uint64_t threads = 0, shared_bytes = 0;  // most of a block
  std::vector<Way> ways;
  std::vector<Comparison> comparisons;
};

enum class Order : std::uint8_t { program, reversed, shuffled };

struct Options {
  bool memcheck = true, initcheck = true, racecheck = true, synccheck = true, counters = true;
  bool overflow = false;  // whether 32-bit arithmetic that decides an address wraps
  bool coverage = false;  // which ways the code goes and which numbers it compares; not together with overflow
  // In warp instructions; 0 of the last two: none.
  std::uint64_t instruction_budget = 2'000'000'000;  // of a launch
  std::uint64_t total_budget = 0;  // of all launches since `configure`
  std::uint64_t progress_budget = 0;  // since a warp of the launch ended or passed a barrier of its block
  Order order = Order::program;
  std::uint64_t seed = 0;
  unsigned threads = 1;
};

struct Parameter {
  std::uint32_t offset, size;
};

struct KernelInfo {
  std::string name;
  std::vector<Parameter> parameters;
  std::uint32_t parameter_bytes = 0, static_shared = 0, local_bytes = 0, max_threads = 1024, registers = 0;
};

struct Symbol {
  Address address;
  std::size_t size;
};

struct Allocation {
  Address base;
  std::size_t size;
  Space space;
  bool live;
  bool ready = true;  // not before a cudaMallocAsync has been reached in its stream
  bool of_stream = false;  // made by one: a graph may make it again
  bool constant = false;  // the judge's: a function may only read it
  bool of_kernel = false;  // by malloc() there
};

// Bytes of an allocation that nothing has written: how many, and the address of the first.
struct Unwritten {
  Address first = 0;
  std::size_t bytes = 0;
};

class Kernel;
using ModuleId = std::uint32_t;

struct Launch {
  const Kernel* kernel = nullptr;
  Dim3 grid, block;
  std::uint32_t dynamic_shared = 0;
  std::uint32_t registers = 0;  // of a thread; 0: not known
  std::vector<std::byte> parameters;  // laid out as KernelInfo says
  std::uint64_t stream = 0;  // for messages and cross-stream races
  bool cooperative = false;
  bool early = false;  // it may begin before the launch ahead of it in its stream has ended
};

struct Ran {
  Fault fault = Fault::none;
  std::string message;  // kernel, file:line and what happened, for people; before the finding, if there is one
  std::optional<Finding> finding{};  // that tells what happened
  std::optional<Gap> gap{};  // the instruction that a warp has reached and that is not known; `fault` is `unsupported`
  std::string printed{};  // device printf and assert text
  std::uint64_t nanoseconds = 0;  // of wall time, for benchmarks; no program gets to know it
};

// What a launch did to global memory: pieces in the order of their addresses, each with a line that did it.
struct Touched {
  Address low, high;
  unsigned line;
};
struct Footprint {
  std::string kernel, file;  // the latter: of the lines
  std::vector<Touched> reads, writes, updates;  // updates: atomic or volatile writes
};

// Why a cooperative launch is refused: of_each blocks fit on a multiprocessor.
Facts too_many_blocks(std::uint64_t blocks, std::uint32_t of_each);

// Ends the launch that runs and, at once, all that come: for a signal handler, before the process ends.
void end_launches() noexcept;

class Device {
 public:
  // shared_fd: a memfd that backs the shared arena, or -1 for none.
  Device(std::size_t device_bytes, int shared_fd, std::size_t shared_bytes);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  void configure(const Options&);
  Options options;

  // Throw Refusal, and initialise the module's globals. Several units, as nvcc -rdc=true makes, become one module.
  ModuleId load(std::string_view ptx) { return load(std::vector{ptx}); }
  ModuleId load(const std::vector<std::string_view>& units);
  void unload(ModuleId);
  const Kernel* kernel(ModuleId, std::string_view name) const;  // nullptr if absent
  KernelInfo info(const Kernel*) const;
  std::optional<Symbol> symbol(ModuleId, std::string_view name) const;

  // 0 if there is no room; content is poison, uninitialised for initcheck. Nothing may touch it before it is ready.
  Address allocate(std::size_t bytes, Space, bool ready = true);
  void limit_heap(std::size_t bytes);  // what malloc() in kernels may hand out: cudaLimitMallocHeapSize
  void make_ready(Address);  // anew if it has been freed
  bool renew(Address base);  // an allocation holds poison, and counts as never written, again
  void surround(Address, std::size_t bytes);  // with poison on both sides, as the judge's arrays have it on a GPU
  // What findings call the allocation that begins there, and whether a function may only read it. False if none does.
  bool describe(Address, std::string_view name, bool constant);
  std::string name(Address base) const;  // empty if it has none
  // False if it is not the base of a live allocation. reuse: nothing that ran or is to run uses it, so that much later
  // another allocation may get its place.
  bool release(Address, bool reuse = false);
  std::optional<Allocation> find(Address) const;  // the live (or just freed) allocation around an address

  // Copies from outside count as initialising writes. False if the range is not inside one live allocation.
  bool write(Address, std::span<const std::byte>);
  bool read(Address, std::span<std::byte>) const;
  bool fill(Address, std::byte value, std::size_t bytes);
  Unwritten unwritten(Address, std::size_t bytes) const;  // nothing without initcheck
  bool copy(Address to, Address from, std::size_t bytes);  // initialisedness travels along

  void watch(std::vector<Element>);  // from now on, until others are watched
  const std::vector<LastStore>& last_stores() const;  // into what is watched, in that order

  Footprint footprint() const;  // of the last launch; empty without racecheck
  Footprint take_host_visible();  // of the last launch, in managed and pinned memory alone
  Ran launch(const Launch&);  // throws Refusal for a kernel that cannot even begin

  std::vector<Finding> take_findings();  // since the last call of it
  std::vector<LineCount> take_counts();
  std::vector<Coverage> take_coverage();
  void reset();  // frees all allocations and forgets modules, findings and counts

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sim
