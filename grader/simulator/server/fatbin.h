// The PTX inside what nvcc leaves in an object: ELF section .nv_fatbin -> containers -> images.
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace sim {

// No PTX that we can read. Says what to change in the nvcc command.
struct FatbinError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The PTX of one container for a device of compute capability 8.0: the highest target that such a device takes, else the
// lowest above. Empty for a container without images (nvcc's device-link stub) or with machine code only.
std::string ptx_of(std::span<const std::byte> container);

// The PTX of every container of an ELF object or library, in file order, without the empty ones.
std::vector<std::string> ptx_of_elf(std::span<const std::byte> file);

}  // namespace sim
