// How values travel between the judge and the device: the members of a struct in their order, numbers in 8 bytes, texts
// and lists behind their length. names() tells that in words, which driver.py compares with what it expects.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "../device.h"
#include "../protocol.h"
#include "program.h"

namespace sim {

// Bytes of memory that are sent without another copy: `fill` writes them where they leave from.
struct Content {
  std::size_t size;
  std::function<void(std::span<std::byte>)> fill;
};
// How a launch or all of what programs have asked for ended.
struct Outcome {
  std::uint32_t code;  // of cudaError_t
  std::string error;  // its name
  std::string message;  // before the finding, if there is one
  std::optional<Finding> finding;
  std::string printed;  // by the kernel of a launch
};
// What ran since the start or the last reset.
struct Statistics {
  std::uint64_t launches, nanoseconds, copies, copied_bytes, host_copies, fetches;
  std::uint64_t held, held_bytes;  // allocations of programs
  std::uint64_t crossings;  // see Program
  std::map<std::string, std::uint64_t, std::less<>> kernels;  // launches of each
};
// What kernels and instrumented host code have reached.
struct Reached {
  std::vector<Coverage> kernels;
  std::vector<HostSite> host;
};
// All that the judge says of how kernels run.
struct Settings : Options, Policy {};

// The members of a struct that travel, and the names of an enumeration in the order of its values.
template <class T> struct Wire;
template <class M> struct Member {
  std::string_view name;
  M member;
};
template <class M> Member(const char*, M) -> Member<M>;

#define SIM_WIRE(TYPE, ...)                                        \
  template <> struct Wire<TYPE> {                                  \
    using T = TYPE;                                                \
    static constexpr std::tuple members = std::tuple{__VA_ARGS__}; \
  }
#define SIM_MEMBER(NAME) \
  Member { #NAME, &T::NAME }

SIM_WIRE(Line, SIM_MEMBER(file), SIM_MEMBER(line));
SIM_WIRE(Dim3, SIM_MEMBER(x), SIM_MEMBER(y), SIM_MEMBER(z));
SIM_WIRE(Place, SIM_MEMBER(file), SIM_MEMBER(line), SIM_MEMBER(calls), SIM_MEMBER(thread), SIM_MEMBER(block),
         SIM_MEMBER(does), SIM_MEMBER(bytes));
SIM_WIRE(Element, SIM_MEMBER(address), SIM_MEMBER(bytes));
SIM_WIRE(LastStore, SIM_MEMBER(by), SIM_MEMBER(kernel), SIM_MEMBER(place));
SIM_WIRE(Fact, SIM_MEMBER(name), SIM_MEMBER(value));
SIM_WIRE(Finding, SIM_MEMBER(kind), SIM_MEMBER(reason), SIM_MEMBER(kernel), SIM_MEMBER(file), SIM_MEMBER(line),
         SIM_MEMBER(places), SIM_MEMBER(facts), SIM_MEMBER(severity));
SIM_WIRE(Gap, SIM_MEMBER(kind), SIM_MEMBER(subject), SIM_MEMBER(feature), SIM_MEMBER(function), SIM_MEMBER(file),
         SIM_MEMBER(line));
SIM_WIRE(LineCount, SIM_MEMBER(kernel), SIM_MEMBER(file), SIM_MEMBER(line), SIM_MEMBER(instructions), SIM_MEMBER(lanes),
         SIM_MEMBER(global_requests), SIM_MEMBER(global_sectors), SIM_MEMBER(minimal_sectors), SIM_MEMBER(global_bytes),
         SIM_MEMBER(shared_requests), SIM_MEMBER(shared_wavefronts), SIM_MEMBER(minimal_wavefronts),
         SIM_MEMBER(barriers), SIM_MEMBER(undefined_lanes), SIM_MEMBER(atomics));
SIM_WIRE(Way, SIM_MEMBER(number), SIM_MEMBER(file), SIM_MEMBER(line), SIM_MEMBER(taken), SIM_MEMBER(passed));
SIM_WIRE(Comparison, SIM_MEMBER(below), SIM_MEMBER(equal), SIM_MEMBER(above), SIM_MEMBER(a_low), SIM_MEMBER(a_high),
         SIM_MEMBER(b_low), SIM_MEMBER(b_high), SIM_MEMBER(number), SIM_MEMBER(file), SIM_MEMBER(line),
         SIM_MEMBER(is_signed), SIM_MEMBER(equality));
SIM_WIRE(Coverage, SIM_MEMBER(kernel), SIM_MEMBER(fewest_blocks), SIM_MEMBER(most_blocks), SIM_MEMBER(most_across),
         SIM_MEMBER(resident), SIM_MEMBER(threads), SIM_MEMBER(shared_bytes), SIM_MEMBER(ways),
         SIM_MEMBER(comparisons));
SIM_WIRE(HostSite, SIM_MEMBER(below), SIM_MEMBER(equal), SIM_MEMBER(above), SIM_MEMBER(a_low), SIM_MEMBER(a_high),
         SIM_MEMBER(b_low), SIM_MEMBER(b_high), SIM_MEMBER(at), SIM_MEMBER(number), SIM_MEMBER(compares));
SIM_WIRE(Reached, SIM_MEMBER(kernels), SIM_MEMBER(host));
template <> struct Wire<LastStore::By> {
  static constexpr std::array<std::string_view, 3> values{"nothing", "copy", "kernel"};
};
template <> struct Wire<Severity> {
  static constexpr std::array<std::string_view, 2> values{"error", "warning"};
};
template <> struct Wire<Gap::Kind> {
  static constexpr std::array<std::string_view, 3> values{"instruction", "call", "code"};
};
template <> struct Wire<Space> {
  static constexpr std::array<std::string_view, 3> values{"device", "managed", "pinned"};
};
template <> struct Wire<Order> {
  static constexpr std::array<std::string_view, 3> values{"program", "reversed", "shuffled"};
};
SIM_WIRE(Outcome, SIM_MEMBER(code), SIM_MEMBER(error), SIM_MEMBER(message), SIM_MEMBER(finding), SIM_MEMBER(printed));
SIM_WIRE(Statistics, SIM_MEMBER(launches), SIM_MEMBER(nanoseconds), SIM_MEMBER(copies), SIM_MEMBER(copied_bytes),
         SIM_MEMBER(host_copies), SIM_MEMBER(fetches), SIM_MEMBER(held), SIM_MEMBER(held_bytes), SIM_MEMBER(crossings),
         SIM_MEMBER(kernels));
SIM_WIRE(Settings, SIM_MEMBER(memcheck), SIM_MEMBER(initcheck), SIM_MEMBER(racecheck), SIM_MEMBER(synccheck),
         SIM_MEMBER(counters), SIM_MEMBER(overflow), SIM_MEMBER(coverage), SIM_MEMBER(instruction_budget),
         SIM_MEMBER(total_budget), SIM_MEMBER(progress_budget), SIM_MEMBER(order), SIM_MEMBER(seed),
         SIM_MEMBER(threads), SIM_MEMBER(late_streams), SIM_MEMBER(open), SIM_MEMBER(leak_check), SIM_MEMBER(prints));
#undef SIM_MEMBER
#undef SIM_WIRE

template <class T>
concept Struct = requires { Wire<T>::members; };
template <class T>
concept Enumeration = requires { Wire<T>::values; };
template <class T, template <class...> class Of> inline constexpr bool is_a = false;
template <class... T, template <class...> class Of> inline constexpr bool is_a<Of<T...>, Of> = true;

// The name of a type, as driver.py has it: int, bool, text, bytes, [list], optional?, (pair,of),
// (member:type,and:so,on).
template <class T> std::string name_of() {
  if constexpr (std::is_void_v<T>) {
    return "nothing";
  } else if constexpr (std::is_same_v<T, bool>) {
    return "bool";
  } else if constexpr (std::is_integral_v<T>) {
    return "int";
  } else if constexpr (std::is_same_v<T, std::string>) {
    return "text";
  } else if constexpr (std::is_same_v<T, Content> || std::is_same_v<T, std::span<const std::byte>>) {
    return "bytes";
  } else if constexpr (std::ranges::sized_range<T>) {
    return "[" + name_of<typename T::value_type>() + "]";
  } else if constexpr (is_a<T, std::pair>) {
    return "(" + name_of<std::remove_const_t<typename T::first_type>>() + "," + name_of<typename T::second_type>() +
           ")";
  } else if constexpr (is_a<T, std::optional>) {
    return name_of<typename T::value_type>() + "?";
  } else if constexpr (is_a<T, std::variant>) {
    return name_of<std::variant_alternative_t<0, T>>() + "|" + name_of<std::variant_alternative_t<1, T>>();
  } else if constexpr (Enumeration<T>) {
    std::string all;
    for (const auto value : Wire<T>::values) all.append(all.empty() ? "" : "/").append(value);
    return all;
  } else {
    std::string all;
    const auto add = [&]<class M, class C>(const Member<M C::*>& item) {
      all.append(all.empty() ? "" : ",").append(item.name).append(":").append(name_of<M>());
    };
    std::apply([&](const auto&... item) { (add(item), ...); }, Wire<T>::members);
    return "(" + all + ")";
  }
}

template <class T> void put(Writer& out, const T& value) {
  const auto number = [&](auto n) { out.put(static_cast<std::uint64_t>(n)); };
  if constexpr (std::is_integral_v<T> || Enumeration<T>) {
    number(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    out.text(value);
  } else if constexpr (std::is_same_v<T, Content>) {
    value.fill(out.room(value.size));
  } else if constexpr (std::ranges::sized_range<T>) {
    number(value.size());
    for (const auto& item : value) put(out, item);
  } else if constexpr (is_a<T, std::pair>) {
    put(out, value.first);
    put(out, value.second);
  } else if constexpr (is_a<T, std::optional>) {
    number(value.has_value());
    if (value) put(out, *value);
  } else if constexpr (is_a<T, std::variant>) {
    number(value.index());
    std::visit([&](const auto& item) { put(out, item); }, value);
  } else {
    std::apply([&](const auto&... item) { (put(out, value.*item.member), ...); }, Wire<T>::members);
  }
}

template <class T> T take(Reader& in) {
  if constexpr (std::is_same_v<T, std::string>) {
    return std::string(in.text());
  } else if constexpr (std::is_same_v<T, std::span<const std::byte>>) {
    return in.bytes();
  } else if constexpr (is_a<T, std::vector>) {
    T list;
    for (auto n = in.take<std::uint64_t>(); n; --n) list.push_back(take<typename T::value_type>(in));
    return list;
  } else if constexpr (Struct<T>) {
    T value;
    const auto fill = [&]<class M>(M& member) { member = take<M>(in); };
    std::apply([&](const auto&... item) { (fill(value.*item.member), ...); }, Wire<T>::members);
    return value;
  } else {
    return static_cast<T>(in.take<std::uint64_t>());
  }
}

}  // namespace sim
