#include "engine/checks/unwritten.h"

#include <atomic>
#include <bit>
#include <cstring>
#include <string_view>
#include <unordered_set>

#include "engine/checks/checks.h"

namespace sim {
namespace {

using ptx::Operand;
using ptx::Statement;
using Value = UnwrittenValues::Value;
using Lanes = std::array<std::uint64_t, lane_count>;

std::uint64_t all_bits(unsigned bytes) { return bytes == 0 ? 1 : bytes >= 8 ? ~0ull : (1ull << 8 * bytes) - 1; }

void report(LaunchState& launch, const UnwrittenValues::Origin& origin) {
  if (launch.faulted || launch.seen(origin.kind, origin.site)) return;
  const std::lock_guard lock(launch.mutex);
  launch.findings.add(launch.unwritten_loads.at(origin.site));
}

const Statement& statement_of(const LaunchState& launch, const Frame& frame, std::uint32_t pc) {
  const auto& function = launch.module.functions[launch.program.functions[frame.function].number];
  return function.statements[launch.program.statements[pc]];
}

// Statements whose result is not a value of their lane's own sources alone, or that have none.
bool decides(std::string_view name) {
  static const std::unordered_set<std::string_view> table{
      "atom",  "red", "cp",   "bra",  "brx",  "call",     "bar", "barrier", "vote",     "match",
      "redux", "mma", "wmma", "exit", "trap", "mbarrier", "ret", "fns",     "ldmatrix", "nanosleep"};
  return table.contains(name);
}

constexpr std::size_t most_copies = 1 << 16;  // bytes that a launch keeps in mind

void copy_unwritten(Warp& w, const Access& a, Address address, const UnwrittenValues::Origin& origin) {
  LaunchState& launch = w.worker->launch;
  if (a.space == ptx::Space::shared) {
    w.block->written[address] = 0;
    w.block->copied_unwritten[static_cast<std::uint32_t>(address)] = origin;
    return;
  }
  const Memory& memory = launch.memory;
  if (!memory.has_shadow(address)) return;
  const auto bit = memory.bit_of(address);
  std::atomic_ref<std::uint8_t>(memory.written()[bit / 8]).fetch_and(static_cast<std::uint8_t>(~(1u << bit % 8)));
  const std::lock_guard lock(launch.mutex);
  if (launch.copied_unwritten.size() < most_copies) launch.copied_unwritten.insert_or_assign(address, origin);
}

// A statement that lanes of a warp execute.
class Step {
 public:
  Step(WarpState& state, Frame& frame, const Statement& s, Mask active)
      : w_(state.warp),
        launch_(w_.worker->launch),
        frame_(frame),
        code_(launch_.program.functions[frame.function]),
        function_(launch_.module.functions[code_.number]),
        s_(s),
        active_(active) {
    std::string_view rest = s.opcode;
    while (!rest.empty()) {
      const auto end = std::min(rest.find('.'), rest.size());
      words_.push_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }

  void follow(Mask mask) {
    if (s_.guard >= 0) report_if(s_.guard, mask);
    if (!active_ || s_.operands.empty()) return;
    const std::string_view name = words_[0];
    if (name == "st") return store();
    if (name == "ld") {
      report_registers(s_.operands[1]);
      return write({});
    }
    if (decides(name)) {
      const bool result = name != "red" && s_.operands[0].kind != Operand::Kind::address;
      for (std::size_t n = result; n < s_.operands.size(); ++n) report_registers(s_.operands[n]);
      if (result) write({});
      return;
    }
    Value value;
    for (std::size_t n = 1; n < s_.operands.size(); ++n) {
      const Value source = unwritten(s_.operands[n]);
      if (!value.origin.kind) value.origin = source.origin;
      for (unsigned l = 0; l < lane_count; ++l) value.bits[l] |= source.bits[l];
    }
    if (value.any()) compute(value);
    write(value);
  }

 private:
  unsigned width(std::int32_t reg) const { return function_.registers[static_cast<std::size_t>(reg)].bytes; }
  Slot slot(std::int32_t reg) const { return code_.registers[static_cast<std::size_t>(reg)]; }
  unsigned width(const Operand& o) const {
    if (o.kind == Operand::Kind::reg) return width(o.reg);
    unsigned bytes = 0;
    for (const auto& part : o.parts) bytes += width(part);
    return bytes;
  }
  bool is_word(std::size_t n, std::string_view word) const { return n < words_.size() && words_[n] == word; }

  // What is unwritten of a source; the parts of a vector lie one behind the other.
  Value unwritten(const Operand& o) const {
    Value value;
    if (o.kind == Operand::Kind::reg) {
      if (const Value* known = frame_.unwritten->find(slot(o.reg))) value = *known;
    }
    unsigned bit = 0;
    for (const auto& part : o.parts) {
      const Value one = unwritten(part);
      if (!value.origin.kind) value.origin = one.origin;
      for (unsigned l = 0; l < lane_count && bit < 64; ++l) value.bits[l] |= one.bits[l] << bit;
      bit += 8 * width(part);
    }
    return value;
  }
  // What the lanes hold; zeros of what is neither a register nor a number.
  Lanes content(const Operand& o) const {
    Lanes all{};
    if (o.kind == Operand::Kind::immediate) all.fill(o.bits);
    if (o.kind != Operand::Kind::reg) return all;
    const unsigned bytes = width(o.reg);
    const std::byte* at = lanes_at<std::byte>(w_, slot(o.reg));
    if (bytes == 0) {
      Mask mask;
      std::memcpy(&mask, at, sizeof mask);
      if (o.negated) mask = ~mask;
      for (unsigned l = 0; l < lane_count; ++l) all[l] = mask >> l & 1;
      return all;
    }
    for (unsigned l = 0; l < lane_count; ++l) std::memcpy(&all[l], at + std::size_t{l} * bytes, std::min(bytes, 8u));
    return all;
  }

  void report_if(std::int32_t reg, Mask lanes) {
    const Value* value = frame_.unwritten->find(slot(reg));
    if (!value) return;
    for (unsigned l = 0; l < lane_count; ++l) {
      if (lanes >> l & 1 && value->bits[l]) return report(launch_, value->origin);
    }
  }
  void report_registers(const Operand& o) {
    if (o.reg >= 0) report_if(o.reg, active_);
    for (const auto& part : o.parts) report_registers(part);
  }

  // Memory of a thread is not watched: only padding passes there.
  void store() {
    report_registers(s_.operands[0]);
    if (!is_word(1, "local") && !is_word(1, "param")) return;
    const auto& value = s_.operands[1];
    const auto each = [&](const Operand& o) {
      if (o.kind != Operand::Kind::reg) return;
      const Value* known = frame_.unwritten->find(slot(o.reg));
      if (!known) return;
      for (unsigned l = 0; l < lane_count; ++l) {
        if (active_ >> l & 1 && known->bits[l] & 0xff) return report(launch_, known->origin);
      }
    };
    each(value);
    for (const auto& part : value.parts) each(part);
  }

  void write(const Value& value) {
    const auto& to = s_.operands[0];
    if (to.kind == Operand::Kind::reg) {
      frame_.unwritten->set(slot(to.reg), value, active_);
    } else {
      unsigned bit = 0;
      for (const auto& part : to.parts) {
        const unsigned bytes = width(part);
        Value one{{}, value.origin};
        for (unsigned l = 0; l < lane_count && bit < 64; ++l) one.bits[l] = value.bits[l] >> bit & all_bits(bytes);
        if (part.kind == Operand::Kind::reg) frame_.unwritten->set(slot(part.reg), one, active_);
        bit += 8 * bytes;
      }
    }
    if (to.second >= 0) {
      Value predicate{{}, value.origin};
      for (unsigned l = 0; l < lane_count; ++l) predicate.bits[l] = value.bits[l] != 0;
      frame_.unwritten->set(slot(to.second), predicate, active_);
    }
  }

  // Of the result, where it is not that any bit of a source may change all of it. `value` holds the bits of all
  // sources.
  void compute(Value& value) {
    const std::string_view name = words_[0];
    const auto& o = s_.operands;
    if (name == "mov" || name == "cvta") return;
    const auto bytes = width(o[0]);
    const std::uint64_t all = all_bits(bytes);
    const auto lane = [&](auto f) {
      for (unsigned l = 0; l < lane_count; ++l) value.bits[l] = f(l) & all;
    };
    if (name == "not" || name == "xor") return;
    if ((name == "and" || name == "or") && o.size() == 3) {
      const Value ua = unwritten(o[1]), ub = unwritten(o[2]);
      const Lanes a = content(o[1]), b = content(o[2]);
      const std::uint64_t flip = name == "or" ? ~0ull : 0;
      return lane([&](unsigned l) {
        return (ua.bits[l] & ((b[l] ^ flip) | ub.bits[l])) | (ub.bits[l] & ((a[l] ^ flip) | ua.bits[l]));
      });
    }
    if (name == "selp") {
      const Value ua = unwritten(o[1]), ub = unwritten(o[2]), uc = unwritten(o[3]);
      const Lanes chosen = content(o[3]);
      return lane([&](unsigned l) { return uc.bits[l] ? ~0ull : (chosen[l] ? ua : ub).bits[l]; });
    }
    if (name == "shl" || name == "shr") {
      const Value ua = unwritten(o[1]), ub = unwritten(o[2]);
      const Lanes by = content(o[2]);
      const bool is_signed = is_word(1, "s16") || is_word(1, "s32") || is_word(1, "s64");
      return lane([&](unsigned l) -> std::uint64_t {
        const std::uint64_t n = by[l] & 0xffff'ffff;
        if (ub.bits[l] || (is_signed && ua.bits[l])) return ~0ull;
        if (n >= 8 * bytes) return 0;
        return name == "shl" ? ua.bits[l] << n : ua.bits[l] >> n;
      });
    }
    if (name == "bfe" && (is_word(1, "u32") || is_word(1, "u64"))) {
      const Value ua = unwritten(o[1]), ub = unwritten(o[2]), uc = unwritten(o[3]);
      const Lanes from = content(o[2]), count = content(o[3]);
      return lane([&](unsigned l) -> std::uint64_t {
        if (ub.bits[l] || uc.bits[l]) return ~0ull;
        const auto first = from[l] & 0xff, n = count[l] & 0xff;
        return first >= 64 ? 0 : ua.bits[l] >> first & (n >= 64 ? ~0ull : (1ull << n) - 1);
      });
    }
    if (name == "prmt" && words_.size() == 2) {
      const Value ua = unwritten(o[1]), ub = unwritten(o[2]), uc = unwritten(o[3]);
      const Lanes choice = content(o[3]);
      return lane([&](unsigned l) -> std::uint64_t {
        if (uc.bits[l]) return ~0ull;
        const std::uint64_t both = ua.bits[l] | ub.bits[l] << 32;
        std::uint64_t chosen = 0;
        for (unsigned n = 0; n < 4; ++n) {
          const auto c = choice[l] >> 4 * n;
          std::uint64_t byte = both >> 8 * (c & 7) & 0xff;
          if (c & 8) byte = byte & 0x80 ? 0xff : 0;  // the sign of that byte
          chosen |= byte << 8 * n;
        }
        return chosen;
      });
    }
    if (name == "cvt" && words_.size() == 3 && (words_[2][0] == 'u' || words_[2][0] == 's') &&
        (words_[1][0] == 'u' || words_[1][0] == 's')) {
      const unsigned from = words_[2].ends_with('8') ? 8 : 10 * (words_[2][1] - '0') + (words_[2][2] - '0');
      const std::uint64_t source = from == 64 ? ~0ull : (1ull << from) - 1;
      const bool is_signed = words_[2][0] == 's';
      return lane([&](unsigned l) {
        const auto kept = value.bits[l] & source;
        return is_signed && kept >> (from - 1) & 1 ? kept | ~source : kept;
      });
    }
    if (name == "setp" && o.size() == 4) {  // the comparison, combined with another predicate
      const Value ua = unwritten(o[1]), ub = unwritten(o[2]), uc = unwritten(o[3]);
      const Lanes other = content(o[3]);
      const bool both = std::ranges::find(words_, "and") != words_.end(),
                 either = std::ranges::find(words_, "or") != words_.end();
      return lane([&](unsigned l) -> std::uint64_t {
        if (uc.bits[l]) return 1;
        const bool settled = (both && !other[l]) || (either && other[l]);
        return !settled && (ua.bits[l] | ub.bits[l]);
      });
    }
    if (name == "shfl") return shuffle(value);
    value.origin.computed = true;
    lane([&](unsigned l) { return value.bits[l] ? ~0ull : 0; });
  }

  // PTX ISA 9.7.9.6, the lane that each one takes its value from.
  void shuffle(Value& value) {
    const auto& o = s_.operands;
    const Value source = unwritten(o[1]), of_lane = unwritten(o[2]), of_clamp = unwritten(o[3]);
    const Lanes by = content(o[2]), clamp = content(o[3]);
    for (unsigned l = 0; l < lane_count; ++l) {
      const unsigned b = by[l] & 31, c = clamp[l] & 31, segment = clamp[l] >> 8 & 31;
      const unsigned last = (l & segment) | (c & ~segment), first = l & segment;
      unsigned from = is_word(2, "up")     ? l - b
                      : is_word(2, "down") ? l + b
                      : is_word(2, "bfly") ? l ^ b
                                           : first | (b & ~segment);
      const bool inside = is_word(2, "up") ? static_cast<int>(from) >= static_cast<int>(last) : from <= last;
      if (!inside) from = l;
      value.bits[l] = of_lane.bits[l] || of_clamp.bits[l] ? all_bits(4) : source.bits[from % lane_count];
    }
  }

  Warp& w_;
  LaunchState& launch_;
  Frame& frame_;
  const FunctionCode& code_;
  const ptx::Function& function_;
  const Statement& s_;
  Mask active_;
  std::vector<std::string_view> words_;
};

}  // namespace

void follow_unwritten(WarpState& state, Frame& frame, std::uint32_t pc, Mask mask, Mask active) {
  const LaunchState& launch = state.warp.worker->launch;
  const auto& all = launch.program.statements;
  const auto entry = launch.program.functions[frame.function].entry;
  const auto count = launch.module.functions[launch.program.functions[frame.function].number].statements.size();
  if (all[pc] >= count || (pc > entry && all[pc - 1] == all[pc]))
    return;  // the end; a statement's further instructions
  Step(state, frame, statement_of(launch, frame, pc), active).follow(mask);
  if (frame.unwritten->empty()) frame.unwritten.reset();
}

bool is_followed(const Warp& w, const Instruction& i) {
  const Worker& worker = *w.worker;
  return statement_of(worker.launch, *worker.frame, i.site).opcode.starts_with("ld.");
}

void note_unwritten(Warp& w, const Instruction& i, const Access& a, const Missing& missing, const char* kind) {
  const LaunchState& launch = w.worker->launch;
  Frame& frame = *w.worker->frame;
  if (!frame.unwritten) frame.unwritten = std::make_unique<UnwrittenValues>();
  const FunctionCode& code = launch.program.functions[frame.function];
  const Statement& s = statement_of(launch, frame, i.site);
  const auto first = missing[static_cast<std::size_t>(std::countr_zero(a.mask))];
  bool data = s.opcode.ends_with(".f32") || s.opcode.ends_with(".f64");
  for (Mask m = a.mask; m; m &= m - 1) data |= missing[static_cast<std::size_t>(std::countr_zero(m))] != first;
  std::uint32_t offset = 0;
  const auto load = [&](const Operand& o) {
    Value value{{}, {kind, i.site, false, data}};
    for (Mask m = a.mask; m; m &= m - 1) {
      const auto l = static_cast<std::size_t>(std::countr_zero(m));
      const std::uint32_t bytes = missing[l] >> offset;
      for (unsigned n = 0; n < a.element; ++n) value.bits[l] |= bytes >> n & 1 ? 0xffull << 8 * n : 0;
      if (value.bits[l] && a.space == ptx::Space::shared) {  // which may be a copy of what another load has read
        const auto& copies = w.block->copied_unwritten;
        const auto copy = copies.find(static_cast<std::uint32_t>(a.address[l] + offset));
        if (copy != copies.end()) value.origin = copy->second;
      }
    }
    offset += a.element;
    if (o.kind == Operand::Kind::reg && value.any())
      frame.unwritten->set(code.registers[static_cast<std::size_t>(o.reg)], value, a.mask);
  };
  const auto& to = s.operands[0];
  if (to.kind == Operand::Kind::vector) {
    for (const auto& part : to.parts) load(part);
  } else {
    load(to);
  }
  if (frame.unwritten->empty()) frame.unwritten.reset();
}

void store_unwritten(Warp& w, const Instruction& i, const Access& a) {
  LaunchState& launch = w.worker->launch;
  const Frame& frame = *w.worker->frame;
  const Statement& s = statement_of(launch, frame, i.site);
  if (!s.opcode.starts_with("st.")) return;
  const FunctionCode& code = launch.program.functions[frame.function];
  std::uint32_t offset = 0;
  const auto store = [&](const Operand& o) {
    const std::uint32_t at = offset;
    offset += a.element;
    if (o.kind != Operand::Kind::reg) return;
    const Value* value = frame.unwritten->find(code.registers[static_cast<std::size_t>(o.reg)]);
    if (!value) return;
    for (Mask m = a.mask; m; m &= m - 1) {
      const auto l = static_cast<unsigned>(std::countr_zero(m));
      if (!value->bits[l]) continue;
      if (value->origin.computed || value->origin.data) return report(launch, value->origin);
      for (unsigned n = 0; n < a.element; ++n) {
        if (value->bits[l] >> 8 * n & 0xff) copy_unwritten(w, a, a.address[l] + at + n, value->origin);
      }
    }
  };
  if (s.operands[1].kind == Operand::Kind::vector) {
    for (const auto& part : s.operands[1].parts) store(part);
  } else {
    store(s.operands[1]);
  }
}

void settle_unwritten(LaunchState& launch) {
  const Memory& memory = launch.memory;
  const auto missing = [&](Address at) {
    const auto bit = memory.bit_of(at);
    return (memory.written()[bit / 8] >> bit % 8 & 1) == 0;
  };
  for (const auto& [address, origin] : launch.copied_unwritten) {
    const auto found = memory.find(address);
    if (!found || !missing(address)) continue;
    Address first = address, end = address + 1;
    while (first > found->base && missing(first - 1) && address - first < most_padding) --first;
    while (end < found->base + found->size && missing(end) && end - address < most_padding) ++end;
    const Address alignment = (end - found->base) & -(end - found->base);
    if (first == found->base || end - first >= std::min<Address>(alignment, most_padding)) report(launch, origin);
  }
}

}  // namespace sim
