// vprintf, __assertfail, malloc, free.
#include "engine/builtins.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

namespace sim {
namespace {

constexpr std::size_t longest_text = 1 << 16;

std::uint64_t argument(const Frame& frame, Area area, std::uint32_t lane, std::size_t bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, frame.registers + area.offset + std::size_t{lane} * area.size,
              std::min<std::size_t>(bytes, area.size));
  return value;
}
void give(Frame& frame, Area area, std::uint32_t lane, std::uint64_t value, std::size_t bytes) {
  std::memcpy(frame.registers + area.offset + std::size_t{lane} * area.size, &value,
              std::min<std::size_t>(bytes, area.size));
}

void print(LaunchState& launch, const std::string& text) {
  const std::lock_guard lock(launch.mutex);
  launch.result.printed += text;
}

// All threads tend to fail at the same one: the first of them speaks for all.
void failed_assert(LaunchState& launch, const Warp& w, const CallSite& site, const Frame& frame, std::uint32_t lane,
                   std::uint32_t pc) {
  {
    const std::lock_guard lock(launch.mutex);
    if (!launch.asserted.insert(pc).second) return;
  }
  std::string condition, file, function;
  read_string(w, lane, argument(frame, site.arguments[0], lane, 8), condition);
  read_string(w, lane, argument(frame, site.arguments[1], lane, 8), file);
  const auto line = argument(frame, site.arguments[2], lane, 4);
  read_string(w, lane, argument(frame, site.arguments[3], lane, 8), function);
  const std::uint32_t t = w.number * lane_count + lane;
  const Dim3 d = launch.launch.block, b = w.block->index;
  const auto triple = [](auto x, auto y, auto z) {
    return "[" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + "]";
  };
  print(launch, file + ":" + std::to_string(line) + ": " + function + ": block: " + triple(b.x, b.y, b.z) +
                    ", thread: " + triple(t % d.x, t / d.x % d.y, t / d.x / d.y) + " Assertion `" + condition +
                    "` failed.\n");
  launch.fail(Fault::assertion,
              "assertion `" + condition + "` failed at " + file + ":" + std::to_string(line) + " by " +
                  name_thread(launch, *w.block, w.number, lane) + " in " + launch.where(pc),
              false);
}

}  // namespace

bool read_generic(const Warp& w, std::uint32_t lane, Address address, void* to, std::size_t bytes) {
  const std::byte* from = nullptr;
  if (const auto at = address - shared_window; at < window_size) {
    if (at + bytes > w.shared_size) return false;
    from = w.shared + at;
  } else if (const auto local = address - local_window; local < window_size) {
    if (local + bytes > w.local_top) return false;
    from = w.local + std::size_t{lane} * w.local_stride + local;
  } else {
    if (!w.worker->launch.memory.inside(address, bytes)) return false;
    from = reinterpret_cast<const std::byte*>(address);
  }
  std::memcpy(to, from, bytes);
  return true;
}

bool read_string(const Warp& w, std::uint32_t lane, Address address, std::string& text) {
  text.clear();
  for (char c; text.size() < longest_text; text += c) {
    if (!read_generic(w, lane, address + text.size(), &c, 1)) return false;
    if (c == 0) return true;
  }
  return true;
}

// The argument block holds 4-byte values for int and 8-byte ones for long, pointer and double, each aligned.
std::string format(const Warp& w, std::uint32_t lane, Address text_address, Address arguments) {
  std::string text, result;
  read_string(w, lane, text_address, text);
  Address at = arguments;
  const auto next = [&](std::size_t bytes) {
    at = (at + bytes - 1) / bytes * bytes;
    std::uint64_t value = 0;
    read_generic(w, lane, at, &value, bytes);
    at += bytes;
    return value;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      result += text[i];
      continue;
    }
    std::string spec = "%";
    bool wide = false;
    for (++i; i < text.size() && std::strchr("-+ #0123456789.*hljztL", text[i]); ++i) {
      if (text[i] == '*') {
        const auto value = static_cast<std::int32_t>(next(4));
        spec += std::to_string(value < -4096 ? -4096 : value > 4096 ? 4096 : value);
      } else if (std::strchr("hljztL", text[i])) {
        wide |= text[i] != 'h' && text[i] != 'L';
        if (text[i] == 'h') spec += 'h';
      } else {
        spec += text[i];
      }
    }
    if (i >= text.size()) break;
    const char kind = text[i];
    char buffer[4352];
    int length = 0;
    switch (kind) {
      case '%': length = std::snprintf(buffer, sizeof buffer, "%%"); break;
      case 'd':
      case 'i':
      case 'u':
      case 'o':
      case 'x':
      case 'X':
      case 'c':
        if (wide) {
          length = std::snprintf(buffer, sizeof buffer, (spec + "ll" + kind).c_str(), static_cast<long long>(next(8)));
        } else {
          length = std::snprintf(buffer, sizeof buffer, (spec + kind).c_str(), static_cast<int>(next(4)));
        }
        break;
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
      case 'a':
      case 'A':
        length = std::snprintf(buffer, sizeof buffer, (spec + kind).c_str(), std::bit_cast<double>(next(8)));
        break;
      case 'p': length = std::snprintf(buffer, sizeof buffer, "%p", reinterpret_cast<void*>(next(8))); break;
      case 's': {
        std::string string;
        const Address where = next(8);
        if (where == 0 || !read_string(w, lane, where, string)) string = "(null)";
        length = std::snprintf(buffer, sizeof buffer, (spec + kind).c_str(), string.c_str());
        break;
      }
      default: result += spec + kind; continue;
    }
    result.append(buffer, static_cast<std::size_t>(std::clamp(length, 0, static_cast<int>(sizeof buffer) - 1)));
  }
  return result;
}

void call_builtin(WarpState& state, const Instruction&, const CallSite& site, Frame& frame, Mask mask,
                  std::uint32_t pc) {
  Warp& w = state.warp;
  LaunchState& launch = w.worker->launch;
  w.local_top = frame.local_top;
  static constexpr std::size_t wanted[] = {0, 2, 4, 1, 1};
  if (site.arguments.size() < wanted[static_cast<std::size_t>(site.builtin)]) {
    launch.fail(Fault::illegal_instruction, "a call with too few arguments in " + launch.where(pc), true);
    w.fallen = mask;
    return;
  }
  for (Mask m = mask; m; m &= m - 1) {
    const auto l = static_cast<std::uint32_t>(std::countr_zero(m));
    switch (site.builtin) {
      case Builtin::vprintf: {
        const std::string text =
            format(w, l, argument(frame, site.arguments[0], l, 8), argument(frame, site.arguments[1], l, 8));
        print(launch, text);
        if (!site.results.empty()) give(frame, site.results[0], l, text.size(), 4);
        break;
      }
      case Builtin::assertfail:
        failed_assert(launch, w, site, frame, l, pc);
        w.fallen |= 1u << l;
        break;
      case Builtin::malloc: {
        const auto bytes = argument(frame, site.arguments[0], l, 8);
        const Address at = bytes ? launch.memory.allocate_in_kernel(bytes, launch.residency.of_heap()) : 0;
        if (at) w.block->most_of_heap = std::max(w.block->most_of_heap, w.block->of_heap += bytes);
        if (!site.results.empty()) give(frame, site.results[0], l, at, 8);
        break;
      }
      case Builtin::free: {
        const auto at = argument(frame, site.arguments[0], l, 8);
        const auto allocation = launch.memory.find(at);
        if (at == 0 || launch.memory.release(at)) {
          if (allocation) w.block->of_heap -= std::min(w.block->of_heap, allocation->size);
          break;
        }
        if (!launch.seen("double_free", pc)) {
          launch.report("double_free", "on_device", pc, {launch.at(pc, *w.block, w.number, l)});
        }
        launch.fail(Fault::illegal_address, "free() of a bad pointer in " + launch.where(pc), false);
        w.fallen |= 1u << l;
        break;
      }
      case Builtin::none: break;
    }
  }
}

}  // namespace sim
