// What the race checker remembers: of shared memory per block, of global memory per launch.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/checks/causality.h"
#include "engine/machine.h"

namespace sim {

struct SharedRaces {
  // A stamp: the block's clock at an access, and the thread. 0: never.
  static constexpr unsigned thread_bits = 10;
  static constexpr std::uint32_t last_clock = (1u << (32 - thread_bits)) - 64;
  std::uint32_t clock = 1;
  std::array<std::array<std::uint32_t, lane_count>, lane_count>
      known{};  // [me][other warp]: its accesses before precede what any lane of mine does next
  std::array<std::uint32_t, lane_count> floor{};  // [me]: the smallest of known[me]
  std::array<std::uint32_t, lane_count> values_passed{};  // [warp]: when all its lanes last gave each other values
  // Per granule: the last plain write, the last atomic one, and two reads; and where they stand in the code. The top
  // bit of a place: volatile.
  std::vector<std::uint32_t> writer, updater, reader, other_reader, writer_site, updater_site, reader_site, other_site;
  bool updates = false;  // an atomic has been seen since the block began
  unsigned shift = 2;  // log2 of the bytes that share a stamp

  // What threads carry beside that: all lanes of a warp the same, or, once they differ, each lane its own.
  using LaneViews = std::array<View, lane_count>;
  std::uint64_t block = 0;
  bool views_used = false;  // since the block began
  std::array<View, lane_count> views;
  std::array<std::unique_ptr<LaneViews>, lane_count> lane_views;
  // Of each lane: its clock at its last fence, which is not yet in `fenced` of its view.
  std::array<std::array<std::array<std::uint32_t, lane_count>, reaches>, lane_count> fences{};
  Mask with_fences = 0;  // warps
  std::unordered_map<Address, Location> locations;  // in shared memory
  // Of an mbarrier: what has arrived, and what that was when a phase was last complete.
  struct Phases {
    View arrived, complete;
  };
  std::unordered_map<Address, Phases> phases;
  std::array<View, 16> arrivals;  // of bar.arrive
  std::unordered_map<std::uint64_t, std::uint32_t> looks;  // [granule, warp]: its last strong read
  // With several workers: a strong read may find what comes between its check and the load. So the last one of each of
  // these warps is followed up by its next access, fence or barrier.
  struct Look {
    const Instruction* instruction;
    Access access;
  };
  Mask unsure = 0;
  std::array<std::unique_ptr<Look>, lane_count> last_looks;
  bool worn_out = false;  // the clock has begun anew since the block began: what others know of it is too old

  // Copies (cp.async) that their threads have not waited for. A group ends with cp.async.commit_group.
  struct Copy {
    std::uint64_t granule;
    std::uint32_t group, site;
  };
  std::vector<std::vector<Copy>> copies;  // per thread
  std::vector<std::uint32_t> groups;  // per thread: how many it has committed
  std::vector<std::uint16_t> filling;  // per granule: the copying thread + 1; empty before the first copy
  std::vector<std::uint32_t> filling_site;
  std::uint64_t in_flight = 0;  // copies

  struct Bounds {
    Address low = ~Address{0}, high = 0;
    bool meets(Address from, Address to) const { return from < high && low < to; }
    void extend(Address from, Address to) {
      low = std::min(low, from);
      high = std::max(high, to);
    }
  };
  // Around the writes to shared memory since all warps last met, and the clock of the last of them.
  Bounds shared_written;
  std::uint32_t last_shared_write = 0;
  // Reads of shared memory that no such write meets. They say something only to a write that comes before the next
  // barrier of all warps, which there mostly is none of: until then they are not yet noted in their granules.
  struct Read {
    Warp* warp;
    const Instruction* instruction;
    Address low, high;
    Mask mask;
    std::uint32_t size;
    Access::Shape shape;
  };
  struct Reads {
    static constexpr std::size_t most = 2048;
    std::vector<Read> list;
    std::vector<std::uint32_t> addresses;  // of the lanes of those that are scattered
    Bounds around;
    void clear() {
      list.clear();
      addresses.clear();
      around = {};
    }
  };
  Reads unnoted;
  // Of global memory: around the writes and the reads since all warps last met, and the clocks of the last of them.
  Bounds written, read;
  std::uint32_t last_global_write = 0, last_global_read = 0;
  unsigned piece_shift = 9;  // log2 of the bytes of a piece

  // An access whose lanes went each somewhere else, whole.
  struct Scattered {
    Address low = 0, high = 0;
    std::uint32_t clock = 0, site = 0, warp = 0, size = 0;
    Mask mask = 0;
    std::array<Address, lane_count> address;
  };
  // The last of these.
  struct Ring {
    static constexpr std::size_t kept = 32;
    std::uint32_t last = 0;  // clock
    std::vector<Scattered> list;  // empty before the first one
    std::size_t next = 0;
    Bounds around;  // those since a barrier
  };
  Ring gathers, scatters;  // reads, writes

  // What threads of the block did last in pieces of 512 bytes of global memory, of 256 or 128 if the kernel stores
  // halves or bytes. A fifth access takes the place of another, which can only hide a race.
  struct Touch {
    Address low = 0, origin = 0;  // thread t touched the bytes from origin + (t << shift) on
    std::uint32_t clock = 0, site = 0;
    std::uint16_t bytes = 0, first = 0,
                  second = 0;  // if `shift` is same_place: two threads, of all that touched all of it
    std::uint8_t shift = 0;
    bool alike(const Touch& t) const {
      return origin == t.origin && shift == t.shift && first == t.first && second == t.second;
    }
  };
  static_assert(sizeof(Touch) == 32);
  static constexpr std::uint8_t same_place = 63;
  static constexpr std::size_t pieces = 128;
  struct Touches {
    std::array<std::array<Touch, pieces>, 4> kept{};
    std::uint32_t last_beside = 0;  // clock of the last one that is not the first of its piece
    // How many of a piece may matter to who knows all that was before `floor`.
    std::size_t count(std::uint32_t floor) const { return last_beside < floor ? 1 : kept.size(); }
  };
  Touches global_writes, global_reads;
  // Rows that race with nothing since all warps last met: they say something only to those that come before that
  // happens again, and until one does they are not yet among the pieces.
  struct Row {
    Touch touch;
    std::uint32_t warp = 0;
    bool write = false;
  };
  struct Rows {
    static constexpr std::size_t most = 256, most_own = 24;
    std::array<Row, most> list;
    std::size_t count = 0, own = 0;  // from `own` on: those of `warp`, which has come last
    std::uint32_t warp = 0;
    bool full = false;  // it has been: what comes before all warps meet is noted at once, not twice as much later
    struct Around {
      Bounds written, read;
    };
    Around noted;  // around what is not in the list
    // Around those in the list, and those of other warps there, of one allocation each; of the last, of all others.
    struct Area {
      Address allocation;
      Around all, others;
    };
    std::array<Area, 8> areas;
    std::size_t area_count = 0;
    Area& area(Address allocation) {
      for (std::size_t n = 0; n < area_count; ++n) {
        if (areas[n].allocation == allocation) return areas[n];
      }
      if (area_count == areas.size()) return areas.back();
      areas[area_count] = {allocation, {}, {}};
      return areas[area_count++];
    }
    void clear() {
      count = own = area_count = 0;
      full = false;
      noted = {};
    }
  };
  Rows unnoted_rows;
  // What a warp may have taken as a lock, and whether it has touched other memory since then without a fence behind the
  // taking, or since its last fence.
  struct Lock {
    Address word = 0;  // 0: none
    std::uint64_t before = 0;
    std::uint32_t site = 0;
    bool fenced = false, used_early = false, used_late = false;
    bool usual = false;  // it was 0 and becomes 1, as hardly anything does that is no lock
  };
  std::array<Lock, lane_count> locks{};
  bool exchanged = false;  // a thread of the block may have taken or released a lock
  // Of kernels in Triton: races that count only if what a load brings is of consequence.
  struct Doubt {
    std::uint32_t load, warp;  // which instruction, and whose
    Mask lanes;  // that may have loaded it
    std::uint32_t site, other;  // instructions that race; the finding is at the first
    Finding finding;
  };
  std::vector<Doubt> doubts;
  bool doubted(const Doubt& doubt) {  // such a race has been met before in the block
    for (Doubt& d : doubts) {
      if (d.load != doubt.load || d.warp != doubt.warp || d.site != doubt.site || d.other != doubt.other) continue;
      d.lanes |= doubt.lanes;
      return true;
    }
    return false;
  }
  std::vector<Mask> stored;  // per instruction, per warp: lanes that have
  std::vector<std::size_t> entries_stored;  // those that are not empty
};

// Whether what a stamp tells of came before all that this lane does now.
bool ordered(const SharedRaces&, std::uint32_t stamp, std::uint32_t warp, std::uint32_t lane);

// Whether what a stamp tells of is a read of this warp, all lanes of which have given each other values since: what
// one of them writes now does not reach it.
bool read_before_passing(const SharedRaces&, std::uint32_t stamp, std::uint32_t warp);

// A new moment: what comes now is told apart from what was before.
void tick(SharedRaces&);
// Notes the reads of shared memory that have not been noted yet, before anything changes that they depend on.
void note_reads(SharedRaces&);
// The same for rows of global memory.
void note_rows(SharedRaces&);
const View& view_of(const SharedRaces&, std::uint32_t warp, std::uint32_t lane);
// What is missing for an earlier access to be ordered before what this lane does, as the reason of a finding.
const char* missing_order(const SharedRaces&, std::uint32_t stamp, std::uint32_t warp, std::uint32_t lane);
struct KernelCode;
// Where no barrier between two accesses would help, as the reason of a finding: both threads update one place, or write
// it in one statement. Otherwise null.
const char* mistake_of_one_statement(const KernelCode&, std::uint32_t site, bool writes, std::uint32_t other,
                                     bool other_writes);
// Forgets what threads have handed to each other.
void forget_views(SharedRaces&);
// A strong access has been checked: what it takes from its locations, and what it leaves there.
void hand_over(Warp&, const Instruction&, const Access&);
// Takes what the warp's last strong read may have found after it was checked.
void look_again(Warp&);
// The warp has executed a fence.
void fence_lock(SharedRaces&, std::uint32_t warp);
// Of all threads, as a block begins.
void forget_copies(SharedRaces&);

// Which blocks have touched which global memory in this launch.
struct GlobalRaces;
struct Locations {
  std::mutex mutex;
  std::unordered_map<Address, Location> list;
};
Locations& locations(GlobalRaces&);  // in global memory
class Memory;
struct LaunchState;
GlobalRaces* make_global_races(const Memory&);
void destroy_global_races(GlobalRaces*);
void begin_launch(GlobalRaces&, const LaunchState&);
Footprint footprint(const GlobalRaces&);  // of the last launch

}  // namespace sim
