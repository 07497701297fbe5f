// The families of instructions. Each file of them is compiled once per SIM_TARGET (see sources.cmake).
#pragma once

namespace sim {
class Table;
}

#define SIM_FAMILIES(target)    \
  namespace sim::target {       \
  void add_integer(Table&);     \
  void add_bits(Table&);        \
  void add_carry(Table&);       \
  void add_real(Table&);        \
  void add_approximate(Table&); \
  void add_half(Table&);        \
  void add_compare(Table&);     \
  void add_convert(Table&);     \
  void add_move(Table&);        \
  void add_memory(Table&);      \
  void add_atomic(Table&);      \
  void add_collective(Table&);  \
  void add_matrix(Table&);      \
  void add_mbarrier(Table&);    \
  }

SIM_FAMILIES(baseline)
SIM_FAMILIES(v3)
SIM_FAMILIES(v4)
