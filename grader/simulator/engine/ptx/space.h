// State spaces of PTX.
#pragma once

#include <cstdint>

namespace sim::ptx {

enum class Space : std::uint8_t { generic, global, constant, shared, local, parameter };

}  // namespace sim::ptx
