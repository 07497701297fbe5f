#include "stream_races.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "../protocol.h"

namespace sim {
namespace {

constexpr std::size_t most_works = 1000, most_pieces = std::size_t{1} << 22;

std::size_t pieces_of(const Footprint& f) { return f.reads.size() + f.writes.size() + f.updates.size(); }

using Pieces = std::vector<Touched>;
// The first piece from here on that does not end before this address. Mostly it is the next.
Pieces::const_iterator skip(Pieces::const_iterator from, Pieces::const_iterator end, Address low) {
  const auto before = [&](const Touched& piece) { return piece.high <= low; };
  ++from;
  return from == end || !before(*from) ? from : std::partition_point(from, end, before);
}

// The first bytes that are in both.
struct Overlap {
  Touched one, other;
};
std::optional<Overlap> meet(const Pieces& some, const Pieces& others) {
  for (auto a = some.begin(), b = others.begin(); a != some.end() && b != others.end();) {
    if (std::max(a->low, b->low) < std::min(a->high, b->high)) return Overlap{*a, *b};
    if (a->high <= b->low)
      a = skip(a, some.end(), b->low);
    else
      b = skip(b, others.end(), a->low);
  }
  return {};
}

std::string name_stream(StreamId id) {
  return id == legacy_stream ? "the default stream" : "a stream of the program's own";
}
std::string name_work(const Footprint& f, const Touched& at) {
  return at.line ? f.kernel + " (line " + std::to_string(at.line) + ")" : f.kernel;
}

}  // namespace

void StreamRaces::compare(Report& report, const Work& earlier, const Work& later) {
  const auto found = [&](const Pieces& before, const char* did, const Pieces& now, const char* does) {
    const auto overlap = meet(before, now);
    if (!overlap) return false;
    const auto& [theirs, ours] = *overlap;
    const auto bytes = std::min(theirs.high, ours.high) - std::max(theirs.low, ours.low);
    const std::string here = name_stream(later.moment.stream), there = name_stream(earlier.moment.stream);
    report.finding("racecheck", "race_stream", later.touched.kernel,
                   name_work(later.touched, ours) + " in " + here + does + std::to_string(bytes) +
                       " bytes of global memory that " + name_work(earlier.touched, theirs) + " in " +
                       (here == there ? "another stream" : there) + did +
                       ", and nothing orders the two: record an event behind the one that must come first "
                       "(cudaEventRecord), and let the other stream wait for it (cudaStreamWaitEvent)",
                   later.touched.file, ours.line);
    return true;
  };
  const Footprint &a = earlier.touched, &b = later.touched;
  found(a.writes, " writes", b.reads, " reads ") || found(a.writes, " writes", b.writes, " writes ") ||
      found(a.reads, " reads", b.writes, " writes ") || found(a.updates, " updates", b.reads, " reads ") ||
      found(a.updates, " updates", b.writes, " writes ") || found(a.reads, " reads", b.updates, " updates ") ||
      found(a.writes, " writes", b.updates, " updates ");
}

void StreamRaces::add(Report& report, const Timeline& timeline, Footprint touched) {
  Work work{timeline.now(), std::move(touched)};
  for (const auto& earlier : kept_) {
    if (earlier.moment.slot == work.moment.slot || earlier.moment.in(work.moment.past) ||
        work.moment.in(earlier.moment.past))
      continue;
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
