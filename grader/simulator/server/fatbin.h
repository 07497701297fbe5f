// The device code inside what nvcc leaves in an object: .nv_fatbin and __nv_relfatbin -> containers -> images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace sim {

// No PTX that we can read. Says what to change in the nvcc command.
struct FatbinError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct DeviceCode {
  // For a device of compute capability 8.0: the highest target that such a device takes, else the lowest above. Empty
  // for a container without images or with machine code only, such as what nvcc's device link makes.
  std::string ptx;
  // Per thread of each kernel, where machine code stands beside the PTX; of several architectures the fewest.
  std::map<std::string, std::uint32_t, std::less<>> registers;
};

// The code of one container.
DeviceCode code_of(std::span<const std::byte> container);

// The code of every container of an ELF object or library, in file order, without those that have no PTX.
std::vector<DeviceCode> code_of_elf(std::span<const std::byte> file);

}  // namespace sim
