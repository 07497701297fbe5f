// The frames between the simulator's processes: little-endian, u32 length of what follows, u32 what it is, fields.
//
// The judge and the student's program speak over different sockets with different questions. Whatever comes from the
// program may be forged, so a Reader never trusts a length.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace sim {

static_assert(std::endian::native == std::endian::little, "frames are little-endian");

// Of what programs ask.
inline constexpr std::uint32_t protocol_version = 7;
inline constexpr std::size_t copy_chunk = std::size_t{16} << 20;  // longer copies travel as several frames
inline constexpr std::size_t frame_limit = std::size_t{64} << 20;

// Stream handles that CUDA gives a meaning to; others are handed out by the server.
inline constexpr std::uint64_t default_stream = 0, legacy_stream = 1, per_thread_stream = 2;

// What a program asks. The first field of each is the name of the runtime call, for messages. No answer comes to those
// marked "no reply"; all others are answered by a code of cudaError_t, with sticky_error set if it stays, and the
// result.
enum class Ask : std::uint32_t {
  hello = 1,            // u32 version -> u64 device bytes, u64 shared bytes, and the shared arena as a descriptor
  register_fatbin,      // no reply: u32 id, u32 n, n x bytes; what a device link has joined comes behind it
  register_kernel,      // no reply: u32 fatbin, u64 host function, text name
  register_variable,    // no reply: u32 fatbin, u64 host variable, text name
  kernel_info,  // u64 host function -> u32 bytes, n, n x (u32 offset, size), u64 static shared, local, u32 threads,
                // registers, dynamic shared
  symbol,  // u64 host variable -> u64 address, u64 size
  part_of_symbol,  // u64 host variable, offset, bytes -> u64 address of a part that is to be copied
  allocate,  // u64 bytes, u8 space -> u64 address
  allocate_async,  // u64 bytes, u64 stream -> u64 address
  release,  // u64 address, u8 of host memory
  release_async,  // u64 address, u64 stream
  copy_in,  // u64 stream, to, pitch, width, height, extent, u8 wait, bytes
  copy_out,  // u64 stream, from, pitch, width, height, extent -> bytes
  copy,  // u64 stream, to, to pitch, from, from pitch, width, height, u8 wait
  fill,  // u64 stream, to, pitch, width, height, u8 value, u8 wait
  launch,  // no reply: u64 host function, u32 grid[3], block[3], u64 shared, stream, u8 cooperative, early, bytes
  launch_checked,  // the same with a reply that comes before the kernel runs
  stream_create,  // u32 flags -> u64 stream
  stream_destroy,  // u64 stream
  stream_synchronize,  // u64 stream
  stream_wait,  // u64 stream, u64 event
  device_synchronize,  //
  event_create,  // u32 flags -> u64 event
  event_destroy,  // u64 event
  event_record,  // u64 event, u64 stream
  event_synchronize,  // u64 event
  event_elapsed,  // u64 start, u64 end -> f32 milliseconds
  host_function,  // u64 stream, u64 function, u64 argument
  host_function_done,  // no reply: the answer to host_call
  last_error,  // u8 keep it -> u32 error of an earlier launch
  kernel_attribute,  // u64 host function, u32 attribute, u32 value
  memory_info,  // -> u64 free bytes
  pointer,  // u64 address -> u64 base, u64 size, u8 space; base 0 if unknown
  unsupported,  // no reply: the call's name says it all
  host_access,  // no reply: u64 device address that host code touched, u8 how, text function, library, if known
  capture_begin,  // u64 stream
  capture_end,  // u64 stream -> u64 graph
  capture_status,  // u64 stream -> u32 status, u64 id
  graph_instantiate,  // u64 graph -> u64 executable graph
  graph_launch,  // u64 executable graph, u64 stream
  graph_destroy,  // u64 graph or executable graph
  graph_update,  // u64 executable graph, u64 graph that it shall launch from now on
  graph_nodes,  // u64 graph -> u64 nodes
  reset,  //
  limit_heap,  // u64 bytes that malloc() in kernels may hand out
  not_waited,  // -> u32 n, n x (u64 first, u64 end, u8 written): host-visible memory that work may still use
  read_tensor,  // u64 stream, from, pitch, width, height -> u64 bytes that nothing has written, bytes
  tensor_unwritten,  // no reply: u64 from, pitch, width, height, text operator, file, u32 line: PyTorch has read them
  host_coverage,  // no reply: u32 n, n x (3 x u64 code, u32 number, u8 compares, below, equal, above,
                  // i64 lowest and highest a, lowest and highest b)
};

// How host code touches device memory: by itself, or by a copy that takes it for memory of the host; or memory that it
// shares with the device, before it has waited.
enum class HostAccess : std::uint8_t { by_itself, as_source, as_target, early_read, early_write };

inline constexpr std::size_t default_heap = 8 << 20;  // bytes for malloc() in kernels

inline constexpr std::uint32_t sticky_error = 0x8000'0000;

// In the place of an answer, before it can come: u64 function, u64 argument to call; text that kernels printed.
inline constexpr std::uint32_t host_call = 0xFFFF'FFFF, printed_text = 0xFFFF'FFFE;

struct Malformed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Writer {
 public:
  explicit Writer(std::uint32_t what) {
    frame_.reserve(64);
    frame_.resize(8);
    become(what);
  }

  template <typename T>
    requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
  Writer& put(T value) {
    append(&value, sizeof value);
    return *this;
  }
  Writer& bytes(std::span<const std::byte> data) {
    put(static_cast<std::uint64_t>(data.size()));
    append(data.data(), data.size());
    return *this;
  }
  Writer& text(std::string_view words) { return bytes(std::as_bytes(std::span{words})); }
  // Room for n bytes that the caller fills in.
  std::span<std::byte> room(std::size_t n) {
    put(static_cast<std::uint64_t>(n));
    frame_.resize(frame_.size() + n);
    return std::span{frame_}.last(n);
  }
  void become(std::uint32_t what) { std::memcpy(frame_.data() + 4, &what, sizeof what); }
  std::span<const std::byte> frame() {
    const auto length = static_cast<std::uint32_t>(frame_.size() - 4);
    std::memcpy(frame_.data(), &length, 4);
    return frame_;
  }

 private:
  void append(const void* data, std::size_t n) {
    const auto* bytes = static_cast<const std::byte*>(data);
    frame_.insert(frame_.end(), bytes, bytes + n);
  }
  std::vector<std::byte> frame_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> data) : rest_(data) {}

  template <typename T>
    requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
  T take() {
    T value;
    std::memcpy(&value, next(sizeof value).data(), sizeof value);
    return value;
  }
  std::span<const std::byte> bytes() { return next(take<std::uint64_t>()); }
  std::string_view text() {
    const auto data = bytes();
    return {reinterpret_cast<const char*>(data.data()), data.size()};
  }
  bool empty() const { return rest_.empty(); }

 private:
  std::span<const std::byte> next(std::uint64_t n) {
    if (n > rest_.size()) throw Malformed("a frame ends before its fields do");
    const auto data = rest_.first(n);
    rest_ = rest_.subspan(n);
    return data;
  }
  std::span<const std::byte> rest_;
};

}  // namespace sim
