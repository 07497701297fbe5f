// The arguments of a kernel, copied as a launch would copy them.
#pragma once

#include <cstddef>
#include <vector>

#include "connection.h"

namespace cudart {

struct Arguments {
  std::vector<std::byte> bytes;      // of all of them, as the kernel gets them
  std::vector<std::size_t> offsets;  // of each
  std::vector<void*> pointers() {
    std::vector<void*> all;
    all.reserve(offsets.size());
    for (const auto offset : offsets) all.push_back(bytes.data() + offset);
    return all;
  }
};

// Copies what `arguments` point to. A function that is no kernel has none: its launch fails.
Arguments copied(const char* call, const void* function, void** arguments);

}  // namespace cudart
