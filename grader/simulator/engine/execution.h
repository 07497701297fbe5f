// A launch while it runs: blocks, warps, the splits of a warp, and the workers (threads of ours) that run blocks.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device.h"
#include "engine/checks/unwritten.h"
#include "engine/findings.h"
#include "engine/kernel_code.h"
#include "engine/late.h"
#include "engine/machine.h"
#include "engine/memory.h"
#include "engine/residency.h"

namespace sim {

struct SharedRaces;
struct GlobalRaces;
class HostVisible;
class LastStores;
class Trail;

// The registers of one call of a function, for the lanes that are in it.
struct Frame {
  std::vector<std::byte> storage;
  std::byte* registers = nullptr;  // aligned
  Frame* parent = nullptr;
  std::uint32_t function = 0, call = 0, return_pc = 0, depth = 0, local_top = 0;
  std::uint32_t users = 0;  // splits in it, and frames above it
  std::unique_ptr<UnwrittenValues> unwritten;  // null if all of its values come from what was written
};

// Lanes of a warp that go together.
struct Split {
  enum class State : std::uint8_t { ready, barrier, collective } state = State::ready;
  std::uint32_t pc = 0;
  Mask mask = 0;
  Frame* frame = nullptr;
  std::uint32_t barrier = 0;
  Mask members = 0;        // of a collective
  std::uint64_t turn = 0;  // when it last ran
  const Instruction* passed = nullptr;  // an atomic that a later one has passed, which takes place when it runs again
  Mask passed_mask = 0;
};

struct WarpState {
  Warp warp;
  std::vector<Split> splits;
  std::vector<std::unique_ptr<Frame>> frames, free_frames;
  std::vector<std::byte> special_storage;
  std::unique_ptr<std::byte[]> local_storage;  // committed by the system as it is used
  std::uint64_t turns = 0;
  // Lanes with different numbers have gone different ways, and nothing has made them converge since. Followed in the
  // reversed order alone.
  std::array<std::uint64_t, lane_count> ways{};
  std::uint64_t last_way = 0;
  void part(Mask lanes);  // these lanes go another way than those that they were with
  void converge(Mask lanes);  // these lanes are together
  // Of `lanes`, which are at one place, those that stay with the first one; `all` is who has not ended yet.
  Mask together(Mask lanes, Mask all) const;
  bool done() const { return splits.empty(); }
  bool ready() const {  // to run, and not waiting for others
    return std::any_of(splits.begin(), splits.end(), [](const Split& s) { return s.state == Split::State::ready; });
  }
};

struct Barrier {
  std::uint32_t arrived = 0, expected = 0;  // threads; expected 0: all that are alive
};

struct Block {
  Dim3 index;
  std::uint64_t number = 0;
  Residency::Seat seat;
  std::vector<std::unique_ptr<WarpState>> warps;
  std::vector<std::uint32_t> order;
  std::vector<std::byte> shared_storage;
  std::byte* shared = nullptr;
  std::array<Barrier, 16> barriers;
  std::uint32_t barriers_in_use = 0;
  std::uint32_t live_threads = 0, threads = 0;
  std::unique_ptr<SharedRaces> races;
  std::vector<std::uint8_t> written;  // of shared memory, per byte
  std::map<std::uint32_t, UnwrittenValues::Origin> copied_unwritten;  // there, by the byte
  std::size_t of_heap = 0, most_of_heap = 0;  // bytes of malloc() that it has, and that it had at once
  std::uint32_t looked = 0;  // when it last looked at what other blocks publish
  bool looking = false;  // its last access was such a look
  std::uint32_t heard = 0;  // when it last read something volatile or atomic
  bool hearing = false;  // its last access was that
  std::uint32_t look_site = 0;  // where
  std::unordered_map<Address, std::uint32_t> looks;  // when it last read something strong from there
  std::array<std::uint64_t, 32> stepped_back{};  // where each warp has let others go on: sites, by their last bits
  std::uint32_t offers = 0;  // what it has told others while it could be interrupted
  std::array<std::uint32_t, 2> interruptions{};  // how often it was: [1] behind atomics with a result
  std::array<std::uint8_t, 64> interrupted_at{};  // how often at each site, by its last bits
  std::uint32_t passings = 0;  // how often an atomic has passed another one
};

// Of one instruction; the names are LineCount's.
struct SiteCount {
  std::uint64_t global_requests = 0, global_sectors = 0, minimal_sectors = 0, global_bytes = 0;
  std::uint64_t shared_requests = 0, shared_wavefronts = 0, minimal_wavefronts = 0;
  std::uint64_t barriers = 0, undefined_lanes = 0, atomics = 0;
};

struct Counts {  // per instruction
  std::vector<std::int64_t> starts, lanes, skipped;  // starts and lanes: differences, to be summed up
  std::vector<SiteCount> memory;
};

// Without the popcnt instruction, which plain x86-64 lacks, std::popcount is a call.
constexpr std::uint32_t count_lanes(Mask m) {
  m -= m >> 1 & 0x55555555;
  m = (m & 0x33333333) + (m >> 2 & 0x33333333);
  m = (m + (m >> 4)) & 0x0f0f0f0f;
  return m * 0x01010101 >> 24;
}

// What follows from the value that an instruction loads, as far as checks/copies.cpp can tell.
struct Consequences {
  bool unknown = false;  // perhaps anything
  bool of_warp = false;  // lanes hand it to each other
  std::vector<std::uint32_t> stores{};  // instructions: of what is made from it, or to where it says
};

struct LaunchState {
  const KernelCode& program;
  const ptx::Module& module;
  const Launch& launch;
  const Options& options;
  Memory& memory;
  Findings& findings;
  const Layout& layout;
  std::uint64_t spent_before = 0;  // of Options::total_budget, by earlier launches
  GlobalRaces* races = nullptr;
  HostVisible* host_visible = nullptr;  // with racecheck
  LastStores* last_stores = nullptr;  // where elements are watched
  std::vector<std::byte> bank;  // the launch bank
  std::byte* bank_start = nullptr;
  std::byte* constants = nullptr;
  std::uint32_t shared_size = 0;
  std::uint64_t blocks = 0, threads_per_block = 0;
  std::uint64_t clock_start = 0;  // what %clock tells at first
  Residency residency;
  LateReductions late;
  std::vector<std::uint64_t> order;  // empty: as numbered
  std::atomic<bool> stop{false}, faulted{false}, out_of_budget{false};
  // Apart from what is only read, which every access needs: a line that one worker writes, the others have to fetch
  // anew.
  alignas(128) std::atomic<std::uint64_t> next_block{0};
  alignas(128) std::atomic<std::uint64_t> executed{0};
  std::atomic<std::uint64_t> progress{0};  // `executed` when a warp last ended or passed a barrier of its block
  alignas(128) std::mutex mutex;  // of what follows
  Ran result;
  std::set<std::uint32_t> asserted;  // calls of assert that have failed
  std::map<std::uint32_t, Consequences> consequences;  // of loads
  // Of initcheck: what loads have read that nothing had written, and where in global memory copies of it lie.
  std::map<std::uint32_t, Finding> unwritten_loads;
  std::map<Address, UnwrittenValues::Origin> copied_unwritten;

  LaunchState(const KernelCode& p, const ptx::Module& m, const Launch& l, const Options& o, Memory& memory_,
              Findings& f, const Layout& variables)
      : program(p), module(m), launch(l), options(o), memory(memory_), findings(f), layout(variables) {}
  // Blocks [first, second) of the chosen order, at most `most`, for a worker to run; none if all are taken.
  std::pair<std::uint64_t, std::uint64_t> take_blocks(std::uint64_t most);
  // The first fault counts. `stopping` ends the launch at once; otherwise only the lanes at fault end.
  void fail(Fault, const std::string& message, bool stopping, std::optional<Finding> = {});
  void lacks(const Refusal& unknown);
  std::string where(std::uint32_t pc) const;  // "kernel name, file:line"
  const ptx::Place& place(std::uint32_t pc) const { return program.places[pc]; }
  // A place, then where the function around it is inlined, and so on.
  std::vector<const ptx::Place*> chain(std::uint32_t pc) const;
  // An instruction, and who executes it: a block, or a thread of it that reads, writes or updates so many bytes there.
  Place at(std::uint32_t pc) const;
  Place at(std::uint32_t pc, const Block&) const;
  Place at(std::uint32_t pc, const Block&, std::uint32_t warp, std::uint32_t lane, const char* does = "",
           std::uint32_t bytes = 0) const;
  // Of two accesses that race in two calls of the same function: which call begins too early. Else nothing.
  Facts overlap(std::uint32_t pc, bool writes, std::uint32_t other, bool other_writes) const;
  // What a checker sees at an instruction. Its own place is the first.
  Finding finding(const char* kind, const char* reason, std::uint32_t pc, std::vector<Place> places, Facts = {},
                  Severity = Severity::error) const;
  void report(const char* kind, const char* reason, std::uint32_t pc, std::vector<Place> places, Facts facts = {},
              Severity severity = Severity::error) {
    findings.add(finding(kind, reason, pc, std::move(places), std::move(facts), severity));
  }
  bool seen(const char* kind, std::uint32_t pc, Severity = Severity::error) const;
};

// Where a block is to pause once: at the first thing that it publishes, or where it first learns what others have done.
enum class Pause : std::uint8_t { never, before, after };

enum : std::uint8_t { taken_way = 1, passed_way = 2 };

struct alignas(128) Worker {
  LaunchState& launch;
  std::vector<Region> regions;
  Counts counts;
  bool counting = false;
  std::vector<std::unique_ptr<Block>> idle;  // for reuse
  std::vector<std::uint32_t> seen_words;  // scratch of the bank counter
  std::uint32_t seen_tick = 0;
  std::uint64_t clock = 0;
  std::uint64_t unreported = 0;  // of it: not in LaunchState::executed yet
  std::uint64_t spins = 0;  // accesses that may be part of a spin loop
  bool progressed = false;  // a warp ended, or passed a barrier of its block
  Pause to_pause = Pause::never;  // of the block that runs
  bool at_draw = false;  // it may pause there, too
  bool paused = false;  // the block has just done so
  bool interrupts = false;  // whether the block that runs may pause behind anything that it tells others
  Trail* trail = nullptr;  // of a warp that is watched
  Frame* frame = nullptr;  // of the split that runs
  std::vector<std::uint8_t> ways;  // per instruction with a guard: taken_way, passed_way; empty: not observed
  std::vector<Compared> compared;  // as KernelCode::comparisons

  explicit Worker(LaunchState&);
  void run();  // takes blocks until there are none
  bool stalled() const;
  std::unique_ptr<Block> start(std::uint64_t number);
};

// "thread (x,y,z) of block (x,y,z)"
std::string name_thread(const LaunchState&, const Block&, std::uint32_t warp, std::uint32_t lane);
std::string name_block(const Block&);

enum class Stop : std::uint8_t { done, waiting, slice };

// Runs a warp until it ends, waits for other warps, or has used up its slice.
Stop run_warp(WarpState&, std::uint64_t slice);
// Runs a block's warps in turn. waiting: nothing in it can go on.
Stop run_block(Block&, Worker&, std::uint64_t slice);

// Barriers. arrive() may release waiting splits of any warp of the block.
void arrive(WarpState&, const Split&, const Instruction&, Mask);
void after_exit(WarpState&, Mask gone, std::uint32_t pc);
bool release_if_complete(Block&, std::uint32_t barrier);
void report_deadlock(Block&, Worker&);

// Splits.
Frame* push_frame(WarpState&, std::uint32_t function, Frame* parent);
void drop_frame(WarpState&, Frame*);
void settle_collectives(WarpState&);
void call_builtin(WarpState&, const Instruction&, const CallSite&, Frame&, Mask, std::uint32_t pc);

}  // namespace sim
