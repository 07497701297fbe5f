#include "engine/checks/coverage.h"

#include <algorithm>

namespace sim {
namespace {

// The innermost line in the kernel's own file, as what a library has inlined there says little.
const ptx::Place& own_place(const LaunchState& s, std::uint32_t pc) {
  const auto chain = s.chain(pc);
  const auto own = std::ranges::find_if(chain, [&](const auto* place) { return place->file == chain.back()->file; });
  return **own;
}

template <class T> void widen(std::int64_t& low, std::int64_t& high, const std::int64_t other_low,
                              const std::int64_t other_high) {
  low = static_cast<std::int64_t>(std::min(static_cast<T>(low), static_cast<T>(other_low)));
  high = static_cast<std::int64_t>(std::max(static_cast<T>(high), static_cast<T>(other_high)));
}

// The code that is run again and again has the same ways and comparisons.
Coverage& entry(const LaunchState& s, Coverages& coverages) {
  const auto [at, fresh] = coverages.try_emplace(std::string(s.program.kernel));
  Coverage& c = at->second;
  if (!fresh) return c;
  c.kernel = s.program.kernel;
  c.fewest_blocks = s.blocks;
  for (std::uint32_t pc = 0; pc < s.program.code.size(); ++pc) {
    const Instruction& i = s.program.code[pc];
    if (!i.guard || i.hidden) continue;
    const auto& place = own_place(s, pc);
    c.ways.push_back({.number = pc, .file = std::string(place.file), .line = place.line});
  }
  for (const auto& code : s.program.comparisons) {
    const auto& place = own_place(s, code.instruction);
    c.comparisons.push_back({.number = code.instruction,
                             .file = std::string(place.file),
                             .line = place.line,
                             .is_signed = code.is_signed,
                             .equality = code.equality});
  }
  return c;
}

void add(Comparison& c, const Compared& met) {
  if (!met.met) return;
  if (!c.below && !c.equal && !c.above) {
    c.a_low = met.a_low, c.a_high = met.a_high, c.b_low = met.b_low, c.b_high = met.b_high;
  } else if (c.is_signed) {
    widen<std::int64_t>(c.a_low, c.a_high, met.a_low, met.a_high);
    widen<std::int64_t>(c.b_low, c.b_high, met.b_low, met.b_high);
  } else {
    widen<std::uint64_t>(c.a_low, c.a_high, met.a_low, met.a_high);
    widen<std::uint64_t>(c.b_low, c.b_high, met.b_low, met.b_high);
  }
  c.below |= met.below;
  c.equal |= met.equal;
  c.above |= met.above;
}

}  // namespace

std::unique_ptr<KernelCode> observing(const KernelCode& program) {
  auto observed = std::make_unique<KernelCode>(program);
  for (std::uint32_t n = 0; n < program.comparisons.size(); ++n) {
    Instruction& i = observed->code[program.comparisons[n].instruction];
    i.run = program.comparisons[n].observe;
    i.place = n;
  }
  return observed;
}

void observe(Worker& worker) {
  const KernelCode& program = worker.launch.program;
  worker.ways.resize(program.code.size());
  worker.compared.reserve(program.comparisons.size());
  for (const auto& code : program.comparisons)
    worker.compared.push_back({.run = code.compare, .a = code.a, .b = code.b});
}

void collect_coverage(const LaunchState& s, const std::vector<std::unique_ptr<Worker>>& workers, Coverages& coverages) {
  Coverage& c = entry(s, coverages);
  c.fewest_blocks = std::min(c.fewest_blocks, s.blocks);
  c.most_blocks = std::max(c.most_blocks, s.blocks);
  c.most_across = std::max({c.most_across, std::uint64_t{s.launch.grid.y}, std::uint64_t{s.launch.grid.z}});
  if (s.program.hands_over_between_blocks())
    c.resident = c.resident ? std::min(c.resident, s.residency.most()) : s.residency.most();
  c.threads = std::max(c.threads, s.threads_per_block);
  c.shared_bytes = std::max(c.shared_bytes, std::uint64_t{s.shared_size});
  for (const auto& worker : workers) {
    for (auto& way : c.ways) {
      way.taken |= (worker->ways[way.number] & taken_way) != 0;
      way.passed |= (worker->ways[way.number] & passed_way) != 0;
    }
    for (std::size_t n = 0; n < c.comparisons.size(); ++n) add(c.comparisons[n], worker->compared[n]);
  }
}

}  // namespace sim
