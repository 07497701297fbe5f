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

}  // namespace

void StreamRaces::compare(Report& report, const Work& earlier, const Work& later) {
  const auto found = [&](const Pieces& before, const char* did, const Pieces& now, const char* does) {
    const auto overlap = meet(before, now);
    if (!overlap) return false;
    const auto& [theirs, ours] = *overlap;
    const auto bytes = std::min(theirs.high, ours.high) - std::max(theirs.low, ours.low);
    const bool here = later.moment.stream == legacy_stream, there = earlier.moment.stream == legacy_stream;
    const char* reason = here && there ? "default_streams"
                         : here        ? "in_default"
                         : there       ? "after_default"
                                       : "own_streams";
    Facts facts{{"bytes", bytes}, {"does", does}, {"other_kernel", earlier.touched.kernel}, {"did", did}};
    if (ours.line) facts.emplace_back("line_number", ours.line);
    if (theirs.line) facts.emplace_back("other_line_number", theirs.line);
    report.finding({"race_stream", reason, later.touched.kernel, later.touched.file, ours.line, {}, std::move(facts)});
    return true;
  };
  const Footprint &a = earlier.touched, &b = later.touched;
  found(a.writes, "writes", b.reads, "reads") || found(a.writes, "writes", b.writes, "writes") ||
      found(a.reads, "reads", b.writes, "writes") || found(a.updates, "updates", b.reads, "reads") ||
      found(a.updates, "updates", b.writes, "writes") || found(a.reads, "reads", b.updates, "updates") ||
      found(a.writes, "writes", b.updates, "updates");
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
