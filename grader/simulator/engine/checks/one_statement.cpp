// Races within one statement, such as `counts[i]++` of several threads: no barrier mends them.
#include <algorithm>
#include <set>

#include "engine/checks/races.h"
#include "engine/execution.h"

namespace sim {
namespace {

// Whether a store leaves what is computed from a load of the same place, as `*counter = *counter + 1` does. In PTX of a
// compiler the address of both, operand 1 behind the value, is the same register.
bool changes_what_it_reads(const KernelCode& program, std::uint32_t load, std::uint32_t store) {
  const auto &from = program.code[load], &to = program.code[store];
  if (load >= store || from.size == 0 || from.size != to.size || from.o[1] != to.o[1] || from.offset != to.offset)
    return false;
  std::set<Slot> computed{from.o[0]};
  add_computed(program, load + 1, store, computed);
  return computed.contains(to.o[0]);
}

bool is_update(const KernelCode& program, std::uint32_t store) {
  for (auto load = store; load-- > 0;) {
    if (changes_what_it_reads(program, load, store)) return true;
  }
  return false;
}

// A thread that comes to it again may be held up by a barrier on its way.
bool in_a_loop(const KernelCode& program, std::uint32_t site) {
  return std::any_of(program.code.begin() + site, program.code.end(),
                     [&](const Instruction& i) { return i.flow == Flow::branch && i.target <= site; });
}

}  // namespace

const char* mistake_of_one_statement(const KernelCode& program, std::uint32_t site, bool writes, std::uint32_t other,
                                     bool other_writes) {
  if (program.of_triton) return nullptr;  // whose programs have other words for it
  if (writes && other_writes) {
    if (site != other) return nullptr;
    if (is_update(program, site)) return "update";
    return in_a_loop(program, site) ? nullptr : "one_statement";
  }
  return changes_what_it_reads(program, writes ? other : site, writes ? site : other) ? "update" : nullptr;
}

}  // namespace sim
