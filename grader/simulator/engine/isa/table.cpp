#include "engine/isa/table.h"

#include "engine/isa/families.h"

namespace sim {
namespace {

#define SIM_FILL(target)            \
  [](Table& table) {                \
    target::add_integer(table);     \
    target::add_bits(table);        \
    baseline::add_carry(table);     \
    target::add_real(table);        \
    target::add_approximate(table); \
    target::add_half(table);        \
    target::add_compare(table);     \
    target::add_convert(table);     \
    target::add_move(table);        \
    target::add_memory(table);      \
    baseline::add_atomic(table);    \
    target::add_collective(table);  \
    target::add_matrix(table);      \
    baseline::add_mbarrier(table);  \
  }

Table make() {
  void (*fill)(Table&) = SIM_FILL(baseline);
#ifdef SIM_X86
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) fill = SIM_FILL(v3);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd")) {
    fill = SIM_FILL(v4);
  }
#endif
  Table table;
  fill(table);
  return table;
}

}  // namespace

const Table& instructions() {
  static const Table table = make();
  return table;
}

}  // namespace sim
