#include "stream_races.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "../protocol.h"

namespace sim {
namespace {

constexpr std::size_t most_works = 1000, most_pieces = std::size_t{1} << 22;

std::size_t pieces_of(const Footprint& f) { return f.reads.size() + f.writes.size() + f.updates.size(); }

// The first bytes that are in both.
struct Overlap {
  Touched one, other;
};
std::optional<Overlap> meet(const std::vector<Touched>& some, const std::vector<Touched>& others) {
  for (auto a = some.begin(), b = others.begin(); a != some.end() && b != others.end();) {
    if (std::max(a->low, b->low) < std::min(a->high, b->high)) return Overlap{*a, *b};
    if (a->high <= b->high) ++a; else ++b;
  }
  return {};
}

std::string name_stream(StreamId id) { return id == legacy_stream ? "the default stream" : "a stream of the program's own"; }
std::string name_work(const Footprint& f, const Touched& at) { return at.line ? f.kernel + " (line " + std::to_string(at.line) + ")" : f.kernel; }

}  // namespace

void StreamRaces::compare(Report& report, const Work& earlier, const Work& later) {
  const auto found = [&](const std::vector<Touched>& before, const char* did, const std::vector<Touched>& now, const char* does) {
    const auto overlap = meet(before, now);
    if (!overlap) return false;
    const auto bytes = std::min(overlap->one.high, overlap->other.high) - std::max(overlap->one.low, overlap->other.low);
    report.finding("racecheck", "race_stream", later.touched.kernel,
                   later.touched.kernel + " in " + name_stream(later.moment.stream) + does + std::to_string(bytes) + " bytes of global memory" +
                       (overlap->other.line ? " (line " + std::to_string(overlap->other.line) + ")" : "") + " that " + name_work(earlier.touched, overlap->one) + " in " +
                       (later.moment.stream == earlier.moment.stream ? "the same" : name_stream(earlier.moment.stream) == name_stream(later.moment.stream) ? "another stream" : name_stream(earlier.moment.stream)) + did +
                       ", and nothing orders the two: record an event behind the one that must come first (cudaEventRecord), and let the other stream wait for it (cudaStreamWaitEvent)",
                   later.touched.file, overlap->other.line);
    return true;
  };
  const Footprint &a = earlier.touched, &b = later.touched;
  found(a.writes, " writes", b.reads, " reads ") || found(a.writes, " writes", b.writes, " writes ") || found(a.reads, " reads", b.writes, " writes ") ||
      found(a.updates, " updates", b.reads, " reads ") || found(a.updates, " updates", b.writes, " writes ") || found(a.reads, " reads", b.updates, " updates ") ||
      found(a.writes, " writes", b.updates, " updates ");
}

void StreamRaces::add(Report& report, const Timeline& timeline, Footprint touched) {
  Work work{timeline.now(), std::move(touched)};
  for (const auto& earlier : kept_) {
    if (earlier.moment.slot == work.moment.slot || earlier.moment.in(work.moment.past) || work.moment.in(earlier.moment.past)) continue;
    compare(report, earlier, work);
  }
  kept_.push_back(std::move(work));
  std::erase_if(kept_, [&](const Work& known) { return timeline.comes_before_all_else(known.moment); });
  std::size_t pieces = 0;
  for (const auto& known : kept_) pieces += pieces_of(known.touched);
  while (kept_.size() > most_works || pieces > most_pieces) {
    pieces -= pieces_of(kept_.front().touched);
    kept_.pop_front();
  }
}

}  // namespace sim
