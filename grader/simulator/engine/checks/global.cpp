// initcheck of global memory, and races between blocks.
//
// Per segment of 128 bytes the block that wrote it and some blocks that read it are kept, each with its words; when that
// does not tell what happened to each word, records are kept per word of 4 bytes. Two accesses are ordered if the first block has executed a
// fence since, and the second block has since looked at what others publish (an atomic, volatile or acquiring access):
// coarser than the memory model, so that a correct program is never accused. Neighbouring bytes in one word are not told
// apart if written by plain byte stores of different blocks, so those are left alone.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <span>
#include <thread>
#include <utility>

#include "engine/checks/checks.h"
#include "engine/checks/races.h"
#include "engine/hooks.h"

namespace sim {
namespace {

constexpr unsigned segment_shift = 7, words_per_segment = 32;
constexpr std::size_t details_at_once = 64;

struct Touch {
  std::uint32_t block = 0;  // number + 1; 0: none
  std::uint32_t time = 0;
  std::uint32_t site : 31 = 0, atomic : 1 = 0;
};
// The last plain write, the last atomic one, and of the readers the last one and the last of another block.
struct Word {
  Touch writer, updater, reader, other_reader;
};
using Detail = std::array<Word, words_per_segment>;

// What one block did to words of a segment.
struct Record {
  Touch touch;
  std::uint32_t words = 0;
};
// Two lines of the cache, the second for segments that many blocks read: those that go down columns share a row's.
struct alignas(64) Segment {
  std::atomic_flag busy;
  std::atomic<std::uint8_t> reader_count;
  std::atomic<std::uint32_t> launch;
  std::atomic<Detail*> detail;  // the words' own records
  Record writer;
  std::array<Record, 6> readers;  // each of another block
};
static_assert(sizeof(Segment) == 128);

}  // namespace

struct GlobalRaces {
  const Memory& memory;
  Segment* segments = nullptr;
  std::size_t count = 0;
  std::uint32_t launch = 0;
  bool threads = false;
  std::atomic<std::uint32_t> time{1};
  std::deque<std::atomic<std::uint32_t>> fenced;  // per block
  std::mutex mutex;                               // of the list of details
  std::deque<std::array<Detail, details_at_once>> details;  // kept from launch to launch
  std::size_t details_in_use = 0;

  // The records of an access are rarely in a cache, and the processor would wait for one after the other.
  void fetch(const Access& a) const {
    const std::uint64_t low = (a.low - memory.device_base()) >> segment_shift, high = (a.high - 1 - memory.device_base()) >> segment_shift;
    if (high - low < lane_count) {
      for (std::uint64_t n = low; n <= high; ++n) __builtin_prefetch(&segments[n], 1);
    } else {
      for (Mask m = a.mask; m; m &= m - 1) __builtin_prefetch(&segments[(a.address[std::countr_zero(m)] - memory.device_base()) >> segment_shift], 1);
    }
  }

  explicit GlobalRaces(const Memory& m) : memory(m), count((m.device_size() >> segment_shift) + 1) {
    void* at = mmap(nullptr, count * sizeof(Segment), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    segments = static_cast<Segment*>(at);
  }
  ~GlobalRaces() { munmap(segments, count * sizeof(Segment)); }
  GlobalRaces(const GlobalRaces&) = delete;
  GlobalRaces& operator=(const GlobalRaces&) = delete;
};

GlobalRaces* make_global_races(const Memory& memory) { return new GlobalRaces(memory); }
void destroy_global_races(GlobalRaces* races) { delete races; }

void begin_launch(GlobalRaces& r, const LaunchState& launch) {
  ++r.launch;
  r.threads = launch.options.threads > 1;
  r.time = 1;
  r.details_in_use = 0;
  r.fenced.clear();
  r.fenced.resize(launch.blocks);
}

void fence_global(Warp& w) {
  if (GlobalRaces* r = w.worker->launch.races) r->fenced[w.block->number] = ++r->time;
}

namespace {

bool silent(const Access& a, unsigned lane) {
  if (a.atomic || !a.write) return false;
  const auto* memory = reinterpret_cast<const std::byte*>(a.address[lane]);
  for (std::uint32_t n = 0; n < a.size / a.element; ++n) {
    if (std::memcmp(memory + n * a.element, a.value[n] + lane * a.element, a.element) != 0) return false;
  }
  return true;
}

struct Checker {
  Warp& w;
  const Instruction& i;
  const Access& a;
  GlobalRaces& r;
  Touch me;

  bool conflicts(const Touch& other, unsigned lane) const {
    if (other.block == 0 || other.block == me.block || (other.atomic && me.atomic)) return false;
    if (r.fenced[other.block - 1] > other.time && w.block->looked > other.time) return false;
    return !silent(a, lane);
  }
  void report(const Touch& other, bool other_writes, unsigned lane) const {
    LaunchState& launch = w.worker->launch;
    if (launch.faulted || launch.seen("race_global", i.site)) return;
    const auto place = [&](std::uint32_t site) { return " (line " + std::to_string(launch.place(site).line) + ")"; };
    const auto n = other.block - 1;
    const Dim3 g = launch.launch.grid;
    const std::string other_block = "block (" + std::to_string(n % g.x) + "," + std::to_string(n / g.x % g.y) + "," + std::to_string(n / g.x / g.y) + ")";
    const auto found = launch.memory.find(a.address[lane]);
    const std::string where = found ? "byte " + std::to_string(a.address[lane] - found->base) + " of an allocation of " + std::to_string(found->size) + " bytes" : "global memory";
    launch.report("racecheck", "race_global", i.site,
                  name_thread(launch, *w.block, w.number, lane) + (a.write ? " writes " : " reads ") + where + place(i.site) + " that " + other_block +
                      (other_writes ? " has written" : " has read") + place(other.site) +
                      ", and nothing orders the two: blocks run in any order; use an atomic, another launch or a fence and a flag");
  }

  void on_word(Word& word, unsigned lane) {
    if (conflicts(word.writer, lane)) {
      report(word.writer, true, lane);
    } else if (conflicts(word.updater, lane)) {
      report(word.updater, true, lane);
    }
    if (a.write) {
      for (const Touch& reader : {word.reader, word.other_reader}) {
        if (!conflicts(reader, lane)) continue;
        report(reader, false, lane);
        break;
      }
      (me.atomic ? word.updater : word.writer) = me;
    } else {
      if (word.reader.block != me.block) word.other_reader = word.reader;
      word.reader = me;
    }
  }

  // One record has one time and one kind of access for all its words: it may take another access only if nothing that
  // it says of its words becomes wrong.
  bool absorbs(const Touch& record, std::uint32_t recorded, std::uint32_t words) const {
    return (record.atomic == me.atomic && r.fenced[me.block - 1] <= record.time) || (recorded & ~words) == 0;
  }
  bool extend(Record& record, std::uint32_t words) const {
    if (!absorbs(record.touch, record.words, words)) return false;
    record.touch = me;
    record.words |= words;
    return true;
  }
  static std::span<Record> readers(Segment& s) { return {s.readers.data(), s.reader_count.load(std::memory_order_acquire)}; }
  // Words that have two readers without a fence since: that suffices, as every writer is another block than one of them.
  std::uint32_t read_twice(Segment& s) const {
    std::uint32_t once = 0, twice = 0;
    for (const Record& record : readers(s)) {
      if (record.touch.atomic || r.fenced[record.touch.block - 1] > record.touch.time) continue;
      twice |= once & record.words;
      once |= record.words;
    }
    return twice;
  }
  bool read_quickly(Segment& s, std::uint32_t words) const {
    const auto known = readers(s);
    for (Record& record : known) {
      if (record.touch.block == me.block) return extend(record, words);
    }
    if (known.size() > 1 && (words & ~read_twice(s)) == 0) return true;
    if (known.size() == s.readers.size()) return false;
    s.readers[known.size()] = {me, words};
    s.reader_count.store(static_cast<std::uint8_t>(known.size() + 1), std::memory_order_release);
    return true;
  }
  // Whether a read says nothing new, asked without the lock: all blocks read the same weights, and would wait for each
  // other at every one. A writer that comes between finds the readers that stand here.
  bool known(Segment& s, std::uint32_t words) const {
    if (s.launch.load(std::memory_order_acquire) != r.launch || s.detail.load(std::memory_order_acquire) || s.writer.touch.block) return false;
    for (const Record& record : readers(s)) {
      if (record.touch.block != me.block) continue;
      return record.touch.time == me.time && record.touch.atomic == me.atomic && (words & ~record.words) == 0;
    }
    return (words & ~read_twice(s)) == 0;
  }
  // The common case: nobody else, or only readers, and this is a read too.
  bool quick(Segment& s, std::uint32_t words) const {
    if (s.launch.load(std::memory_order_relaxed) != r.launch) {
      s.writer = {};
      s.reader_count.store(0, std::memory_order_relaxed);
      s.detail.store(nullptr, std::memory_order_relaxed);
      s.launch.store(r.launch, std::memory_order_release);
    }
    if (s.detail.load(std::memory_order_relaxed) || (s.writer.touch.block && s.writer.touch.block != me.block)) return false;
    if (!a.write) return read_quickly(s, words);
    const auto others = [&](const Record& record) { return record.touch.block != me.block; };
    const bool plain_write_lost = me.atomic && !s.writer.touch.atomic && (s.writer.words & words);
    return !plain_write_lost && !std::ranges::any_of(readers(s), others) && extend(s.writer, words);
  }
  void on_segment(Segment& s, std::uint32_t words, const std::array<std::uint8_t, words_per_segment>& lanes) {
    if (!s.detail.load(std::memory_order_relaxed)) split(s);
    Detail& detail = *s.detail.load(std::memory_order_relaxed);
    for (std::uint32_t m = words; m; m &= m - 1) {
      const auto n = static_cast<unsigned>(std::countr_zero(m));
      on_word(detail[n], lanes[n]);
    }
  }
  // f(segment n), alone with it; not called if it could only find what is known already.
  template <class F> void locked(std::uint64_t n, std::uint32_t words, F f) const {
    Segment& s = r.segments[n];
    if (!r.threads) return f(s);
    if (!a.write && known(s, words)) return;
    while (s.busy.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
    f(s);
    if (a.write && !a.atomic) store(n);
    s.busy.clear(std::memory_order_release);
  }
  // The instruction stores after its checks. Whoever finds its record must find the value as well, lest a harmless
  // store of the same value look like another one.
  void store(std::uint64_t segment) const {
    for (Mask m = a.mask; m; m &= m - 1) {
      const auto l = static_cast<unsigned>(std::countr_zero(m));
      const std::uint64_t own = (a.address[l] - r.memory.device_base()) >> segment_shift;
      if (own < segment) continue;
      if (own > segment && a.shape == Access::Shape::contiguous) break;
      if (own != segment) continue;
      auto* memory = reinterpret_cast<std::byte*>(a.address[l]);
      for (std::uint32_t n = 0; n < a.size / a.element; ++n) std::memcpy(memory + n * a.element, a.value[n] + l * a.element, a.element);
    }
  }
  void split(Segment& s) {
    Detail* detail;
    {
      const std::lock_guard lock(r.mutex);
      const std::size_t n = r.details_in_use++;
      if (n / details_at_once == r.details.size()) r.details.emplace_back();
      detail = &r.details[n / details_at_once][n % details_at_once];
    }
    detail->fill({});
    const auto each_word = [&](const Record& record, auto f) {
      for (Mask m = record.words; m; m &= m - 1) f((*detail)[static_cast<unsigned>(std::countr_zero(m))]);
    };
    each_word(s.writer, [&](Word& word) { (s.writer.touch.atomic ? word.updater : word.writer) = s.writer.touch; });
    for (const Record& record : readers(s)) {
      each_word(record, [&](Word& word) { word.other_reader = std::exchange(word.reader, record.touch); });
    }
    s.detail.store(detail, std::memory_order_release);
  }

  // Lanes side by side, from the first on.
  void run_row() {
    const std::uint64_t low = a.low - r.memory.device_base(), high = a.high - r.memory.device_base();
    const auto first_lane = static_cast<unsigned>(std::countr_zero(a.mask));
    for (std::uint64_t n = low >> segment_shift; n <= (high - 1) >> segment_shift; ++n) {
      const std::uint64_t start = n << segment_shift, from = std::max(low, start), to = std::min(high, start + (1u << segment_shift));
      const auto first = static_cast<unsigned>((from - start) >> 2), last = static_cast<unsigned>((to - 1 - start) >> 2);
      const std::uint32_t words = (~0u << first) & (~0u >> (31 - last));
      locked(n, words, [&](Segment& s) {
        if (quick(s, words)) return;
        std::array<std::uint8_t, words_per_segment> lanes{};
        for (unsigned word = first; word <= last; ++word) lanes[word] = static_cast<std::uint8_t>(first_lane + (std::max(start + 4 * word, low) - low) / a.size);
        if (a.shape == Access::Shape::uniform) lanes.fill(static_cast<std::uint8_t>(first_lane));
        on_segment(s, words, lanes);
      });
    }
  }

  void run() {
    if (a.shape == Access::Shape::uniform || in_a_row(a)) return run_row();
    // Lanes of one segment usually follow each other.
    std::uint64_t current = ~0ull;
    std::uint32_t words = 0;
    std::array<std::uint8_t, words_per_segment> lanes{};
    const auto flush = [&] {
      if (!words) return;
      locked(current, words, [&](Segment& s) {
        if (!quick(s, words)) on_segment(s, words, lanes);
      });
      words = 0;
    };
    for (Mask m = a.mask; m; m &= m - 1) {
      const auto l = static_cast<unsigned>(std::countr_zero(m));
      const std::uint64_t first = (a.address[l] - r.memory.device_base()) >> 2;
      const std::uint64_t last = (a.address[l] + a.size - 1 - r.memory.device_base()) >> 2;
      for (std::uint64_t word = first; word <= last; ++word) {
        if (word / words_per_segment != current) {
          flush();
          current = word / words_per_segment;
        }
        words |= 1u << word % words_per_segment;
        lanes[word % words_per_segment] = static_cast<std::uint8_t>(l);
      }
    }
    flush();
  }
};

bool all_written(const std::uint8_t* bits, std::size_t first, std::size_t count) {
  if (first % 8 == 0 && count % 8 == 0) {
    const std::uint8_t* at = bits + first / 8;
    std::size_t n = count / 8;
    for (; n >= 8; n -= 8, at += 8) {
      std::uint64_t word;
      std::memcpy(&word, at, 8);
      if (word != ~0ull) return false;
    }
    for (; n; --n) {
      if (*at++ != 0xff) return false;
    }
    return true;
  }
  while (count) {
    const std::size_t bit = first % 8, n = std::min(8 - bit, count);
    const auto mask = static_cast<std::uint8_t>(((1u << n) - 1) << bit);
    if ((bits[first / 8] & mask) != mask) return false;
    first += n;
    count -= n;
  }
  return true;
}

// Bits of one byte of the map may belong to different blocks, which may run at the same time.
void set_written(std::uint8_t* bits, std::size_t first, std::size_t count) {
  while (count) {
    const std::size_t bit = first % 8, n = std::min(8 - bit, count);
    const auto mask = static_cast<std::uint8_t>(((1u << n) - 1) << bit);
    if (n == 8 && count >= 8) {
      const std::size_t whole = count / 8;
      std::memset(bits + first / 8, 0xff, whole);
      first += whole * 8;
      count -= whole * 8;
      continue;
    }
    std::atomic_ref<std::uint8_t> byte(bits[first / 8]);
    if ((byte.load(std::memory_order_relaxed) & mask) != mask) byte.fetch_or(mask, std::memory_order_relaxed);
    first += n;
    count -= n;
  }
}

// The same for one aligned access.
bool lane_written(const std::uint8_t* bits, std::size_t first, std::uint32_t size) {
  bits += first / 8;
  if (size == 16) return (bits[0] & bits[1]) == 0xff;
  return (~(unsigned{bits[0]} >> first % 8) & ((1u << size) - 1)) == 0;
}

void check_written(Warp& w, const Instruction& i, const Access& a) {
  LaunchState& launch = w.worker->launch;
  const Memory& memory = launch.memory;
  std::uint8_t* bits = memory.written();
  const bool row = a.shape == Access::Shape::uniform || in_a_row(a);
  const bool reads = !a.write || a.atomic;
  if (row) {
    if (!reads) return set_written(bits, memory.bit_of(a.low), a.high - a.low);
    if (all_written(bits, memory.bit_of(a.low), a.high - a.low)) return;
  }
  for (Mask m = a.mask; m; m &= m - 1) {
    const auto l = static_cast<std::uint32_t>(std::countr_zero(m));
    const std::size_t first = memory.bit_of(a.address[l]);
    if (reads && !lane_written(bits, first, a.size) && !launch.faulted && !launch.seen("uninit_global", i.site)) {
      const auto found = memory.find(a.address[l]);
      launch.report("initcheck", "uninit_global", i.site,
                    name_thread(launch, *w.block, w.number, l) + " reads " + std::to_string(a.size) + " bytes at byte " +
                        std::to_string(found ? a.address[l] - found->base : 0) + " of an allocation of " + std::to_string(found ? found->size : 0) +
                        " bytes that nothing has written");
    }
    if (a.write) set_written(bits, first, a.size);
  }
}

}  // namespace

void check_global(Warp& w, const Instruction& i, const Access& a) {
  LaunchState& launch = w.worker->launch;
  if (!launch.memory.has_shadow(a.low) || !launch.memory.has_shadow(a.high - 1)) return;
  GlobalRaces* r = launch.races;
  if (r) r->fetch(a);
  if (launch.options.initcheck) check_written(w, i, a);
  if (!r) return;
  const auto block = static_cast<std::uint32_t>(w.block->number);
  // What a look sees is older than the block's next access, but perhaps not older than this check before it.
  if (i.is_volatile || w.block->looking) w.block->looked = r->time.load();
  w.block->looking = i.is_volatile;
  if (i.is_volatile && a.write && i.target == 1) r->fenced[block] = ++r->time;
  if (a.write && a.size < 4) return;
  Touch me;
  me.block = block + 1;
  me.time = r->time.load(std::memory_order_relaxed);
  me.site = i.site & 0x7fffffff;
  me.atomic = a.atomic || i.is_volatile;
  Checker{w, i, a, *r, me}.run();
}

}  // namespace sim
