// initcheck of global memory, and races between blocks.
//
// A word is of 4 bytes here, or of as few as the kernel ever stores. Per page of 256 words it is kept what one block
// did there, until another comes; then, per segment of 32 words, two blocks that wrote it and some blocks that read it,
// each with its words; when that does not tell what happened to each word, records are kept per word. Nothing orders
// blocks of a kernel without fences. In others each record tells which thread did it and at which clock of its block,
// and two accesses are ordered by causality.h. Of what a block has only read, a strong store and a strong read that
// comes later are enough: see conflicts_with_reader().
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "engine/checks/checks.h"
#include "engine/checks/races.h"
#include "engine/hooks.h"

namespace sim {
namespace {

constexpr unsigned words_per_segment = 32, segments_per_page = 8;
// log2 of the bytes of a segment, and of a page.
constexpr unsigned segment_shift(unsigned word_shift) { return word_shift + 5; }
constexpr unsigned page_shift(unsigned word_shift) { return word_shift + 8; }
constexpr std::size_t details_at_once = 64, most_exact_details = 1 << 16;

// Which lane of a warp has touched which words of a record.
enum Lanes : std::uint32_t {
  // 0 to 4: each lane 1, 2, 4, 8, or 16 words; the thread is that of a segment's first word if the row began there.
  any_lane = 6,  // not kept, or all of them the same
  single_lane = 7  // the thread alone
};
struct Touch {
  std::uint32_t block = 0;  // number + 1; 0: none
  std::uint32_t stamp = 0;  // the block's clock and a thread; 0 in kernels whose blocks hand over nothing
  std::uint32_t site : 23 = 0, atomic : 1 = 0, only_volatile : 1 = 0, narrow : 1 = 0;
  std::uint32_t log_size : 3 = 0, lanes : 3 = 0;

  std::uint32_t clock() const { return stamp >> SharedRaces::thread_bits; }
  std::uint32_t thread() const { return stamp & ((1u << SharedRaces::thread_bits) - 1); }
  // That of one word of a segment.
  Touch of(unsigned word) const {
    Touch touch = *this;
    if (lanes >= any_lane) return touch;
    constexpr std::uint32_t threads = 1u << SharedRaces::thread_bits;
    touch.stamp = (stamp & ~(threads - 1)) | ((thread() + (word >> lanes)) & (threads - 1));
    touch.lanes = single_lane;
    return touch;
  }
  bool alike(const Touch& t) const {
    return atomic == t.atomic && only_volatile == t.only_volatile && narrow == t.narrow && log_size == t.log_size &&
           stamp == t.stamp && lanes == t.lanes;
  }
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
  std::array<Record, 2> writers;  // each of another block, and of other words
  std::array<Record, 5> readers;  // each of another block
};
static_assert(sizeof(Segment) == 128);

// What blocks did to the segments of a page that each has alone. Most blocks have their rows to themselves, and what is
// kept of them here is a seventh of their bytes, in segments as many bytes again: a cache holds the one and not the
// other.
struct alignas(16) Page {
  struct Part {
    std::uint32_t read = 0, written = 0;  // words of a segment
    std::uint16_t read_site = 0, write_site = 0;
    std::uint32_t block = 0;
  };
  std::atomic_flag busy;
  std::atomic<bool> shared;  // the segments hold everything
  std::uint8_t used;  // parts that hold something
  std::atomic<std::uint32_t> launch;
  std::uint32_t block;  // or several_blocks
  union {
    std::array<Part, segments_per_page> parts;
    // If the segments hold everything: of each, words whose next reader has nothing to add.
    std::array<std::uint32_t, segments_per_page> read_twice;
  };
};
static_assert(sizeof(Page) == 144);
constexpr std::uint32_t several_blocks = ~0u, last_site_of_a_part = 0xffff;

// Zeroed memory of which only what is touched takes room.
template <class T> class Reserved {
 public:
  Reserved() = default;
  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;
  ~Reserved() { release(); }
  void resize(std::size_t count) {  // forgets what was there
    release();
    void* at =
        mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    all_ = {static_cast<T*>(at), count};
  }
  std::size_t size() const { return all_.size(); }
  T* data() const { return all_.data(); }
  T& operator[](std::size_t n) const { return all_[n]; }

 private:
  void release() {
    if (all_.data()) munmap(all_.data(), all_.size_bytes());
    all_ = {};
  }
  std::span<T> all_;
};

}  // namespace

struct GlobalRaces {
  const Memory& memory;
  Reserved<Segment> segments;
  Reserved<Page> pages;
  unsigned word_shift = 2;  // log2 of the bytes of a word in this launch
  std::uint32_t launch = 0;
  const KernelCode* program = nullptr;
  bool threads = false;
  bool hands_over = false;  // blocks may order what they do: it matters who has done it, and when
  Locations locations;
  std::atomic<std::uint32_t> time{1};
  std::vector<std::atomic<bool>> worn_out;  // per block: its clock has begun anew
  std::mutex mutex;  // of what follows
  // What each block has done for others to see.
  struct Event {
    std::uint32_t clock, time, site;
    std::uint16_t warp;
    enum : std::uint8_t { fence, store, update } kind;
    bool exchanges, narrow, sequential;
  };
  std::vector<std::vector<Event>> events;
  // Of each location that strong writes have changed: what it held before the last one, see lagging().
  struct Version {
    std::uint64_t older = 0;
    std::uint32_t size = 0, block = 0, thread = 0, clock = 0;
    bool stored = false;  // whatever was there: an atomic that comes before it loses what it writes
    struct Late {
      std::uint64_t block;
      unsigned reads;  // that may still bring the old value
    };
    std::vector<Late> late{};  // one of each block that has read it
    struct Reader {
      std::uint64_t block;
      std::uint32_t thread, clock;
    };
    std::vector<Reader> readers{};  // of the new value, one of each block
  };
  std::unordered_map<Address, Version> versions;
  bool lags = false;  // whether strong reads may bring what is older
  std::vector<std::uint64_t> touched;  // pages
  std::deque<std::array<Detail, details_at_once>> details;  // kept from launch to launch
  std::atomic<std::size_t> details_in_use = 0;

  explicit GlobalRaces(const Memory& m) : memory(m) {}
};

GlobalRaces* make_global_races(const Memory& memory) { return new GlobalRaces(memory); }
void destroy_global_races(GlobalRaces* races) { delete races; }

void begin_launch(GlobalRaces& r, const LaunchState& launch) {
  ++r.launch;
  r.threads = launch.options.threads > 1;
  r.hands_over = launch.program.hands_over_between_blocks();
  r.time = 1;
  r.details_in_use = 0;
  r.touched.clear();
  r.program = &launch.program;
  r.word_shift = static_cast<unsigned>(std::countr_zero(launch.program.global_granule));
  const std::size_t segments = (r.memory.device_size() >> segment_shift(r.word_shift)) + segments_per_page;
  if (r.segments.size() < segments) {
    r.segments.resize(segments);
    r.pages.resize(segments / segments_per_page);
  }
  r.locations.list.clear();
  r.versions.clear();
  r.lags = (r.hands_over || launch.program.looks_first) && !r.threads && launch.options.order == Order::reversed;
  r.worn_out = std::vector<std::atomic<bool>>(r.hands_over ? launch.blocks : 0);
  r.events.clear();
  r.events.resize(r.hands_over ? launch.blocks : 0);
}

Locations& locations(GlobalRaces& r) { return r.locations; }

namespace {

void note_event(GlobalRaces& r, const Warp& w, const Instruction& i, decltype(GlobalRaces::Event::kind) kind,
                bool exchanges) {
  if (!r.hands_over) return;
  const std::uint32_t time = ++r.time;
  const std::lock_guard lock(r.mutex);
  r.events[w.block->number].push_back({.clock = w.block->races->clock,
                                       .time = time,
                                       .site = i.site,
                                       .warp = static_cast<std::uint16_t>(w.number),
                                       .kind = kind,
                                       .exchanges = exchanges,
                                       .narrow = i.of_block,
                                       .sequential = i.sequential});
}

// Before an access of a kernel whose blocks may order what they do: when this block has looked at what others publish.
[[gnu::noinline]] void note_order(GlobalRaces& r, Warp& w, const Instruction& i, const Access& a) {
  Block& block = *w.block;
  // What a look sees is older than the block's next access, but perhaps not older than this check before it.
  if (i.is_volatile || block.looking) block.looked = r.time.load();
  block.looking = i.is_volatile;
  const bool hears = i.is_volatile && (!a.write || a.atomic);
  if (hears || block.hearing) block.heard = r.time.load();
  block.hearing = hears;
  if (block.races->unsure >> w.number & 1) look_again(w);
  if (block.races->worn_out) r.worn_out[block.number] = true;
  for (Mask m = hears && i.strong && !i.of_block ? a.mask : 0; m; m &= m - 1) {
    block.looks[a.address[std::countr_zero(m)]] = r.time;
    if (a.shape == Access::Shape::uniform) break;
  }
  if (hears) block.look_site = i.site;
}

}  // namespace

void fence_global(Warp& w, const Instruction& i) {
  if (GlobalRaces* r = w.worker->launch.races) note_event(*r, w, i, GlobalRaces::Event::fence, !i.of_block);
}

bool silent(const Access& a, unsigned lane) {
  if (a.atomic || !a.write) return false;
  const auto* memory = reinterpret_cast<const std::byte*>(a.address[lane]);
  for (std::uint32_t n = 0; n < a.size / a.element; ++n) {
    if (std::memcmp(memory + n * a.element, a.value[n] + lane * a.element, a.element) != 0) return false;
  }
  return true;
}

bool store_alike(const Access& a, unsigned lane, unsigned other) {
  for (std::uint32_t n = 0; n < a.size / a.element; ++n) {
    if (std::memcmp(a.value[n] + lane * a.element, a.value[n] + other * a.element, a.element) != 0) return false;
  }
  return true;
}

Place accessing(const Warp& w, const Instruction& i, const Access& a, unsigned lane) {
  return w.worker->launch.at(i.site, *w.block, w.number, lane, a.write ? "writes" : "reads", a.size);
}
Facts target(const Warp& w, const Access& a, unsigned lane) {
  const Memory& memory = w.worker->launch.memory;
  const auto found = memory.find(a.address[lane]);
  if (!found) return {};
  Facts facts{{"byte", a.address[lane] - found->base}, {"size", found->size}};
  if (std::string name = memory.name(found->base); !name.empty()) facts.emplace_back("array", std::move(name));
  return facts;
}

namespace {

template <unsigned word_shift> struct Checker {
  static constexpr unsigned segment_shift = sim::segment_shift(word_shift), page_shift = sim::page_shift(word_shift);
  static constexpr std::uint32_t word_bytes = 1u << word_shift;
  Warp& w;
  const Instruction& i;
  const Access& a;
  GlobalRaces& r;
  Touch me;

  // "Causality Order", see causality.h. A strong read behind another needs no fence between: volatile reads stay in the
  // order of the program, and the CUDA C++ Programming Guide shows the last block of a sum so (section "Memory Fence
  // Functions").
  bool precedes(const Touch& other, unsigned lane) const {
    if (!r.hands_over || !w.block->races->views_used) return false;
    const View& view = view_of(*w.block->races, w.number, lane);
    return covers(view.known, other) || (i.strong && !a.write && covers(view.awaited[between_blocks], other));
  }
  static bool covers(const Past& past, const Touch& other) {
    const Clocks* clocks = past.of(other.block - 1);
    if (!clocks) return false;
    return other.lanes == single_lane ? clocks->covers(other.thread(), other.clock())
                                      : clocks->covers_some_lane(other.thread() / lane_count, other.clock());
  }
  // "Morally strong operations": both strong, each with a scope that includes the other thread, and they overlap
  // completely, which they do as they are aligned and of one size.
  bool morally_strong(const Touch& other) const {
    return other.atomic && me.atomic && !other.narrow && !me.narrow && other.log_size == me.log_size;
  }
  // The first thing that its block has done of this kind since.
  template <class F> const GlobalRaces::Event* first_since(const Touch& other, F counts) const {
    const auto& events = r.events[other.block - 1];
    auto event = std::ranges::lower_bound(events, other.clock(), {}, &GlobalRaces::Event::clock);
    event = std::find_if(event, events.end(), counts);
    return event == events.end() ? nullptr : &*event;
  }
  // Whether this block has looked at what others publish since the other has done such a thing.
  template <class F> bool looked_since(const Touch& other, F counts) const {
    if (!r.hands_over) return false;
    const std::lock_guard lock(r.mutex);
    const auto* event = first_since(other, counts);
    return event && w.block->looked >= event->time;
  }
  // What a strong read has observed precedes what its thread does next.
  bool observed(const Touch& other, unsigned lane) const {
    if (!r.hands_over || !other.atomic || other.narrow || me.atomic) return false;
    const auto look = w.block->looks.find(a.address[lane]);
    if (look == w.block->looks.end()) return false;
    const std::lock_guard lock(r.mutex);
    const auto* event = first_since(other, [&](const auto& e) { return e.site == other.site; });
    return event && (r.threads || look->second >= event->time);
  }
  bool conflicts(const Touch& other, unsigned lane) const {
    if (other.block == 0 || other.block == me.block || morally_strong(other) || precedes(other, lane) ||
        observed(other, lane))
      return false;
    if (r.hands_over && (r.worn_out[other.block - 1] || w.block->races->worn_out)) return false;
    return !silent(a, lane);
  }
  // What a block has read may be overwritten by who hears of it without fences: the value that is told, or the place
  // that is written, depends on what was read, and a GPU keeps that in order. CUB's scans tell so how much they have
  // taken in.
  bool conflicts_with_reader(const Touch& reader, unsigned lane) const {
    return conflicts(reader, lane) && !looked_since(reader, [](const auto& e) {
             return e.kind == GlobalRaces::Event::store || (e.kind == GlobalRaces::Event::fence && !e.narrow);
           });
  }
  // Volatile stores of two blocks. Who has read something volatile since may have waited for the other, but to compute
  // the new value from the old one takes a lock.
  bool update_lost(const Touch& other, unsigned lane) const {
    if (!a.write || !me.only_volatile || !other.only_volatile || other.block == 0 || other.block == me.block)
      return false;
    if (i.revises ? looked_since(other, [](const auto& e) { return e.exchanges; }) : heard_of(other)) return false;
    return !silent(a, lane);
  }
  bool heard_of(const Touch& other) const {
    const std::lock_guard lock(r.mutex);
    const auto* event = first_since(other, [](const auto&) { return true; });
    return event && w.block->heard >= event->time;
  }

  void report_stale(std::uint32_t written, unsigned lane) const {
    LaunchState& launch = w.worker->launch;
    if (launch.faulted || launch.seen("stale_read", i.site)) return;
    launch.report("stale_read", "written_before", i.site, {accessing(w, i, a, lane), launch.at(written)},
                  target(w, a, lane));
  }
  // Of a read of words, of which some may have been written.
  void check_stale(std::uint64_t segment, std::uint32_t words, std::uint32_t written) const {
    if (!i.read_only || words == 0) return;
    const Address word = r.memory.device_base() + (segment << segment_shift) +
                         word_bytes * static_cast<unsigned>(std::countr_zero(words));
    Mask m = a.mask;
    while (word - a.address[std::countr_zero(m)] / word_bytes * word_bytes >= std::max(a.size, word_bytes)) m &= m - 1;
    report_stale(written, static_cast<unsigned>(std::countr_zero(m)));
  }
  // What keeps the two from being ordered: a fence or a scope, and on which side, with the lines of those.
  struct Lack {
    const char* reason = "any_order";
    Facts facts{};
  };
  Lack missing(const Touch& other, unsigned lane) const {
    const auto line = [&](const char* name, std::uint32_t site) {
      return Fact{name, w.worker->launch.place(site).line};
    };
    const SharedRaces& within = *w.block->races;
    if (in_unfenced_lock(within, w.number)) return {"unfenced_lock", {line("lock", within.locks[w.number].site)}};
    if (!r.hands_over) return {};
    using Event = GlobalRaces::Event;
    const std::lock_guard lock(r.mutex);
    if (covers(view_of(*w.block->races, w.number, lane).awaited[between_blocks], other)) {
      const auto& mine = r.events[me.block - 1];
      const auto fence =
          std::find_if(mine.rbegin(), mine.rend(), [](const Event& e) { return e.kind == Event::fence; });
      const Fact look = line("look", w.block->look_site);
      if (fence == mine.rend()) return {"no_fence_behind_look", {look}};
      if (fence->narrow) return {"narrow_fence", {line("fence", fence->site)}};
      return {"fence_before_look", {line("fence", fence->site), look}};
    }
    const auto& events = r.events[other.block - 1];
    const auto first = std::ranges::lower_bound(events, other.clock(), {}, &Event::clock);
    const auto signal = std::find_if(first, events.end(),
                                     [&](const Event& e) { return e.kind != Event::fence && e.site != other.site; });
    if (signal == events.end()) return {};
    const Fact flag = line("flag", signal->site);
    if (signal->narrow) return {"narrow_flag", {flag}};
    const auto is_fence = [](const Event& e) { return e.kind == Event::fence; };
    const auto wide = [](const Event& e) { return e.kind == Event::fence && !e.narrow; };
    if (const auto fence = std::find_if(first, signal, wide); fence != signal)
      return {"fence_of_one_thread", {line("fence", fence->site)}};
    if (const auto fence = std::find_if(first, signal, is_fence); fence != signal)
      return {"narrow_fence", {line("fence", fence->site)}};
    const auto next = std::find_if(signal + 1, events.end(), [&](const Event& e) { return e.warp == signal->warp; });
    if (next != events.end() && wide(*next)) return {"fence_behind_flag", {line("fence", next->site), flag}};
    return {"no_fence_before_flag", {flag}};
  }
  void report(const Touch& other, bool other_writes, unsigned lane) const {
    LaunchState& launch = w.worker->launch;
    const bool for_all = launch.program.of_triton;  // programs are what its authors think of
    const auto& at = launch.place(i.site);
    if (launch.faulted ||
        (for_all ? launch.findings.has_between_blocks("race_global", launch.program.kernel, at.file, at.line)
                 : launch.seen("race_global", i.site)))
      return;
    const auto n = other.block - 1;
    const Dim3 g = launch.launch.grid;
    Place there = launch.at(other.site);
    there.block = Dim3{n % g.x, n / g.x % g.y, n / g.x / g.y};
    there.does = other_writes ? "writes" : "reads";
    auto [reason, facts] = missing(other, lane);
    if (me.only_volatile && other.only_volatile) facts.emplace_back("volatile", 1);
    auto finding = launch.finding("race_global", reason, i.site, {accessing(w, i, a, lane), std::move(there)},
                                  both(target(w, a, lane), std::move(facts)));
    for_all ? launch.findings.add_between_blocks(std::move(finding)) : launch.findings.add(std::move(finding));
  }

  void on_word(Word& word, unsigned lane, const Touch& touch) {
    if (conflicts(word.writer, lane)) {
      report(word.writer, true, lane);
    } else if (conflicts(word.updater, lane) || update_lost(word.updater, lane)) {
      report(word.updater, true, lane);
    } else if (const Touch& written = word.writer.block ? word.writer : word.updater; i.read_only && written.block) {
      report_stale(written.site, lane);
    }
    if (a.write) {
      for (const Touch& reader : {word.reader, word.other_reader}) {
        if (!conflicts_with_reader(reader, lane)) continue;
        report(reader, false, lane);
        break;
      }
      (me.atomic ? word.updater : word.writer) = touch;
    } else {
      if (word.reader.block != me.block) word.other_reader = word.reader;
      word.reader = touch;
    }
  }

  // One record has one stamp and one kind of access for all its words: it may take another access only if nothing that
  // it says of its words becomes wrong.
  bool absorbs(const Touch& record, std::uint32_t recorded, std::uint32_t words) const {
    return record.alike(me) || (recorded & ~words) == 0;
  }
  bool extend(Record& record, std::uint32_t words) const {
    if (!absorbs(record.touch, record.words, words)) return false;
    record.touch = me;
    record.words |= words;
    return true;
  }
  static std::span<Record> readers(Segment& s) {
    return {s.readers.data(), s.reader_count.load(std::memory_order_acquire)};
  }
  // Words that have two readers, apart from this one: that suffices, as every writer is another block than one of them.
  std::uint32_t read_twice(Segment& s, const Record* apart = nullptr) const {
    std::uint32_t once = 0, twice = 0;
    for (const Record& record : readers(s)) {
      if (&record == apart || record.touch.atomic) continue;
      twice |= once & record.words;
      once |= record.words;
    }
    return twice;
  }
  // The same where it matters who has read. A reader that is forgotten can only hide a race.
  void remember_reader(Segment& s, std::uint32_t words) const {
    const auto known = readers(s);
    Record* mine = nullptr;
    for (Record& record : known) {
      if (record.touch.block != me.block) continue;
      if (extend(record, words)) return;
      mine = &record;
    }
    if (known.size() < s.readers.size()) {
      s.readers[known.size()] = {me, words};
      s.reader_count.store(static_cast<std::uint8_t>(known.size() + 1), std::memory_order_release);
    } else {
      *(mine ? mine : &s.readers[me.block % s.readers.size()]) = {me, words};
    }
  }
  bool read_quickly(Segment& s, std::uint32_t words) const {
    if (r.hands_over) {
      remember_reader(s, words);
      return true;
    }
    const auto known = readers(s);
    for (Record& record : known) {
      if (record.touch.block == me.block) return extend(record, words);
    }
    if (known.size() > 1 && (words & ~read_twice(s)) == 0) return true;
    if (known.size() == s.readers.size()) {
      const auto needless = [&](const Record& record) { return (record.words & ~read_twice(s, &record)) == 0; };
      const auto found = r.threads ? known.end() : std::ranges::find_if(known, needless);
      if (found == known.end()) return false;
      *found = {me, words};
      return true;
    }
    s.readers[known.size()] = {me, words};
    s.reader_count.store(static_cast<std::uint8_t>(known.size() + 1), std::memory_order_release);
    return true;
  }
  // Whether a read says nothing new, asked without the lock: all blocks read the same weights, and would wait for each
  // other at every one. A writer that comes between finds the readers that stand here.
  bool known(Segment& s, std::uint32_t words) const {
    if (r.hands_over || s.launch.load(std::memory_order_acquire) != r.launch ||
        s.detail.load(std::memory_order_acquire) || s.writers[0].touch.block)
      return false;
    for (const Record& record : readers(s)) {
      if (record.touch.block != me.block) continue;
      return record.touch.atomic == me.atomic && (words & ~record.words) == 0;
    }
    return (words & ~read_twice(s)) == 0;
  }
  void begin(Segment& s) const {
    if (s.launch.load(std::memory_order_relaxed) == r.launch) return;
    s.writers = {};
    s.reader_count.store(0, std::memory_order_relaxed);
    s.detail.store(nullptr, std::memory_order_relaxed);
    s.launch.store(r.launch, std::memory_order_release);
  }
  // Where it matters who has written, both records may be this block's.
  bool write_exactly(Segment& s, std::uint32_t words) const {
    const auto known = readers(s);
    if (std::ranges::any_of(
            known, [&](const Record& record) { return record.touch.block != me.block && (record.words & words); }))
      return false;
    Record* free = nullptr;
    for (Record& record : s.writers) {
      if (record.touch.block == 0 || (record.touch.block == me.block && absorbs(record.touch, record.words, words))) {
        if (!free || free->touch.block == 0) free = &record;
      } else if (record.touch.block == me.block && (record.words & words)) {
        return false;
      }
    }
    if (!free || (me.atomic && free->touch.block && !free->touch.atomic)) return false;
    if (free->touch.block == 0) free->words = 0;
    free->touch = me;
    free->words |= words;
    return true;
  }
  // The common case: of others, nobody at these words, or only readers, and this is a read too.
  bool quick(Segment& s, std::uint32_t words) const {
    begin(s);
    if (s.detail.load(std::memory_order_relaxed)) return false;
    const auto by_another = [&](const Record& record) {
      return record.touch.block != me.block && (record.words & words);
    };
    if (std::ranges::any_of(s.writers, by_another)) return false;
    Record* writer = nullptr;  // this block's, or one for it
    for (Record& record : s.writers) {
      if (record.touch.block == me.block || (record.touch.block == 0 && !writer)) writer = &record;
    }
    if (r.hands_over && a.write) return write_exactly(s, words);
    if (!a.write) {
      if (writer)
        check_stale(static_cast<std::uint64_t>(&s - r.segments.data()), writer->words & words, writer->touch.site);
      return read_quickly(s, words);
    }
    if (!writer || std::ranges::any_of(readers(s), by_another)) return false;
    const bool plain_write_lost = me.atomic && !writer->touch.atomic && (writer->words & words);
    return !plain_write_lost && extend(*writer, words);
  }
  // This access of one lane.
  Touch exact(unsigned lane) const {
    Touch touch = me;
    if (!r.hands_over || a.shape == Access::Shape::uniform) return touch;
    touch.stamp = stamp_of(lane);
    touch.lanes = single_lane;
    return touch;
  }
  std::uint32_t stamp_of(unsigned lane) const {
    return w.block->races->clock << SharedRaces::thread_bits | (w.number * lane_count + lane);
  }
  // Notes who touches which words of a segment that begins `bytes` behind that of lane `first`.
  void set_lanes(unsigned first, std::int64_t bytes) {
    if (!r.hands_over) return;
    const auto log_words = static_cast<unsigned>(std::countr_zero(a.size)) - word_shift;
    me.lanes = any_lane;
    me.stamp = stamp_of(first);
    if ((a.mask & (a.mask - 1)) == 0 || (a.shape == Access::Shape::uniform && !a.write)) {
      me.lanes = single_lane;
      me.stamp = stamp_of(lane_count - 1 - static_cast<unsigned>(std::countl_zero(a.mask)));
    } else if (a.shape != Access::Shape::uniform && a.size >= word_bytes) {
      constexpr std::uint32_t threads = 1u << SharedRaces::thread_bits;
      me.lanes = log_words;
      const auto thread = static_cast<std::int64_t>(me.stamp) + bytes / static_cast<std::int64_t>(a.size);
      me.stamp = (me.stamp & ~(threads - 1)) | (static_cast<std::uint32_t>(thread) & (threads - 1));
    }
  }
  void on_segment(Segment& s, std::uint32_t words, const std::array<std::uint8_t, words_per_segment>& lanes) {
    if (!s.detail.load(std::memory_order_relaxed)) split(s);
    Detail& detail = *s.detail.load(std::memory_order_relaxed);
    for (std::uint32_t m = words; m; m &= m - 1) {
      const auto n = static_cast<unsigned>(std::countr_zero(m));
      on_word(detail[n], lanes[n], exact(lanes[n]));
    }
  }
  // f(), with nobody else at what `busy` guards. If it says that the access to bytes [low, high) is noted, who finds
  // that finds the values, too.
  template <class F> bool locked(std::atomic_flag& busy, std::uint64_t low, std::uint64_t high, F f) const {
    while (r.threads && busy.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
    const bool noted = f();  // in one place, so that it is inlined
    if (r.threads) {
      if (noted && a.write && !a.atomic) store(low, high);
      busy.clear(std::memory_order_release);
    }
    return noted;
  }
  // f(segment n), alone with it; not called if it could only find what is known already.
  template <class F> void with_segment(std::uint64_t n, std::uint32_t words, F f) const {
    Segment& s = r.segments[n];
    if (r.threads && !a.write && known(s, words)) return;
    locked(s.busy, n << segment_shift, (n + 1) << segment_shift, [&] {
      f(s);
      return true;
    });
    if (a.write && !r.threads) read_twice_in_page(n) = 0;
  }
  std::uint32_t& read_twice_in_page(std::uint64_t n) const {
    return r.pages[n / segments_per_page].read_twice[n % segments_per_page];
  }
  // For a table that all blocks look up, and one thread that runs them: whether a read of these words says nothing new.
  bool known_of_page(std::uint64_t n, std::uint32_t words) const {
    return !r.threads && !r.hands_over && !a.write && (words & ~read_twice_in_page(n)) == 0;
  }
  void learn_of_page(std::uint64_t n, std::uint32_t words) const {
    if (r.threads || r.hands_over || a.write) return;
    Segment& s = r.segments[n];
    std::uint32_t& twice = read_twice_in_page(n);
    if (const Detail* detail = s.detail.load(std::memory_order_relaxed)) {
      const auto lasting = [&](const Touch& t) { return t.block && !t.atomic; };
      for (std::uint32_t m = words & ~twice; m; m &= m - 1) {
        const Word& word = (*detail)[static_cast<unsigned>(std::countr_zero(m))];
        if (!word.writer.block && !word.updater.block && lasting(word.reader) && lasting(word.other_reader))
          twice |= m & -m;
      }
    } else if (!s.writers[0].touch.block) {
      twice = read_twice(s);
    }
  }
  // Whether nobody but this block has touched these segments, of the page with bytes [low, high), which then has noted
  // the access by mark(part).
  template <class F> bool alone(std::uint64_t low, std::uint64_t high, F mark) const {
    Page& page = r.pages[low >> page_shift];
    if (page.launch.load(std::memory_order_acquire) == r.launch && page.shared.load(std::memory_order_acquire))
      return false;
    return locked(page.busy, low, high, [&] {
      const std::uint64_t first = low >> segment_shift, last = (high - 1) >> segment_shift;
      if (!open(page, low >> page_shift)) return false;
      if (page.block == several_blocks) {
        for (std::uint64_t n = first; n <= last; ++n) {
          const auto at = n % segments_per_page;
          if ((page.used >> at & 1) == 0 || page.parts[at].block == me.block || mark(n) == 0) continue;
          share(page, low >> page_shift);
          return false;
        }
      }
      const auto words_of = a.write ? &Page::Part::written : &Page::Part::read;
      const auto site_of = a.write ? &Page::Part::write_site : &Page::Part::read_site;
      for (std::uint64_t n = first; n <= last; ++n) {
        const std::uint32_t words = mark(n);
        if (words == 0) continue;
        Page::Part& part = page.parts[n % segments_per_page];
        const auto bit = static_cast<std::uint8_t>(1u << n % segments_per_page);
        if (!(page.used & bit)) part = {};
        page.used |= bit;
        if (i.read_only) check_stale(n, part.written & words, part.write_site);
        part.*words_of |= words;
        part.*site_of = static_cast<std::uint16_t>(me.site);
        part.block = me.block;
      }
      return true;
    });
  }
  // Whether page n has room for this access; if it has not, or if what it would hold can no longer be told in so few
  // words, the segments take over.
  bool open(Page& page, std::uint64_t n) const {
    if (page.launch.load(std::memory_order_relaxed) != r.launch) {
      page.block = me.block;
      page.used = 0;
      page.shared.store(false, std::memory_order_relaxed);
      page.launch.store(r.launch, std::memory_order_release);
      const std::lock_guard lock(r.mutex);
      r.touched.push_back(n);
    }
    if (page.shared.load(std::memory_order_relaxed)) return false;
    if (r.hands_over || me.atomic || me.site > last_site_of_a_part) {
      share(page, n);
      return false;
    }
    if (page.block != me.block) page.block = several_blocks;
    return true;
  }
  // Writes what blocks did to this page into its segments.
  void share(Page& page, std::uint64_t number) const {
    const std::uint64_t first = number * segments_per_page;
    const auto touch = [&](const Page::Part& part, std::uint32_t site) {
      Touch made;
      made.block = part.block;
      made.site = site;
      return made;
    };
    for (std::uint32_t m = page.used; m; m &= m - 1) {
      const auto n = static_cast<unsigned>(std::countr_zero(m));
      const Page::Part& part = page.parts[n];
      Segment& s = r.segments[first + n];
      s.writers = {};
      if (part.written) s.writers[0] = {touch(part, part.write_site), part.written};
      if (part.read) s.readers[0] = {touch(part, part.read_site), part.read};
      s.reader_count.store(part.read != 0, std::memory_order_relaxed);
      s.detail.store(nullptr, std::memory_order_relaxed);
      s.launch.store(r.launch, std::memory_order_release);
    }
    page.read_twice.fill(0);
    page.shared.store(true, std::memory_order_release);
  }
  // The instruction stores after its checks. Whoever finds its record must find the value as well, lest a harmless
  // store of the same value look like another one.
  void store(std::uint64_t low, std::uint64_t high) const {
    switch (a.element) {
      case 1: return store_elements<1>(low, high);
      case 2: return store_elements<2>(low, high);
      case 4: return store_elements<4>(low, high);
      default: return store_elements<8>(low, high);
    }
  }
  template <unsigned element> void store_elements(std::uint64_t low, std::uint64_t high) const {
    const std::uint32_t count = a.size / element;
    for (Mask m = a.mask; m; m &= m - 1) {
      const auto l = static_cast<unsigned>(std::countr_zero(m));
      const std::uint64_t at = a.address[l] - r.memory.device_base();
      if (at < low) continue;
      if (at >= high && a.shape == Access::Shape::contiguous) break;
      if (at >= high) continue;
      auto* memory = reinterpret_cast<std::byte*>(a.address[l]);
      for (std::uint32_t n = 0; n < count; ++n) std::memcpy(memory + n * element, a.value[n] + l * element, element);
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
      for (Mask m = record.words; m; m &= m - 1) {
        const auto n = static_cast<unsigned>(std::countr_zero(m));
        f((*detail)[n], record.touch.of(n));
      }
    };
    for (const Record& record : s.writers)
      each_word(record, [](Word& word, const Touch& touch) { (touch.atomic ? word.updater : word.writer) = touch; });
    for (const Record& record : readers(s)) {
      each_word(record, [](Word& word, const Touch& touch) { word.other_reader = std::exchange(word.reader, touch); });
    }
    s.detail.store(detail, std::memory_order_release);
  }

  void run_row(const Row& row) {
    const std::uint64_t low = row.low - r.memory.device_base(), high = row.high - r.memory.device_base();
    for (std::uint64_t page = low >> page_shift; page <= (high - 1) >> page_shift; ++page) {
      const std::uint64_t from = std::max(low, page << page_shift), to = std::min(high, (page + 1) << page_shift);
      const std::uint64_t first = from >> segment_shift, last = (to - 1) >> segment_shift;
      const std::uint32_t of_first = ~0u << (from >> word_shift) % words_per_segment,
                          of_last = ~0u >> (words_per_segment - 1 - ((to - 1) >> word_shift) % words_per_segment);
      const auto words = [&](std::uint64_t n) { return (n == first ? of_first : ~0u) & (n == last ? of_last : ~0u); };
      if (alone(from, to, words)) continue;
      for (std::uint64_t n = first; n <= last; ++n) on_row(row, n, words(n));
    }
  }
  void on_row(const Row& row, std::uint64_t segment, std::uint32_t words) {
    set_lanes(row.first, static_cast<std::int64_t>(r.memory.device_base() + (segment << segment_shift) - row.low));
    with_segment(segment, words, [&](Segment& s) {
      if (quick(s, words)) return;
      std::array<std::uint8_t, words_per_segment> lanes{};
      const Address start = r.memory.device_base() + (segment << segment_shift);
      for (Mask m = words; m; m &= m - 1) {
        const auto word = static_cast<unsigned>(std::countr_zero(m));
        lanes[word] =
            static_cast<std::uint8_t>(row.first + (std::max(start + word_bytes * word, row.low) - row.low) / a.size);
      }
      if (a.shape == Access::Shape::uniform) lanes.fill(static_cast<std::uint8_t>(row.first));
      on_segment(s, words, lanes);
    });
  }

  void run(const Rows& rows) {
    for (const Row& row : rows) run_row(row);
    if (rows.count) return;
    // Lanes of one page usually follow each other, in any order of its segments.
    std::array<std::uint32_t, segments_per_page> words{};
    const std::uint32_t of_a_lane = (2u << ((a.size - 1) >> word_shift)) - 1;  // aligned: no lane's are in two segments
    const auto add = [&](std::uint64_t at) {
      words[at >> segment_shift & (segments_per_page - 1)] |= of_a_lane << (at >> word_shift & (words_per_segment - 1));
    };
    const auto flush = [&](std::uint64_t page) {
      const std::uint64_t start = page * segments_per_page;
      unsigned first = 0, end = segments_per_page;
      while (words[first] == 0) ++first;
      while (words[end - 1] == 0) --end;
      const bool noted = alone((start + first) << segment_shift, (start + end) << segment_shift,
                               [&](std::uint64_t n) { return words[n % segments_per_page]; });
      for (unsigned n = first; n < end; ++n) {
        if (!noted && words[n] && !known_of_page(start + n, words[n])) {
          on_scattered(start + n, words[n]);
          learn_of_page(start + n, words[n]);
        }
      }
      words = {};
    };
    const std::uint64_t base = r.memory.device_base(), first = (a.low - base) >> page_shift;
    if (first == (a.high - 1 - base) >> page_shift) {
      // Not one after the other: neighbours mostly meet in a segment, and each would wait for the one before.
      constexpr unsigned apart = lane_count / 4;
      for (unsigned lane = 0; lane < apart && a.mask == all_lanes; ++lane) {
        for (unsigned l = lane; l < lane_count; l += apart) add(a.address[l] - base);
      }
      for (Mask m = a.mask == all_lanes ? 0 : a.mask; m; m &= m - 1) add(a.address[std::countr_zero(m)] - base);
      return flush(first);
    }
    std::uint64_t current = (a.address[std::countr_zero(a.mask)] - base) >> page_shift;
    for (Mask m = a.mask; m; m &= m - 1) {
      const std::uint64_t at = a.address[std::countr_zero(m)] - base;
      if (at >> page_shift != current) {
        flush(current);
        current = at >> page_shift;
      }
      add(at);
    }
    flush(current);
  }
  void on_scattered(std::uint64_t segment, std::uint32_t words) {
    if (r.hands_over) {
      me.stamp = stamp_of(static_cast<unsigned>(std::countr_zero(a.mask)));
      me.lanes = any_lane;
    }
    const bool exactly = r.hands_over && a.write && r.details_in_use < most_exact_details;
    with_segment(segment, words, [&](Segment& s) {
      if (exactly)
        begin(s);
      else if (quick(s, words))
        return;
      std::array<std::uint8_t, words_per_segment> lanes{};
      const std::uint64_t start = segment << segment_shift;
      for (Mask m = a.mask; m; m &= m - 1) {
        const auto l = static_cast<unsigned>(std::countr_zero(m));
        const std::uint64_t at = a.address[l] - r.memory.device_base();
        if (at >> segment_shift != segment) continue;
        for (std::uint64_t word = (at - start) >> word_shift; word <= (at + a.size - 1 - start) >> word_shift; ++word)
          lanes[word] = static_cast<std::uint8_t>(l);
      }
      on_segment(s, words, lanes);
    });
  }
};

bool whole_bytes_written(const std::uint8_t* at, std::size_t n) {
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
bool all_written(const std::uint8_t* bits, std::size_t first, std::size_t count) {
  const auto within_a_byte = [&](std::size_t from, std::size_t n) {
    const auto mask = static_cast<std::uint8_t>(((1u << n) - 1) << from % 8);
    return (bits[from / 8] & mask) == mask;
  };
  if (first % 8) {
    const std::size_t n = std::min(8 - first % 8, count);
    if (!within_a_byte(first, n)) return false;
    first += n;
    count -= n;
  }
  return whole_bytes_written(bits + first / 8, count / 8) &&
         (count % 8 == 0 || within_a_byte(first + count / 8 * 8, count % 8));
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
// Which bytes of it are missing, as bits.
std::uint32_t missing_bytes(const std::uint8_t* bits, std::size_t first, std::uint32_t size) {
  std::uint32_t missing = 0;
  for (std::uint32_t n = 0; n < size; ++n) missing |= (~(unsigned{bits[(first + n) / 8]} >> (first + n) % 8) & 1) << n;
  return missing;
}

// Bytes around a scattered read that are worth a look as a whole.
constexpr Address most_between = 1024;

void check_written(Warp& w, const Instruction& i, const Access& a, const Rows& rows) {
  LaunchState& launch = w.worker->launch;
  const Memory& memory = launch.memory;
  std::uint8_t* bits = memory.written();
  const bool reads = !a.write || (a.atomic && !i.overwrites);
  if (rows.count) {
    bool known = true;
    for (const Row& row : rows) {
      if (!reads) set_written(bits, memory.bit_of(row.low), row.high - row.low);
      known = known && (!reads || all_written(bits, memory.bit_of(row.low), row.high - row.low));
    }
    if (known) return;
  } else if (!a.write && a.high - a.low <= most_between && all_written(bits, memory.bit_of(a.low), a.high - a.low)) {
    return;
  }
  Missing missing{};
  for (Mask m = a.mask; m; m &= m - 1) {
    const auto l = static_cast<std::uint32_t>(std::countr_zero(m));
    const std::size_t first = memory.bit_of(a.address[l]);
    if (reads && !lane_written(bits, first, a.size)) missing[l] = missing_bytes(bits, first, a.size);
    if (a.write) set_written(bits, first, a.size);
  }
  tell_unwritten(w, i, a, missing, "uninit_global", [&](unsigned lane) { return target(w, a, lane); });
}

// Pieces of memory in the order of their addresses.
class Pieces {
 public:
  Pieces(const GlobalRaces& r, std::vector<Touched>& list) : races_(r), list_(list) {}
  void add(Address segment, std::uint32_t words, std::uint32_t site) {
    while (words) {
      const auto first = static_cast<unsigned>(std::countr_zero(words));
      const auto count = static_cast<unsigned>(std::countr_one(words >> first));
      const Address low = segment + (Address{first} << races_.word_shift),
                    high = low + (Address{count} << races_.word_shift);
      if (!list_.empty() && list_.back().high == low) {
        list_.back().high = high;
      } else if (list_.size() < most_pieces) {
        list_.push_back({low, high, races_.program->places[site].line});
      }
      words &= ~(count == 32 ? ~0u : ((1u << count) - 1) << first);
    }
  }

 private:
  static constexpr std::size_t most_pieces = 1 << 20;
  const GlobalRaces& races_;
  std::vector<Touched>& list_;
};

}  // namespace

void note_written(const Memory& memory, Address address, std::size_t bytes) {
  if (memory.has_shadow(address)) set_written(memory.written(), memory.bit_of(address), bytes);
}

Footprint footprint(const GlobalRaces& r) {
  Footprint all;
  if (!r.program) return all;
  all.kernel = r.program->kernel;
  all.file = r.program->places.empty() ? "" : r.program->places.front().file;
  Pieces reads(r, all.reads), writes(r, all.writes), updates(r, all.updates);
  auto pages = r.touched;
  std::ranges::sort(pages);
  for (const auto number : pages) {
    const Page& page = r.pages[number];
    for (unsigned n = 0; n < segments_per_page; ++n) {
      const Address at = r.memory.device_base() + ((number * segments_per_page + n) << segment_shift(r.word_shift));
      if (!page.shared) {
        const Page::Part& part = page.parts[n];
        if (!(page.used >> n & 1)) continue;
        reads.add(at, part.read, part.read_site);
        writes.add(at, part.written, part.write_site);
        continue;
      }
      const Segment& s = r.segments[number * segments_per_page + n];
      if (s.launch != r.launch) continue;
      if (const Detail* detail = s.detail) {
        for (unsigned w = 0; w < words_per_segment; ++w) {
          const Word& word = (*detail)[w];
          if (word.reader.block && !word.reader.atomic) reads.add(at, 1u << w, word.reader.site);
          if (word.writer.block) writes.add(at, 1u << w, word.writer.site);
          if (word.updater.block) updates.add(at, 1u << w, word.updater.site);
        }
        continue;
      }
      std::uint32_t read = 0, site = 0;
      for (unsigned k = 0; k < s.reader_count; ++k) {
        if (s.readers[k].touch.atomic) continue;
        read |= s.readers[k].words;
        site = s.readers[k].touch.site;
      }
      reads.add(at, read, site);
      // In the order of their addresses, if two blocks share the segment.
      const std::uint32_t one_by_one = s.writers[1].words ? s.writers[0].words | s.writers[1].words : 0;
      const auto add = [&](const Record& record, std::uint32_t words) {
        if (words) (record.touch.atomic ? updates : writes).add(at, words, record.touch.site);
      };
      if (!one_by_one) add(s.writers[0], s.writers[0].words);
      for (std::uint32_t m = one_by_one; m; m &= m - 1) {
        for (const Record& record : s.writers) add(record, record.words & m & -m);
      }
    }
  }
  // Of smaller loads it is only known which words they are in.
  const Address unsure =
      (Address{1} << r.word_shift) - std::min<Address>(r.program->smallest_load, Address{1} << r.word_shift);
  for (auto& piece : all.reads) {
    piece.low += unsure;
    piece.high = std::max(piece.low, piece.high - unsure);
  }
  std::erase_if(all.reads, [](const Touched& piece) { return piece.low == piece.high; });
  return all;
}

namespace {

// Behind an atomic of its own a thread needs no fence ("counted"): in the sum of the CUDA C++ Programming Guide, the
// last block reads the others' parts as volatile. Behind a plain look at a flag it does.
bool knows(const SharedRaces& races, const View& view, std::uint64_t block, std::uint32_t thread, std::uint32_t clock) {
  if (!races.views_used) return false;
  for (const Past& past : {view.known, view.counted}) {
    if (const Clocks* clocks = past.of(block); clocks && clocks->covers(thread, clock)) return true;
  }
  return false;
}

// Whether the writer's block has executed a fence after a write, and this block one after that ("Fence-SC").
bool fenced_since(const GlobalRaces& r, const GlobalRaces::Version& version, std::uint64_t block) {
  if (!r.hands_over) return false;
  const auto fence = [](const GlobalRaces::Event& e) {
    return e.kind == GlobalRaces::Event::fence && !e.narrow && e.sequential;
  };
  const auto& theirs = r.events[version.block];
  auto after = std::ranges::lower_bound(theirs, version.clock, {}, &GlobalRaces::Event::clock);
  after = std::find_if(after, theirs.end(), fence);
  const auto& own = r.events[block];
  return after != theirs.end() &&
         std::any_of(own.begin(), own.end(), [&](const auto& e) { return fence(e) && e.time > after->time; });
}

// How many reads of a block bring the old value: none, one, two, three or very many, each half as likely as the one
// before. Nothing says how long a write takes, so that who looks again a few times may look in vain.
unsigned late_reads(std::uint64_t random) {
  const auto zeros = static_cast<unsigned>(std::countl_zero(random));
  return zeros < 4 ? zeros : 1u << 10;
}

// Before strong writes: what they replace.
void note_versions(GlobalRaces& r, const Warp& w, const Instruction& i, const Access& a) {
  const SharedRaces& races = *w.block->races;
  for (Mask m = a.mask; m; m &= m - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(m));
    const Address at = a.address[l];
    for (Address other = at & -Address{8}; other < at + a.size; other += 4) {
      const auto old = r.versions.find(other);
      if (old != r.versions.end() && other + old->second.size > at) r.versions.erase(old);
    }
    if (a.size != 4 && a.size != 8) continue;
    GlobalRaces::Version& version = r.versions[at];
    version = {.size = a.size,
               .block = static_cast<std::uint32_t>(w.block->number),
               .thread = w.number * lane_count + l,
               .clock = races.clock,
               .stored = !a.atomic || i.overwrites};
    std::memcpy(&version.older, reinterpret_cast<const std::byte*>(at), a.size);
    if (a.shape == Access::Shape::uniform) break;
  }
}

}  // namespace

Mask lagging(const Warp& w, const Access& a, std::byte* values, bool updates) {
  constexpr std::size_t most_readers = 16;
  GlobalRaces* r = w.worker->launch.races;
  if (!r || !r->lags || (a.size != 4 && a.size != 8)) return 0;
  SharedRaces& races = *w.block->races;
  const std::uint64_t block = w.block->number;
  Mask lags = 0;
  for (Mask m = a.mask & ~a.outside; m;) {
    const auto l = static_cast<unsigned>(std::countr_zero(m));
    const auto at = r->versions.find(a.address[l]);
    if (at == r->versions.end()) {
      m &= m - 1;
      continue;
    }
    Mask same = 0;  // lanes of one place read the same
    for (Mask others = m; others; others &= others - 1) {
      const auto other = static_cast<unsigned>(std::countr_zero(others));
      if (a.address[other] == a.address[l]) same |= Mask{1} << other;
    }
    m &= ~same;
    GlobalRaces::Version& version = at->second;
    const View& view = view_of(races, w.number, l);
    if (version.size != a.size || version.block == block || (updates && !version.stored)) continue;
    if (updates) same &= -same;  // others would have to read what this one has left
    const auto of_block = [&](const auto& reader) { return reader.block == block; };
    auto late = std::ranges::find_if(version.late, of_block);
    if (late == version.late.end()) {
      const auto number = (a.address[l] >> 2) * 31 + version.clock * 7 + block;
      late = version.late.insert(late, {block, late_reads(number * 0x9E3779B97F4A7C15u)});
    }
    const bool newest =
        late->reads == 0 || version.readers.size() >= most_readers || (r->hands_over && r->worn_out[version.block]) ||
        races.worn_out || knows(races, view, version.block, version.thread, version.clock) ||
        fenced_since(*r, version, block) || std::ranges::any_of(version.readers, [&](const auto& reader) {
          return knows(races, view, reader.block, reader.thread, reader.clock);
        });
    late->reads = newest ? 0 : late->reads - 1;
    if (newest) {
      if (version.readers.size() < most_readers && std::ranges::none_of(version.readers, of_block))
        version.readers.push_back({block, w.number * lane_count + l, races.clock});
      continue;
    }
    for (Mask lanes = same; lanes; lanes &= lanes - 1)
      std::memcpy(values + std::size_t{static_cast<unsigned>(std::countr_zero(lanes))} * a.size, &version.older,
                  a.size);
    lags |= same;
  }
  return lags;
}

void put_before(const Warp& w, Address at, std::uint64_t value) {
  w.worker->launch.races->versions.at(at).older = value;
}

void check_global(Warp& w, const Instruction& i, const Access& a, const Rows& rows) {
  LaunchState& launch = w.worker->launch;
  if (!launch.memory.has_shadow(a.low) || !launch.memory.has_shadow(a.high - 1)) return;
  GlobalRaces* r = launch.races;
  if (r) {  // needed after the map of what is written, and rarely in a cache
    const std::uint64_t segment = (a.low - launch.memory.device_base()) >> segment_shift(r->word_shift);
    const Page& page = r->pages[segment / segments_per_page];
    __builtin_prefetch(&page, 1);
    __builtin_prefetch(&page.parts[segment % segments_per_page], 1);
    if (r->word_shift < 2)
      __builtin_prefetch(&r->segments[segment], 1);  // small values lie close together: blocks share pages
  }
  if (launch.options.initcheck) check_written(w, i, a, rows);
  if (!r) return;
  if (r->hands_over) note_order(*r, w, i, a);
  Touch me;
  me.block = static_cast<std::uint32_t>(w.block->number) + 1;
  me.site = i.site & 0x7fffff;
  me.atomic = a.atomic || i.is_volatile;
  me.only_volatile = i.only_volatile;
  if (me.atomic) {
    me.narrow = i.strong && i.of_block;
    const std::uint32_t size = i.packed ? a.size / 2 : a.atomic ? a.size : a.element;
    me.log_size = static_cast<std::uint32_t>(std::countr_zero(size)) & 7;
  }
  check_within_block(w, i, a, rows);  // first: the other may store already
  if (r->lags && i.strong && a.write && !i.polls) note_versions(*r, w, i, a);
  // With several workers a store takes place within its check, so that what it hands over has to be there.
  const bool early = i.strong && r->threads && a.write && !a.atomic;
  if (early) hand_over(w, i, a);
  if (r->hands_over && i.strong && a.write)
    note_event(*r, w, i, a.atomic && !i.releases ? GlobalRaces::Event::update : GlobalRaces::Event::store,
               i.releases || (a.atomic && i.may_spin));
  switch (r->word_shift) {
    case 0: Checker<0>{w, i, a, *r, me}.run(rows); break;
    case 1: Checker<1>{w, i, a, *r, me}.run(rows); break;
    default: Checker<2>{w, i, a, *r, me}.run(rows);
  }
  if (early)
    tick(*w.block->races);
  else if (i.strong)
    hand_over(w, i, a);
}

}  // namespace sim
