// Streams, events and host functions.

#include "streams.h"

#include <bit>
#include <cstdint>
#include <memory>

namespace cudart {

using sim::Ask;

std::uint64_t stream_id(Stream stream) {
  const auto handle = reinterpret_cast<std::uint64_t>(stream);
  if (handle == sim::default_stream) return sim::legacy_stream;
  if (handle != sim::per_thread_stream) return handle;
  thread_local std::uint64_t own = 0;
  if (own == 0) {
    Question question(Ask::stream_create, "cudaStreamCreate");
    question.put(std::uint32_t{0});
    const auto answer = ask(question);
    if (answer.code == sim::success) own = answer.reader().take<std::uint64_t>();
  }
  return own;
}

namespace {

std::uint64_t id(const void* handle) { return reinterpret_cast<std::uint64_t>(handle); }

Question about(Ask what, const char* call, Stream stream) {
  Question question(what, call);
  question.put(stream_id(stream));
  return question;
}

Question about_event(Ask what, const char* call, Event event) {
  Question question(what, call);
  question.put(id(event));
  return question;
}

Error create_stream(const char* call, Stream* stream, unsigned flags) {
  Question question(Ask::stream_create, call);
  question.put(flags);
  return run<std::uint64_t>(std::move(question), stream);
}

Error create_event(const char* call, Event* event, unsigned flags) {
  Question question(Ask::event_create, call);
  question.put(flags);
  return run<std::uint64_t>(std::move(question), event);
}

Error record(const char* call, Event event, Stream stream) {
  auto question = about_event(Ask::event_record, call, event);
  question.put(stream_id(stream));
  return run(std::move(question));
}

Error wait(const char* call, Stream stream, Event event) {
  auto question = about(Ask::stream_wait, call, stream);
  question.put(id(event));
  return run(std::move(question));
}

using HostFunction = void (*)(void*);
using Callback = void (*)(Stream, Error, void*);

Error host_function(const char* call, Stream stream, HostFunction function, void* argument) {
  auto question = about(Ask::host_function, call, stream);
  question.put(reinterpret_cast<std::uint64_t>(function)).put(id(argument));
  return run(std::move(question));
}

struct BoundCallback {
  Stream stream;
  Callback function;
  void* argument;
};

void call_back(void* bound) {
  const std::unique_ptr<BoundCallback> callback(static_cast<BoundCallback*>(bound));
  callback->function(callback->stream, sim::success, callback->argument);
}

Error add_callback(const char* call, Stream stream, Callback function, void* argument) {
  auto bound = std::make_unique<BoundCallback>(BoundCallback{stream, function, argument});
  const auto code = host_function(call, stream, call_back, bound.get());
  if (code == sim::success) static_cast<void>(bound.release());  // call_back frees it
  return code;
}

Error capture_info(const char* call, Stream stream, int* status, unsigned long long* capture) {
  const auto answer = ask(*std::make_unique<Question>(about(Ask::capture_status, call, stream)));
  if (answer.code == sim::success) {
    auto reader = answer.reader();
    const auto active = reader.take<std::uint32_t>();
    if (status != nullptr) *status = static_cast<int>(active);
    if (capture != nullptr) *capture = reader.take<std::uint64_t>();
  }
  return remember(answer.code);
}

}  // namespace

CUDART_API Error cudaStreamCreate(Stream* stream) { return create_stream(__func__, stream, 0); }
CUDART_API Error cudaStreamCreateWithFlags(Stream* stream, unsigned flags) {
  return create_stream(__func__, stream, flags);
}
CUDART_API Error cudaStreamCreateWithPriority(Stream* stream, unsigned flags, int) {
  return create_stream(__func__, stream, flags);
}
CUDART_API Error cudaStreamDestroy(Stream stream) { return run(about(Ask::stream_destroy, __func__, stream)); }
CUDART_API Error cudaStreamSynchronize(Stream stream) { return run(about(Ask::stream_synchronize, __func__, stream)); }
CUDART_API Error cudaStreamSynchronize_ptsz(Stream stream) { return cudaStreamSynchronize(per_thread(stream)); }
// Asking is a way of waiting: nothing else would ever let late work run under a loop that polls.
CUDART_API Error cudaStreamQuery(Stream stream) { return run(about(Ask::stream_synchronize, __func__, stream)); }
CUDART_API Error cudaStreamQuery_ptsz(Stream stream) { return cudaStreamQuery(per_thread(stream)); }
CUDART_API Error cudaStreamWaitEvent(Stream stream, Event event, unsigned) { return wait(__func__, stream, event); }
CUDART_API Error cudaStreamWaitEvent_ptsz(Stream stream, Event event, unsigned) {
  return wait("cudaStreamWaitEvent", per_thread(stream), event);
}
CUDART_API Error cudaStreamGetFlags(Stream, unsigned* flags) {
  *flags = 0;
  return sim::success;
}
CUDART_API Error cudaStreamGetPriority(Stream, int* priority) {
  *priority = 0;
  return sim::success;
}
CUDART_API Error cudaStreamGetId(Stream stream, unsigned long long* number) {
  *number = stream_id(stream);
  return sim::success;
}
CUDART_API Error cudaStreamGetDevice(Stream, int* device) {
  *device = 0;
  return sim::success;
}
CUDART_API Error cudaStreamSetAttribute(Stream, int, const void*) { return sim::success; }
CUDART_API Error cudaStreamSetAttribute_ptsz(Stream, int, const void*) { return sim::success; }
CUDART_API Error cudaStreamCopyAttributes(Stream, Stream) { return sim::success; }
CUDART_API Error cudaStreamAttachMemAsync(Stream, void*, std::size_t, unsigned) { return sim::success; }

CUDART_API Error cudaLaunchHostFunc(Stream stream, HostFunction function, void* argument) {
  return host_function(__func__, stream, function, argument);
}
CUDART_API Error cudaLaunchHostFunc_ptsz(Stream stream, HostFunction function, void* argument) {
  return host_function("cudaLaunchHostFunc", per_thread(stream), function, argument);
}
CUDART_API Error cudaStreamAddCallback(Stream stream, Callback function, void* argument, unsigned) {
  return add_callback(__func__, stream, function, argument);
}
CUDART_API Error cudaStreamAddCallback_ptsz(Stream stream, Callback function, void* argument, unsigned) {
  return add_callback("cudaStreamAddCallback", per_thread(stream), function, argument);
}

CUDART_API Error cudaEventCreate(Event* event) { return create_event(__func__, event, 0); }
CUDART_API Error cudaEventCreateWithFlags(Event* event, unsigned flags) { return create_event(__func__, event, flags); }
CUDART_API Error cudaEventDestroy(Event event) { return run(about_event(Ask::event_destroy, __func__, event)); }
CUDART_API Error cudaEventSynchronize(Event event) { return run(about_event(Ask::event_synchronize, __func__, event)); }
CUDART_API Error cudaEventQuery(Event event) { return run(about_event(Ask::event_synchronize, __func__, event)); }
CUDART_API Error cudaEventRecord(Event event, Stream stream) { return record(__func__, event, stream); }
CUDART_API Error cudaEventRecord_ptsz(Event event, Stream stream) {
  return record("cudaEventRecord", event, per_thread(stream));
}
CUDART_API Error cudaEventRecordWithFlags(Event event, Stream stream, unsigned) {
  return record(__func__, event, stream);
}
CUDART_API Error cudaEventRecordWithFlags_ptsz(Event event, Stream stream, unsigned) {
  return record("cudaEventRecordWithFlags", event, per_thread(stream));
}
CUDART_API Error cudaEventElapsedTime(float* milliseconds, Event start, Event end) {
  auto question = about_event(Ask::event_elapsed, __func__, start);
  question.put(id(end));
  return run<float>(std::move(question), milliseconds);
}

CUDART_API Error cudaStreamIsCapturing(Stream stream, int* status) {
  return capture_info(__func__, stream, status, nullptr);
}
CUDART_API Error cudaStreamIsCapturing_ptsz(Stream stream, int* status) {
  return capture_info("cudaStreamIsCapturing", per_thread(stream), status, nullptr);
}

}  // namespace cudart
