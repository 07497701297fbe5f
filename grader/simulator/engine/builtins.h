// Reading a thread's memory for the functions that the device library provides.
#pragma once

#include <string>

#include "engine/execution.h"

namespace sim {

// Copies from a generic address as one lane sees it. False if it points nowhere.
bool read_generic(const Warp&, std::uint32_t lane, Address, void* to, std::size_t bytes);
bool read_string(const Warp&, std::uint32_t lane, Address, std::string& text);

// printf's conversion of one lane's argument block.
std::string format(const Warp&, std::uint32_t lane, Address text, Address arguments);

}  // namespace sim
