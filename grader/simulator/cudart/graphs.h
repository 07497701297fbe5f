// What graphs keep for the copies of pageable memory in them.
#pragma once

#include <cstdint>
#include <memory>

#include "abi.h"

namespace cudart {

// What the host functions of a graph need until nothing can launch it any more.
using Kept = std::shared_ptr<void>;

// The number of the capture that a stream is in; 0 if it is in none. It asks the device only once a capture has begun.
std::uint64_t capture_of(const char* call, Stream stream);
// The graph that this capture ends with keeps `kept`, and so does each that is made of it.
void keep_in_graph(std::uint64_t capture, Kept kept);

}  // namespace cudart
