#include "host_races.h"

#include <algorithm>
#include <utility>

namespace sim {
namespace {

constexpr std::size_t most_works = 1000, most_ranges = 10'000;

}  // namespace

void HostRaces::forget_what_is_over(const Timeline& timeline) {
  std::erase_if(works_, [&](const Work& work) { return timeline.host_knows(work.moment); });
}

void HostRaces::add(const Timeline& timeline, Footprint touched) {
  if (touched.reads.empty() && touched.writes.empty()) return;
  // A host that polls a flag learns from it when the rest is there.
  if (!touched.updates.empty()) return;
  forget_what_is_over(timeline);
  if (works_.size() >= most_works) works_.pop_front();
  works_.push_back({timeline.now(), std::move(touched)});
}

std::vector<HostRaces::Range> HostRaces::ranges(const Timeline& timeline) {
  forget_what_is_over(timeline);
  std::vector<Range> all;
  for (const auto& [moment, touched] : works_) {
    for (const auto& piece : touched.reads) all.push_back({piece.low, piece.high, false});
    for (const auto& piece : touched.writes) all.push_back({piece.low, piece.high, true});
    if (all.size() > most_ranges) all.resize(most_ranges);
  }
  return all;
}

void HostRaces::accessed(Report& report, const Timeline& timeline, Address address, bool writes, const Device& device,
                         Facts where) {
  forget_what_is_over(timeline);
  const auto allocation = device.find(address);
  for (const auto& [moment, touched] : works_) {
    const auto meets = [&](const std::vector<Touched>& pieces) {
      return std::ranges::find_if(pieces,
                                  [&](const Touched& piece) { return piece.low <= address && address < piece.high; });
    };
    auto piece = meets(touched.writes);
    const bool written = piece != touched.writes.end();
    if (!written) {
      piece = meets(touched.reads);
      if (piece == touched.reads.end() || !writes) continue;
    }
    Facts facts{{"does", writes ? "writes" : "reads"}, {"did", written ? "write" : "read"}, {"work", touched.kernel}};
    if (piece->line) facts.emplace_back("line_number", piece->line);
    if (allocation) {
      facts.emplace_back("byte", address - allocation->base);
      facts.emplace_back("size", allocation->size);
    }
    facts.insert(facts.end(), where.begin(), where.end());
    Finding finding{"race_host", "not_waited", touched.file.empty() ? "" : touched.kernel, touched.file, piece->line};
    // Told once for each work and what the host does with an allocation: a loop goes through all of it.
    const auto alike = [&](const Finding& known) {
      const auto same = [&](const Fact& fact) {
        return fact.name == "byte" || std::ranges::find(facts, fact) != facts.end();
      };
      return known.kind == finding.kind && known.file == finding.file && known.facts.size() == facts.size() &&
             std::ranges::all_of(known.facts, same);
    };
    if (std::ranges::any_of(report.findings, alike)) return;
    finding.facts = std::move(facts);
    return report.finding(std::move(finding));
  }
}

}  // namespace sim
