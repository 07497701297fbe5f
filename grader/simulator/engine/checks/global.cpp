// initcheck of global memory, and races between blocks.
//
// Per segment of 128 bytes the block that wrote it last and two blocks that read it are kept, each with its words; when
// that does not tell what happened to each word, records are kept per word of 4 bytes. Two accesses are ordered if the first block has executed a
// fence since, and the second block has since looked at what others publish (an atomic, volatile or acquiring access):
// coarser than the memory model, so that a correct program is never accused. Neighbouring bytes in one word are not told
// apart if written by plain byte stores of different blocks, so those are left alone.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <deque>

#include "engine/checks/checks.h"
#include "engine/checks/races.h"
#include "engine/hooks.h"

namespace sim {
namespace {

constexpr unsigned segment_shift = 7, words_per_segment = 32;

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

struct Segment {
  std::atomic_flag busy;
  std::uint32_t launch;
  Touch writer, reader, other_reader;
  std::uint32_t written, read, other_read;  // words
  Detail* detail;                           // the words' own records
};
static_assert(sizeof(Segment) <= 64);

}  // namespace

struct GlobalRaces {
  const Memory& memory;
  Segment* segments = nullptr;
  std::size_t count = 0;
  std::uint32_t launch = 0;
  bool threads = false;
  std::atomic<std::uint32_t> time{1};
  std::deque<std::atomic<std::uint32_t>> fenced, looked;  // per block
  std::deque<bool> looking;                               // per block: its last access was such a look
  std::mutex mutex;                                       // of the list of details
  std::deque<Detail> details;

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
  r.details.clear();
  r.fenced.clear();
  r.looked.clear();
  r.fenced.resize(launch.blocks);
  r.looked.resize(launch.blocks);
  r.looking.assign(launch.blocks, false);
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
    if (r.fenced[other.block - 1] > other.time && r.looked[me.block - 1] > other.time) return false;
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
  bool read_quickly(Segment& s, std::uint32_t words) const {
    const auto extend = [&](Touch& record, std::uint32_t& recorded) {
      if (!absorbs(record, recorded, words)) return false;
      record = me;
      recorded |= words;
      return true;
    };
    if (s.reader.block == 0 || s.reader.block == me.block) return extend(s.reader, s.read);
    if (s.other_reader.block == 0 || s.other_reader.block == me.block) return extend(s.other_reader, s.other_read);
    // A third reader: two of a word suffice, as every writer is another block than one of them.
    const auto fresh = [&](const Touch& record) { return !record.atomic && r.fenced[record.block - 1] <= record.time; };
    if ((words & ~(s.read & s.other_read)) == 0 && fresh(s.reader) && fresh(s.other_reader)) return true;
    if ((s.other_read & ~words) != 0 && (s.read & ~words) != 0) return false;
    const bool last = (s.other_read & ~words) != 0;
    (last ? s.reader : s.other_reader) = me;
    (last ? s.read : s.other_read) = words;
    return true;
  }
  // The common case: nobody else, or only readers, and this is a read too.
  bool quick(Segment& s, std::uint32_t words) const {
    if (s.launch != r.launch) {
      s.launch = r.launch;
      s.writer = s.reader = s.other_reader = Touch{};
      s.written = s.read = s.other_read = 0;
      s.detail = nullptr;
    }
    if (s.detail || (s.writer.block && s.writer.block != me.block)) return false;
    if (!a.write) return read_quickly(s, words);
    if (s.other_reader.block || (s.reader.block && s.reader.block != me.block)) return false;
    const bool plain_write_lost = me.atomic && !s.writer.atomic && (s.written & words);
    if (plain_write_lost || !absorbs(s.writer, s.written, words)) return false;
    s.writer = me;
    s.written |= words;
    return true;
  }
  void on_segment(Segment& s, std::uint32_t words, const std::array<std::uint8_t, words_per_segment>& lanes) {
    if (!s.detail) split(s);
    Detail& detail = *s.detail;
    for (std::uint32_t m = words; m; m &= m - 1) {
      const auto n = static_cast<unsigned>(std::countr_zero(m));
      on_word(detail[n], lanes[n]);
    }
  }
  // f(segment n), alone with it.
  template <class F> void locked(std::uint64_t n, F f) const {
    Segment& s = r.segments[n];
    if (!r.threads) return f(s);
    while (s.busy.test_and_set(std::memory_order_acquire)) {
    }
    f(s);
    if (a.write && !a.atomic) store(n);
    s.busy.clear(std::memory_order_release);
  }
  // The instruction stores after its checks. Whoever finds its record must find the value as well, lest a harmless
  // store of the same value look like another one.
  void store(std::uint64_t segment) const {
    for (Mask m = a.mask; m; m &= m - 1) {
      const auto l = static_cast<unsigned>(std::countr_zero(m));
      if ((a.address[l] - r.memory.device_base()) >> segment_shift != segment) continue;
      auto* memory = reinterpret_cast<std::byte*>(a.address[l]);
      for (std::uint32_t n = 0; n < a.size / a.element; ++n) std::memcpy(memory + n * a.element, a.value[n] + l * a.element, a.element);
    }
  }
  void split(Segment& s) {
    {
      const std::lock_guard lock(r.mutex);
      s.detail = &r.details.emplace_back();
    }
    Detail& detail = *s.detail;
    for (unsigned n = 0; n < words_per_segment; ++n) {
      if (s.written >> n & 1) (s.writer.atomic ? detail[n].updater : detail[n].writer) = s.writer;
      if (s.read >> n & 1) detail[n].reader = s.reader;
      if (s.other_read >> n & 1) detail[n].other_reader = s.other_reader;
    }
  }

  // Lanes side by side, from the first on.
  void run_row() {
    const std::uint64_t low = a.low - r.memory.device_base(), high = a.high - r.memory.device_base();
    const auto first_lane = static_cast<unsigned>(std::countr_zero(a.mask));
    for (std::uint64_t n = low >> segment_shift; n <= (high - 1) >> segment_shift; ++n) {
      const std::uint64_t start = n << segment_shift, from = std::max(low, start), to = std::min(high, start + (1u << segment_shift));
      const auto first = static_cast<unsigned>((from - start) >> 2), last = static_cast<unsigned>((to - 1 - start) >> 2);
      const std::uint32_t words = (~0u << first) & (~0u >> (31 - last));
      locked(n, [&](Segment& s) {
        if (quick(s, words)) return;
        std::array<std::uint8_t, words_per_segment> lanes{};
        for (unsigned word = first; word <= last; ++word) lanes[word] = static_cast<std::uint8_t>(first_lane + (std::max(start + 4 * word, low) - low) / a.size);
        if (a.shape == Access::Shape::uniform) lanes.fill(static_cast<std::uint8_t>(first_lane));
        on_segment(s, words, lanes);
      });
    }
  }

  void run() {
    if (a.shape == Access::Shape::uniform || (a.shape == Access::Shape::contiguous && (a.mask & (a.mask + (a.mask & -a.mask))) == 0)) return run_row();
    // Lanes of one segment usually follow each other.
    std::uint64_t current = ~0ull;
    std::uint32_t words = 0;
    std::array<std::uint8_t, words_per_segment> lanes{};
    const auto flush = [&] {
      if (!words) return;
      locked(current, [&](Segment& s) {
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

void check_written(Warp& w, const Instruction& i, const Access& a) {
  LaunchState& launch = w.worker->launch;
  const Memory& memory = launch.memory;
  std::uint8_t* bits = memory.written();
  const bool row = a.shape != Access::Shape::scattered && (a.shape == Access::Shape::uniform || (a.mask & (a.mask + (a.mask & -a.mask))) == 0);
  const bool reads = !a.write || a.atomic;
  if (row) {
    if (!reads) return set_written(bits, memory.bit_of(a.low), a.high - a.low);
    if (all_written(bits, memory.bit_of(a.low), a.high - a.low)) return;
  }
  for (Mask m = a.mask; m; m &= m - 1) {
    const auto l = static_cast<std::uint32_t>(std::countr_zero(m));
    const std::size_t first = memory.bit_of(a.address[l]);
    if (reads && !all_written(bits, first, a.size) && !launch.faulted && !launch.seen("uninit_global", i.site)) {
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
  if (launch.options.initcheck) check_written(w, i, a);
  GlobalRaces* r = launch.races;
  if (!r) return;
  const auto block = static_cast<std::uint32_t>(w.block->number);
  // What a look sees is older than the block's next access, but perhaps not older than this check before it.
  if (i.is_volatile || r->looking[block]) r->looked[block] = r->time.load();
  r->looking[block] = i.is_volatile;
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
