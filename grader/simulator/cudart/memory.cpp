// Allocations and copies.

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "../capability.h"
#include "graphs.h"
#include "streams.h"

namespace cudart {
namespace {

using sim::Ask;
using sim::Space;

std::uint64_t number(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

Error allocate(const char* call, void** pointer, std::size_t bytes, Space space) {
  if (pointer == nullptr) return remember(sim::invalid_value);
  *pointer = nullptr;
  if (bytes == 0) return sim::success;
  Question question(Ask::allocate, call);
  question.put(std::uint64_t{bytes}).put(static_cast<std::uint8_t>(space));
  const auto code = run<std::uint64_t>(std::move(question), pointer);
  if (code == sim::success && space != Space::device) map_shared();
  return code;
}

Error allocate_async(const char* call, void** pointer, std::size_t bytes, Stream stream) {
  if (pointer == nullptr) return remember(sim::invalid_value);
  *pointer = nullptr;
  if (bytes == 0) return sim::success;
  Question question(Ask::allocate_async, call);
  question.put(std::uint64_t{bytes}).put(stream_id(stream));
  return run<std::uint64_t>(std::move(question), pointer);
}

Error release(const char* call, void* pointer, bool host) {
  if (pointer == nullptr) return sim::success;
  Question question(Ask::release, call);
  question.put(number(pointer)).put(std::uint8_t{host});
  return run(std::move(question));
}

Error release_async(const char* call, void* pointer, Stream stream) {
  if (pointer == nullptr) return sim::success;
  Question question(Ask::release_async, call);
  question.put(number(pointer)).put(stream_id(stream));
  return run(std::move(question));
}

// A rectangle of `height` rows, `pitch` bytes apart.
struct Rows {
  std::byte* at;
  std::size_t pitch;
};

struct Transfer {
  const char* call;
  Stream stream;
  bool wait;
};

// Calls move(row, rows, column, bytes) for parts that fit a frame, until one fails.
template <typename Move>
Error in_parts(std::size_t width, std::size_t height, Move move) {
  const auto rows_at_once = std::max<std::size_t>(1, sim::copy_chunk / width);
  for (std::size_t row = 0; row < height; row += rows_at_once) {
    const auto rows = std::min(rows_at_once, height - row);
    for (std::size_t column = 0; column < width; column += sim::copy_chunk) {
      const auto code = move(row, rows, column, std::min(width - column, sim::copy_chunk));
      if (code != sim::success) return code;
    }
  }
  return sim::success;
}

Error copy_in(const Transfer& how, Rows to, Rows from, std::size_t width, std::size_t height) {
  return in_parts(width, height, [&](std::size_t row, std::size_t rows, std::size_t column, std::size_t bytes) {
    const bool first = row == 0 && column == 0;
    Question question(Ask::copy_in, how.call);
    question.put(stream_id(how.stream)).put(number(to.at + row * to.pitch + column));
    question.put(std::uint64_t{to.pitch}).put(std::uint64_t{bytes}).put(std::uint64_t{rows});
    question.put(std::uint64_t{first ? to.pitch * (height - 1) + width : 0}).put(std::uint8_t{how.wait});
    auto room = question.room(bytes * rows);
    for (std::size_t i = 0; i < rows; ++i) {
      std::memcpy(room.data() + i * bytes, from.at + (row + i) * from.pitch + column, bytes);
    }
    return ask(question).code;
  });
}

Error copy_out(const Transfer& how, Rows to, Rows from, std::size_t width, std::size_t height) {
  return in_parts(width, height, [&](std::size_t row, std::size_t rows, std::size_t column, std::size_t bytes) {
    const bool first = row == 0 && column == 0;
    Question question(Ask::copy_out, how.call);
    question.put(stream_id(how.stream)).put(number(from.at + row * from.pitch + column));
    question.put(std::uint64_t{from.pitch}).put(std::uint64_t{bytes}).put(std::uint64_t{rows});
    question.put(std::uint64_t{first ? from.pitch * (height - 1) + width : 0});
    const auto answer = ask(question);
    if (answer.code != sim::success) return answer.code;
    const auto content = answer.reader().bytes();
    for (std::size_t i = 0; i < rows; ++i) {
      std::memcpy(to.at + (row + i) * to.pitch + column, content.data() + i * bytes, bytes);
    }
    return Error{sim::success};
  });
}

Error copy_within(const Transfer& how, Rows to, Rows from, std::size_t width, std::size_t height) {
  Question question(Ask::copy, how.call);
  question.put(stream_id(how.stream)).put(number(to.at)).put(std::uint64_t{to.pitch}).put(number(from.at));
  question.put(std::uint64_t{from.pitch}).put(std::uint64_t{width}).put(std::uint64_t{height});
  // Copies on the device return before they are done; the host may look at managed and pinned memory at once.
  question.put(std::uint8_t{how.wait && !(on_device(to.at) && on_device(from.at))});
  return ask(question).code;
}

Error copy_on_host(const Transfer& how, Rows to, Rows from, std::size_t width, std::size_t height) {
  Question question(Ask::stream_synchronize, how.call);
  question.put(stream_id(how.stream));
  if (const auto code = ask(question).code; code != sim::success) return code;
  for (std::size_t row = 0; row < height; ++row)
    std::memmove(to.at + row * to.pitch, from.at + row * from.pitch, width);
  return sim::success;
}

// A copy of pageable memory within a graph, which uses the memory at each launch: a host function moves it from or to
// pinned memory of our own.
struct HostCopy {
  Rows to, from;
  std::size_t width, height;
  void* pinned = nullptr;
  ~HostCopy() { release("cudaFreeHost", pinned, true); }
};

void move(void* argument) {
  const auto& copy = *static_cast<const HostCopy*>(argument);
  for (std::size_t row = 0; row < copy.height; ++row) {
    std::memcpy(copy.to.at + row * copy.to.pitch, copy.from.at + row * copy.from.pitch, copy.width);
  }
}

Error move_in_graph(const Transfer& how, const std::shared_ptr<HostCopy>& copy) {
  Question question(Ask::host_function, how.call);
  question.put(stream_id(how.stream)).put(reinterpret_cast<std::uint64_t>(&move)).put(number(copy.get()));
  return ask(question).code;
}

Error copy_in_graph(const Transfer& how, std::uint64_t capture, Rows to, Rows from, std::size_t width,
                    std::size_t height, bool from_host) {
  auto copy = std::make_shared<HostCopy>(HostCopy{to, from, width, height});
  if (const auto code = allocate(how.call, &copy->pinned, width * height, Space::pinned); code != sim::success) {
    return code;
  }
  const Rows pinned{static_cast<std::byte*>(copy->pinned), width};
  (from_host ? copy->to : copy->from) = pinned;
  keep_in_graph(capture, copy);
  if (from_host) {
    const auto code = move_in_graph(how, copy);
    return code != sim::success ? code : copy_within(how, to, pinned, width, height);
  }
  const auto code = copy_within(how, pinned, from, width, height);
  return code != sim::success ? code : move_in_graph(how, copy);
}

void blame(const char* call, const void* pointer, sim::HostAccess how) {
  Question notice(Ask::host_access, call);
  notice.put(number(pointer)).put(how).text("").text("");
  tell(notice);
}

Error copy(const Transfer& how, Rows to, Rows from, std::size_t width, std::size_t height, MemcpyKind kind) {
  if (kind < host_to_host || kind > by_address) return remember(sim::invalid_memcpy_direction);
  if (width == 0 || height == 0) return sim::success;
  if (height > 1 && (width > to.pitch || width > from.pitch)) return remember(12);  // cudaErrorInvalidPitchValue
  if (height == 1 || (to.pitch == width && from.pitch == width)) {
    width *= height;
    height = 1;
    to.pitch = from.pitch = width;
  }
  const bool claims_host_source = kind == host_to_device || kind == host_to_host;
  const bool claims_host_target = kind == device_to_host || kind == host_to_host;
  if (claims_host_source && on_device(from.at)) {
    blame(how.call, from.at, sim::HostAccess::as_source);
    return remember(sim::invalid_value);
  }
  if (claims_host_target && on_device(to.at)) {
    blame(how.call, to.at, sim::HostAccess::as_target);
    return remember(sim::invalid_value);
  }
  const bool from_host = !device_visible(from.at) && (claims_host_source || kind == by_address);
  const bool to_host = !device_visible(to.at) && (claims_host_target || kind == by_address);
  if (from_host && to_host) return remember(copy_on_host(how, to, from, width, height));
  if (const auto capture = from_host || to_host ? capture_of(how.call, how.stream) : 0; capture != 0) {
    return remember(copy_in_graph(how, capture, to, from, width, height, from_host));
  }
  if (from_host) return remember(copy_in(how, to, from, width, height));
  if (to_host) return remember(copy_out(how, to, from, width, height));
  return remember(copy_within(how, to, from, width, height));
}

Error copy_line(const Transfer& how, void* to, const void* from, std::size_t bytes, MemcpyKind kind) {
  return copy(how, {static_cast<std::byte*>(to), bytes}, {static_cast<std::byte*>(const_cast<void*>(from)), bytes},
              bytes, 1, kind);
}

Error copy_rows(const Transfer& how, void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                std::size_t width, std::size_t height, MemcpyKind kind) {
  return copy(how, {static_cast<std::byte*>(to), to_pitch},
              {static_cast<std::byte*>(const_cast<void*>(from)), from_pitch}, width, height, kind);
}

Error copy_box(const Transfer& how, const Memcpy3D* box) {
  if (box == nullptr) return remember(sim::invalid_value);
  if (box->source_array != nullptr || box->target_array != nullptr) return unsupported("cudaMemcpy3D_of_an_array");
  const auto start = [](const PitchedPointer& base, const Position& at, std::size_t slice) {
    return static_cast<std::byte*>(base.pointer) + (at.z + slice) * base.pitch * base.ysize + at.y * base.pitch + at.x;
  };
  for (std::size_t slice = 0; slice < box->extent.depth; ++slice) {
    const Rows to{start(box->target, box->target_position, slice), box->target.pitch};
    const Rows from{start(box->source, box->source_position, slice), box->source.pitch};
    const auto code = copy(how, to, from, box->extent.width, box->extent.height, box->kind);
    if (code != sim::success) return code;
  }
  return sim::success;
}

Error fill(const char* call, void* to, std::size_t pitch, int value, std::size_t width, std::size_t height,
           Stream stream) {
  if (width == 0 || height == 0) return sim::success;
  Question question(Ask::fill, call);
  question.put(stream_id(stream)).put(number(to)).put(std::uint64_t{height == 1 ? width : pitch});
  question.put(std::uint64_t{width}).put(std::uint64_t{height}).put(static_cast<std::uint8_t>(value));
  // Of memory that the host sees, too, all but the asynchronous ones return when they are done.
  question.put(std::uint8_t{!std::string_view(call).ends_with("Async") && !on_device(to)});
  return run(std::move(question));
}

Error fill_box(const char* call, const PitchedPointer& to, int value, const Extent& extent, Stream stream) {
  for (std::size_t slice = 0; slice < extent.depth; ++slice) {
    auto* const start = static_cast<std::byte*>(to.pointer) + slice * to.pitch * to.ysize;
    const auto code = fill(call, start, to.pitch, value, extent.width, extent.height, stream);
    if (code != sim::success) return code;
  }
  return sim::success;
}

// The address of a variable's byte, once the server has seen that `bytes` fit behind it.
Error in_symbol(const char* call, const void* variable, std::size_t offset, std::size_t bytes, std::byte*& at) {
  Question question(Ask::part_of_symbol, call);
  question.put(number(variable)).put(std::uint64_t{offset}).put(std::uint64_t{bytes});
  const auto answer = ask(question);
  if (answer.code == sim::success) at = reinterpret_cast<std::byte*>(answer.reader().take<std::uint64_t>());
  return answer.code;
}

Error to_symbol(const Transfer& how, const void* variable, const void* from, std::size_t bytes, std::size_t offset,
                MemcpyKind kind) {
  std::byte* at = nullptr;
  const auto code = in_symbol(how.call, variable, offset, bytes, at);
  return code != sim::success ? remember(code) : copy_line(how, at, from, bytes, kind);
}

Error from_symbol(const Transfer& how, void* to, const void* variable, std::size_t bytes, std::size_t offset,
                  MemcpyKind kind) {
  std::byte* at = nullptr;
  const auto code = in_symbol(how.call, variable, offset, bytes, at);
  return code != sim::success ? remember(code) : copy_line(how, to, at, bytes, kind);
}

constexpr std::size_t pitch_alignment = 512;

Stream own() { return reinterpret_cast<Stream>(sim::per_thread_stream); }

}  // namespace

CUDART_API Error cudaMalloc(void** pointer, std::size_t bytes) {
  return allocate(__func__, pointer, bytes, Space::device);
}
CUDART_API Error cudaMallocManaged(void** pointer, std::size_t bytes, unsigned) {
  return allocate(__func__, pointer, bytes, Space::managed);
}
CUDART_API Error cudaMallocHost(void** pointer, std::size_t bytes) {
  return allocate(__func__, pointer, bytes, Space::pinned);
}
CUDART_API Error cudaHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  return allocate(__func__, pointer, bytes, Space::pinned);
}
CUDART_API Error cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width, std::size_t height) {
  *pitch = (width + pitch_alignment - 1) / pitch_alignment * pitch_alignment;
  return allocate(__func__, pointer, *pitch * height, Space::device);
}
CUDART_API Error cudaMalloc3D(PitchedPointer* box, Extent extent) {
  const auto pitch = (extent.width + pitch_alignment - 1) / pitch_alignment * pitch_alignment;
  *box = {nullptr, pitch, extent.width, extent.height};
  return allocate(__func__, &box->pointer, pitch * extent.height * extent.depth, Space::device);
}
CUDART_API Error cudaMallocAsync(void** pointer, std::size_t bytes, Stream stream) {
  return allocate_async(__func__, pointer, bytes, stream);
}
CUDART_API Error cudaMallocAsync_ptsz(void** pointer, std::size_t bytes, Stream stream) {
  return allocate_async("cudaMallocAsync", pointer, bytes, per_thread(stream));
}
CUDART_API Error cudaMallocFromPoolAsync(void** pointer, std::size_t bytes, void* pool, Stream stream) {
  return pool == nullptr ? remember(sim::invalid_value) : allocate_async(__func__, pointer, bytes, stream);
}
CUDART_API Error cudaMallocFromPoolAsync_ptsz(void** pointer, std::size_t bytes, void* pool, Stream stream) {
  return cudaMallocFromPoolAsync(pointer, bytes, pool, per_thread(stream));
}
CUDART_API Error cudaFree(void* pointer) { return release(__func__, pointer, false); }
CUDART_API Error cudaFreeHost(void* pointer) { return release(__func__, pointer, true); }
CUDART_API Error cudaFreeAsync(void* pointer, Stream stream) { return release_async(__func__, pointer, stream); }
CUDART_API Error cudaFreeAsync_ptsz(void* pointer, Stream stream) {
  return release_async("cudaFreeAsync", pointer, per_thread(stream));
}

// Pageable memory stays where it is: copies work with it, kernels do not.
CUDART_API Error cudaHostRegister(void* pointer, std::size_t, unsigned) {
  return remember(pointer == nullptr ? sim::invalid_value : sim::success);
}
CUDART_API Error cudaHostUnregister(void*) { return sim::success; }
CUDART_API Error cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  if (!device_visible(host)) return unsupported("cudaHostGetDevicePointer_of_registered_memory");
  *device = host;
  return sim::success;
}
CUDART_API Error cudaHostGetFlags(unsigned* flags, void* host) {
  *flags = 0;
  return remember(device_visible(host) ? sim::success : sim::invalid_value);
}

CUDART_API Error cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  Question question(Ask::memory_info, __func__);
  const auto answer = ask(question);
  if (answer.code == sim::success) {
    *free = answer.reader().take<std::uint64_t>();
    *total = sim::limits::global_bytes;
  }
  return remember(answer.code);
}
CUDART_API Error cudaPointerGetAttributes(PointerAttributes* attributes, const void* pointer) {
  Question question(Ask::pointer, __func__);
  question.put(number(pointer));
  const auto answer = ask(question);
  if (answer.code != sim::success) return remember(answer.code);
  auto reader = answer.reader();
  const auto base = reader.take<std::uint64_t>();
  reader.take<std::uint64_t>();
  const auto space = static_cast<Space>(reader.take<std::uint8_t>());
  *attributes = {};
  auto* const plain = const_cast<void*>(pointer);
  if (base == 0) {
    attributes->device = -2;
    attributes->host_pointer = plain;
    return sim::success;
  }
  attributes->type = space == Space::device ? 2 : space == Space::managed ? 3 : 1;
  attributes->device_pointer = plain;
  attributes->host_pointer = space == Space::device ? nullptr : plain;
  return sim::success;
}
CUDART_API Error cudaMemAdvise(const void*, std::size_t, int, MemLocation) { return sim::success; }
CUDART_API Error cudaMemPrefetchAsync(const void*, std::size_t, MemLocation, unsigned, Stream) { return sim::success; }
CUDART_API Error cudaMemPrefetchAsync_ptsz(const void*, std::size_t, MemLocation, unsigned, Stream) {
  return sim::success;
}

CUDART_API Error cudaMemcpy(void* to, const void* from, std::size_t bytes, MemcpyKind kind) {
  return copy_line({__func__, nullptr, true}, to, from, bytes, kind);
}
CUDART_API Error cudaMemcpy_ptds(void* to, const void* from, std::size_t bytes, MemcpyKind kind) {
  return copy_line({"cudaMemcpy", own(), true}, to, from, bytes, kind);
}
CUDART_API Error cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, MemcpyKind kind, Stream stream) {
  return copy_line({__func__, stream, false}, to, from, bytes, kind);
}
CUDART_API Error cudaMemcpyAsync_ptsz(void* to, const void* from, std::size_t bytes, MemcpyKind kind, Stream stream) {
  return copy_line({"cudaMemcpyAsync", per_thread(stream), false}, to, from, bytes, kind);
}
CUDART_API Error cudaMemcpyPeer(void* to, int, const void* from, int, std::size_t bytes) {
  return copy_line({__func__, nullptr, true}, to, from, bytes, device_to_device);
}
CUDART_API Error cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes, Stream stream) {
  return copy_line({__func__, stream, false}, to, from, bytes, device_to_device);
}
CUDART_API Error cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, MemcpyKind kind) {
  return copy_rows({__func__, nullptr, true}, to, to_pitch, from, from_pitch, width, height, kind);
}
CUDART_API Error cudaMemcpy2D_ptds(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                   std::size_t width, std::size_t height, MemcpyKind kind) {
  return copy_rows({"cudaMemcpy2D", own(), true}, to, to_pitch, from, from_pitch, width, height, kind);
}
CUDART_API Error cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                   std::size_t width, std::size_t height, MemcpyKind kind, Stream stream) {
  return copy_rows({__func__, stream, false}, to, to_pitch, from, from_pitch, width, height, kind);
}
CUDART_API Error cudaMemcpy2DAsync_ptsz(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                        std::size_t width, std::size_t height, MemcpyKind kind, Stream stream) {
  return copy_rows({"cudaMemcpy2DAsync", per_thread(stream), false}, to, to_pitch, from, from_pitch, width, height,
                   kind);
}
CUDART_API Error cudaMemcpy3D(const Memcpy3D* box) { return copy_box({__func__, nullptr, true}, box); }
CUDART_API Error cudaMemcpy3D_ptds(const Memcpy3D* box) { return copy_box({"cudaMemcpy3D", own(), true}, box); }
CUDART_API Error cudaMemcpy3DAsync(const Memcpy3D* box, Stream stream) {
  return copy_box({__func__, stream, false}, box);
}
CUDART_API Error cudaMemcpy3DAsync_ptsz(const Memcpy3D* box, Stream stream) {
  return copy_box({"cudaMemcpy3DAsync", per_thread(stream), false}, box);
}

// For PyTorch's tensors on the device: `width` bytes of each of `height` rows, one behind the other; also how many of
// them nothing has written, which __cudaTensorUnwritten reports with the name of the operator that reads them.
CUDART_API Error __cudaReadTensor(void* to, const void* from, std::size_t pitch, std::size_t width, std::size_t height,
                                  Stream stream, std::uint64_t* unwritten) {
  *unwritten = 0;
  return remember(
      in_parts(width, height, [&](std::size_t row, std::size_t rows, std::size_t column, std::size_t bytes) {
        Question question(Ask::read_tensor, "PyTorch");
        question.put(stream_id(stream)).put(number(from) + row * pitch + column);
        question.put(std::uint64_t{pitch}).put(std::uint64_t{bytes}).put(std::uint64_t{rows});
        const auto answer = ask(question);
        if (answer.code != sim::success) return answer.code;
        auto reader = answer.reader();
        *unwritten += reader.take<std::uint64_t>();
        const auto content = reader.bytes();
        auto* const start = static_cast<std::byte*>(to) + row * width + column;
        for (std::size_t i = 0; i < rows; ++i) std::memcpy(start + i * width, content.data() + i * bytes, bytes);
        return Error{sim::success};
      }));
}
CUDART_API void __cudaTensorUnwritten(const void* from, std::size_t pitch, std::size_t width, std::size_t height,
                                      const char* reader, const char* file, unsigned line) {
  Question notice(Ask::tensor_unwritten, "PyTorch");
  notice.put(number(from)).put(std::uint64_t{pitch}).put(std::uint64_t{width}).put(std::uint64_t{height});
  notice.text(reader).text(file).put(std::uint32_t{line});
  tell(notice);
}

CUDART_API Error cudaMemcpyToSymbol(const void* variable, const void* from, std::size_t bytes, std::size_t offset,
                                    MemcpyKind kind) {
  return to_symbol({__func__, nullptr, true}, variable, from, bytes, offset, kind);
}
CUDART_API Error cudaMemcpyToSymbol_ptds(const void* variable, const void* from, std::size_t bytes, std::size_t offset,
                                         MemcpyKind kind) {
  return to_symbol({"cudaMemcpyToSymbol", own(), true}, variable, from, bytes, offset, kind);
}
CUDART_API Error cudaMemcpyToSymbolAsync(const void* variable, const void* from, std::size_t bytes, std::size_t offset,
                                         MemcpyKind kind, Stream stream) {
  return to_symbol({__func__, stream, false}, variable, from, bytes, offset, kind);
}
CUDART_API Error cudaMemcpyToSymbolAsync_ptsz(const void* variable, const void* from, std::size_t bytes,
                                              std::size_t offset, MemcpyKind kind, Stream stream) {
  return to_symbol({"cudaMemcpyToSymbolAsync", per_thread(stream), false}, variable, from, bytes, offset, kind);
}
CUDART_API Error cudaMemcpyFromSymbol(void* to, const void* variable, std::size_t bytes, std::size_t offset,
                                      MemcpyKind kind) {
  return from_symbol({__func__, nullptr, true}, to, variable, bytes, offset, kind);
}
CUDART_API Error cudaMemcpyFromSymbol_ptds(void* to, const void* variable, std::size_t bytes, std::size_t offset,
                                           MemcpyKind kind) {
  return from_symbol({"cudaMemcpyFromSymbol", own(), true}, to, variable, bytes, offset, kind);
}
CUDART_API Error cudaMemcpyFromSymbolAsync(void* to, const void* variable, std::size_t bytes, std::size_t offset,
                                           MemcpyKind kind, Stream stream) {
  return from_symbol({__func__, stream, false}, to, variable, bytes, offset, kind);
}
CUDART_API Error cudaMemcpyFromSymbolAsync_ptsz(void* to, const void* variable, std::size_t bytes, std::size_t offset,
                                                MemcpyKind kind, Stream stream) {
  return from_symbol({"cudaMemcpyFromSymbolAsync", per_thread(stream), false}, to, variable, bytes, offset, kind);
}

CUDART_API Error cudaMemset(void* to, int value, std::size_t bytes) {
  return fill(__func__, to, bytes, value, bytes, 1, nullptr);
}
CUDART_API Error cudaMemset_ptds(void* to, int value, std::size_t bytes) {
  return fill("cudaMemset", to, bytes, value, bytes, 1, own());
}
CUDART_API Error cudaMemsetAsync(void* to, int value, std::size_t bytes, Stream stream) {
  return fill(__func__, to, bytes, value, bytes, 1, stream);
}
CUDART_API Error cudaMemsetAsync_ptsz(void* to, int value, std::size_t bytes, Stream stream) {
  return fill("cudaMemsetAsync", to, bytes, value, bytes, 1, per_thread(stream));
}
CUDART_API Error cudaMemset2D(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height) {
  return fill(__func__, to, pitch, value, width, height, nullptr);
}
CUDART_API Error cudaMemset2D_ptds(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height) {
  return fill("cudaMemset2D", to, pitch, value, width, height, own());
}
CUDART_API Error cudaMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height,
                                   Stream stream) {
  return fill(__func__, to, pitch, value, width, height, stream);
}
CUDART_API Error cudaMemset2DAsync_ptsz(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height,
                                        Stream stream) {
  return fill("cudaMemset2DAsync", to, pitch, value, width, height, per_thread(stream));
}
CUDART_API Error cudaMemset3D(PitchedPointer to, int value, Extent extent) {
  return fill_box(__func__, to, value, extent, nullptr);
}
CUDART_API Error cudaMemset3DAsync(PitchedPointer to, int value, Extent extent, Stream stream) {
  return fill_box(__func__, to, value, extent, stream);
}

}  // namespace cudart
