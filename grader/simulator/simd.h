// Which builds of the instructions there are: plain, avx2 and avx512 on x86-64, plain elsewhere. The best one that the
// processor has is used; the variable GRADER_SIM_SIMD names another one, to test it or to get round a fault in it.
// All of them compute the same bits.
#pragma once

#include <string>
#include <vector>

namespace sim {

struct Simd {
  std::string used;
  std::vector<std::string> usable;  // by this processor
};

// Throws std::runtime_error if GRADER_SIM_SIMD names what this processor cannot run.
Simd simd();

// The instructions that there are, sorted, as the decoder names them: the mnemonic without what changes nothing.
std::vector<std::string> instruction_names();

}  // namespace sim
