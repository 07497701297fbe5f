// The client's end of the simulator: questions to the device's process, and the errors of this one's threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "../device.h"
#include "../errors.h"
#include "../protocol.h"

#define CUDART_API extern "C" __attribute__((visibility("default")))

namespace cudart {

using Error = std::uint32_t;  // cudaError_t

class Question : public sim::Writer {
 public:
  Question(sim::Ask what, const char* call) : Writer(static_cast<std::uint32_t>(what)), call(call) { text(call); }
  const char* call;
};

struct Answer {
  Error code;
  std::vector<std::byte> content;
  sim::Reader reader() const { return sim::Reader(content); }
};

// Sends a question and waits for its answer, or sends one that has none.
Answer ask(sim::Writer&);
void tell(sim::Writer&);

// Every runtime call ends with one of these: an error becomes the thread's last one.
Error remember(Error);
inline Error run(Question question) { return remember(ask(question).code); }
// The same, for one result that goes to `out`.
template <typename T, typename Out>
Error run(Question question, Out* out) {
  if (out == nullptr) return remember(sim::invalid_value);
  const auto answer = ask(question);
  if (answer.code == sim::success) *out = (Out)(answer.reader().take<T>());
  return remember(answer.code);
}
Error unsupported(const char* call);

// A launch was sent whose error, if any, cudaGetLastError has to ask for.
void expect_launch_error();
Error last_error(const char* call, bool keep);

bool on_device(const void*);        // in memory that only kernels may touch
bool device_visible(const void*);   // that, or managed or pinned memory
// Maps managed and pinned memory here; before the first pointer into it is handed out.
void map_shared();

}  // namespace cudart
