// Stream handles as the server knows them.
#pragma once

#include "abi.h"
#include "connection.h"

namespace cudart {

// Null and the legacy handle mean the legacy default stream; the per-thread handle a stream that each thread has.
std::uint64_t stream_id(Stream);

// The stream of a call compiled with --default-stream per-thread.
inline Stream per_thread(Stream stream) {
  return stream == nullptr ? reinterpret_cast<Stream>(sim::per_thread_stream) : stream;
}

}  // namespace cudart
