// From parsed statements to instructions with resolved operands and handlers.
#include <array>
#include <optional>
#include <set>

#include "engine/decode_operands.h"
#include "engine/hooks.h"

namespace sim {
namespace {

using Words = std::vector<std::string_view>;

Words split(std::string_view opcode) {
  Words result;
  while (true) {
    const auto dot = opcode.find('.');
    result.push_back(opcode.substr(0, dot));
    if (dot == opcode.npos) return result;
    opcode.remove_prefix(dot + 1);
  }
}
std::string join(const Words& words) {
  std::string result;
  for (const auto word : words) {
    if (!result.empty()) result += '.';
    result += word;
  }
  return result;
}
bool has(const Words& words, std::string_view word) { return std::find(words.begin(), words.end(), word) != words.end(); }
void drop(Words& words, std::string_view word) { std::erase(words, word); }
std::string bits_name(unsigned bytes) { return ".b" + std::to_string(8 * bytes); }

const Type word32{"u32", 4, false, false}, word64{"u64", 8, false, false}, predicate_type{"pred", 0, false, false};


struct Decoder : OperandDecoder {
  using OperandDecoder::OperandDecoder;
  using Method = void (Decoder::*)(const Words&);

  const Type& type_of(const Words& words) const {
    for (auto word = words.rbegin(); word != words.rend(); ++word) {
      if (const Type* type = find_type(*word)) return *type;
    }
    refuse("the type of");
  }

  // --- plain instructions: a form and a handler named like the mnemonic

  void plain(Words words) {
    const auto form = form_of(words[0]);
    if (form.empty()) refuse("the instruction");
    const Type& type = type_of(words);
    const bool wide = has(words, "wide");
    if (type.real || type.name.find("f16") != type.name.npos) drop(words, "rn");
    const std::string name = join(words);
    const Handler found = handler(name);
    const Type twice{"", 2 * type.bytes, type.is_signed, false};
    std::vector<Slot> slots;
    std::int64_t extra = 0;
    if (statement->operands.size() != form.size()) refuse("the operands of");
    for (std::size_t n = 0; n < form.size(); ++n) {
      const Operand& o = operand(n);
      switch (form[n]) {
        case 'd': slots.push_back(destination(o, wide ? twice : type)); break;
        case 's': slots.push_back(source(o, wide && n == 3 ? twice : type)); break;
        case 'U': slots.push_back(destination(o, word32)); break;
        case 'u': slots.push_back(source(o, word32)); break;
        case 'p': slots.push_back(source(o, predicate_type)); break;
        case 'P': slots.push_back(destination(o, predicate_type)); break;
        default: extra = static_cast<std::int64_t>(o.bits); break;
      }
    }
    auto& i = emit(found, slots);
    i.offset = extra;
    if (has(words, "cc") || words[0].ends_with('c')) i.o[5] = slot(frame_bank, carry_offset);
  }

  void move(const Words& words) {
    const Type& type = type_of(words);
    if (operand(0).kind == Operand::Kind::vector) return unpack(type);
    if (alias(operand(0), operand(1), type)) return;
    const std::string name = type.bytes ? "mov" + bits_name(type.bytes) : "mov.pred";
    const Slot from = source(operand(1), type);
    emit(handler(name), {destination(operand(0), type), from});
  }
  void unpack(const Type& type) {
    const auto& parts = operand(0).parts;
    const auto count = static_cast<unsigned>(parts.size());
    if (count < 2 || count > 4 || type.bytes % count) refuse("the vector in");
    const Type part{"", type.bytes / count, false, false};
    const Slot from = source(operand(1), type);
    std::vector<Slot> slots;
    std::uint32_t wanted = 0;
    for (unsigned n = 0; n < count; ++n) {
      slots.push_back(destination(parts[n], part));
      if (parts[n].kind != Operand::Kind::sink) wanted |= 1u << n;
    }
    slots.push_back(from);
    emit(handler("unpack" + bits_name(type.bytes) + bits_name(part.bytes)), slots).target = wanted;
  }

  void convert(const Words& words) {
    if (words.size() < 3) refuse("the instruction");
    const Type *to = find_type(words[words.size() - 2]), *from = find_type(words.back());
    if (!to || !from) refuse("the types of");
    const Handler found = handler(join(words));
    std::vector<Slot> slots{destination(operand(0), *to)};
    for (std::size_t n = 1; n < statement->operands.size(); ++n) slots.push_back(source(operand(n), *from));
    if (slots.size() != (to->name.ends_with("x2") ? 3u : 2u)) refuse("the operands of");
    emit(found, slots);
  }

  void compare(const Words& words) {  // setp and set
    static const std::array<std::string_view, 4> combinations{"", "and", "or", "xor"};
    Words name = words;
    std::int64_t how = 0;
    for (std::int64_t n = 1; n < 4; ++n) {
      if (has(words, combinations[static_cast<std::size_t>(n)])) how = n;
    }
    if (how) drop(name, combinations[static_cast<std::size_t>(how)]);
    // lo, ls, hi, hs are the unsigned comparisons under other names.
    static const std::unordered_map<std::string_view, std::string_view> aliases{{"lo", "lt"}, {"ls", "le"}, {"hi", "gt"}, {"hs", "ge"}};
    if (const auto alias = aliases.find(name.size() > 1 ? name[1] : ""); alias != aliases.end()) name[1] = alias->second;
    const bool set = words[0] == "set";
    const Type& from = *find_type(words.back());
    const Type& to = set ? type_of(Words(words.begin(), words.end() - 1)) : predicate_type;
    const Handler found = handler(join(name));
    std::vector<Slot> slots{destination(operand(0), to), 0, source(operand(1), from), source(operand(2), from)};
    const std::int32_t second = operand(0).second;
    if (second != -1) slots[1] = predicate_at(second);
    if (how) slots.push_back(source(operand(3), predicate_type));
    auto& i = emit(found, slots);
    i.offset = how;
    i.target = second != -1;
  }

  void select(const Words& words) {  // slct
    const Type& condition = *find_type(words.back());
    const Type& type = type_of(Words(words.begin(), words.end() - 1));
    emit(handler(join(words)), {destination(operand(0), type), source(operand(1), type), source(operand(2), type), source(operand(3), condition)});
  }

  // --- addresses and memory

  Space space_in(const Words& words) const {
    static const std::unordered_map<std::string_view, Space> table{{"global", Space::global}, {"shared", Space::shared},
        {"shared::cta", Space::shared}, {"local", Space::local}, {"const", Space::constant}, {"param", Space::parameter},
        {"param::entry", Space::parameter}, {"param::func", Space::parameter}};
    for (const auto word : words) {
      if (const auto found = table.find(word); found != table.end()) return found->second;
    }
    return Space::generic;
  }
  static const char* space_name(Space space) {
    switch (space) {
      case Space::global: case Space::constant: return "global";
      case Space::shared: return "shared";
      case Space::local: return "local";
      default: return "generic";
    }
  }

  struct Address {
    Slot base;
    std::int64_t offset;
    bool narrow;
  };
  Address address(const Operand& o) {
    if (o.kind != Operand::Kind::address) refuse("the address of");
    if (o.reg >= 0) {
      const unsigned bytes = width(o.reg);
      if (bytes != 4 && bytes != 8) refuse("the address register of");
      return {register_slot(o.reg), static_cast<std::int64_t>(o.bits), bytes == 4};
    }
    if (o.name.empty()) return {constant(o.bits, 8), 0, false};
    Operand symbol = o;
    symbol.kind = Operand::Kind::symbol;
    symbol.bits = 0;
    return {source(symbol, word64), static_cast<std::int64_t>(o.bits), false};
  }

  static constexpr std::string_view cache_words[] = {
      "weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "cta", "cluster", "gpu", "sys", "ca", "cg", "cs",
      "lu", "cv", "wb", "wt", "nc", "global", "shared", "local", "const", "param", "shared::cta", "param::entry",
      "param::func", "v2", "v4", "mmio", "noftz", "unified"};
  void check_modifiers(const Words& words) const {
    for (std::size_t n = 1; n < words.size(); ++n) {
      const auto word = words[n];
      const bool known = find_type(word) || word.starts_with("L1::") || word.starts_with("L2::") ||
                         std::find(std::begin(cache_words), std::end(cache_words), word) != std::end(cache_words);
      if (!known) refuse("the modifier ." + std::string(word) + " of");
    }
  }

  void load(const Words& words) {
    check_modifiers(words);
    const Space space = space_in(words);
    const Type& type = type_of(words);
    if (type.bytes == 0) refuse("the type of");
    if (space == Space::parameter) return load_parameter(words, type);
    const auto elements = vector_of(operand(0), words);
    std::vector<Slot> slots;
    for (const auto* o : elements) slots.push_back(destination(*o, type));
    memory(words, "ld.", space, type, slots, operand(1));
  }
  void store(const Words& words) {
    check_modifiers(words);
    const Space space = space_in(words);
    const Type& type = type_of(words);
    if (type.bytes == 0) refuse("the type of");
    if (space == Space::parameter) return store_parameter(words, type);
    const auto elements = vector_of(operand(1), words);
    std::vector<Slot> slots;
    for (const auto* o : elements) slots.push_back(source(*o, type));
    memory(words, "st.", space, type, slots, operand(0));
  }
  std::vector<const Operand*> vector_of(const Operand& o, const Words& words) const {
    const std::size_t count = has(words, "v4") ? 4 : has(words, "v2") ? 2 : 1;
    std::vector<const Operand*> result;
    if (o.kind == Operand::Kind::vector) {
      for (const auto& part : o.parts) result.push_back(&part);
    } else {
      result.push_back(&o);
    }
    if (result.size() != count) refuse("the vector of");
    return result;
  }
  void memory(const Words& words, const char* kind, Space space, const Type& type, std::vector<Slot> slots, const Operand& at) {
    const auto count = slots.size();
    const Address a = address(at);
    slots.push_back(a.base);
    const std::string vector = count > 1 ? ".v" + std::to_string(count) : "";
    auto& i = emit(handler(kind + std::string(space_name(space)) + vector + bits_name(type.bytes)), slots);
    finish_access(i, a, space, static_cast<unsigned>(type.bytes * count));
    if (kind[0] == 'l') plain_loads[i.site] = static_cast<std::uint32_t>(count);
    i.is_volatile = has(words, "volatile") || has(words, "relaxed") || has(words, "acquire") || has(words, "release");
    i.may_spin = i.is_volatile && kind[0] == 'l';
    if (space == Space::shared || space == Space::generic) program.shared_granule = std::min(program.shared_granule, type.bytes < 4 ? 1u : 4u);
  }
  static void finish_access(Instruction& i, const Address& a, Space space, unsigned size) {
    i.flow = Flow::memory;
    i.space = space;
    i.offset = a.offset;
    i.narrow_address = a.narrow;
    i.size = static_cast<std::uint8_t>(size);
  }

  // A parameter of the kernel with a fixed address is a value that the launch lays down; others are read where they lie.
  void load_parameter(const Words& words, const Type& type) {
    const Operand& at = operand(1);
    const auto elements = vector_of(operand(0), words);
    std::uint64_t offset = at.bits;
    for (const auto* o : elements) {
      const bool fixed = is_kernel && at.reg < 0 && formal.contains(at.name) && !in_scope(areas, at);
      if (fixed && o->kind == Operand::Kind::reg && width(o->reg) == type.bytes && is_written_once(o->reg) && statement->guard < 0 &&
          !mentioned[static_cast<std::size_t>(o->reg)]) {
        alias(*o, kernel_parameter(formal.at(at.name), type, offset));
        offset += type.bytes;
        continue;
      }
      const Slot to = destination(*o, type);
      if (at.reg >= 0) {
        auto& i = emit(handler("ld.kernel" + bits_name(type.bytes)), {to, register_slot(at.reg)});
        if (width(at.reg) != 8) refuse("the address register of");
        i.offset = static_cast<std::int64_t>(offset);
      } else if (const Area* area = in_scope(areas, at)) {
        from_area("ld.call", *area, to, type, offset);
      } else if (const auto found = formal.find(at.name); found == formal.end()) {
        refuse("the parameter of");
      } else if (!is_kernel) {
        from_area("ld.call", found->second, to, type, offset);
      } else {
        emit(handler("mov" + bits_name(type.bytes)), {to, kernel_parameter(found->second, type, offset)});
      }
      offset += type.bytes;
    }
  }
  Slot kernel_parameter(const Area& area, const Type& type, std::uint64_t offset) {
    if (offset + type.bytes > area.size) refuse("an access beyond the parameter in");
    const auto at = area.offset + static_cast<std::uint32_t>(offset);
    const auto [entry, fresh] = parameter_slots.try_emplace({at, type.bytes}, 0);
    if (fresh) {
      const auto place = align(program.launch_bank_bytes, 64);
      program.launch_bank_bytes = place + type.bytes * lane_count;
      program.parameter_slots.push_back({at, type.bytes, place});
      entry->second = slot(launch_bank, place);
    }
    return entry->second;
  }
  void from_area(const char* name, const Area& area, Slot value, const Type& type, std::uint64_t offset) {
    if (offset + type.bytes > area.size) refuse("an access beyond the parameter in");
    auto& i = emit(handler(name + bits_name(type.bytes)), {value});
    i.o[5] = slot(frame_bank, area.offset);
    i.target = area.size;
    i.offset = static_cast<std::int64_t>(offset);
  }
  void store_parameter(const Words& words, const Type& type) {
    const Operand& at = operand(0);
    const Area* area = in_scope(areas, at);
    if (!area) {
      const auto found = formal.find(at.name);
      if (found == formal.end() || is_kernel) refuse("the parameter of");
      area = &found->second;
    }
    std::uint64_t offset = at.bits;
    for (const auto* o : vector_of(operand(1), words)) {
      from_area("st.call", *area, source(*o, type), type, offset);
      offset += type.bytes;
    }
  }

  void atomic(const Words& words) {
    static const std::array<std::string_view, 11> operations{"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec", "sub"};
    const Type& type = type_of(words);
    const Space space = space_in(words);
    const bool result = words[0] == "atom" && operand(0).kind != Operand::Kind::sink;
    std::string operation;
    for (const auto word : words) {
      if (std::find(operations.begin(), operations.end(), word) != operations.end()) operation = "." + std::string(word);
    }
    if (has(words, "v2") || has(words, "v4") || has(words, "v8")) refuse("the vector of");
    std::string suffix = "." + std::string(type.name);
    const bool bitwise = operation == ".exch" || operation == ".cas" || operation == ".and" || operation == ".or" || operation == ".xor";
    if (bitwise) suffix = bits_name(type.bytes);
    const bool half = type.name.find("f16") != type.name.npos;
    std::size_t n = words[0] == "atom" ? 1 : 0;
    const Address a = address(operand(n));
    std::vector<Slot> slots;
    if (result) slots.push_back(destination(operand(0), type));
    slots.push_back(a.base);
    slots.push_back(source(operand(++n), type));
    if (operation == ".cas") slots.push_back(source(operand(++n), type));
    const std::string name = std::string(result ? "atom." : "red.") + space_name(space) + operation + (half ? ".noftz" : "") + suffix;
    auto& i = emit(handler(name), slots);
    finish_access(i, a, space, type.bytes);
    i.is_volatile = true;
    i.may_spin = operation == ".cas" || operation == ".exch";
    if (operation == ".cas" && result) compares_and_swaps.insert(i.site);
    if (has(words, "acq_rel") || has(words, "acquire") || has(words, "release")) i.target = 1;
    if (space != Space::global && type.bytes < 4) program.shared_granule = 1;
  }

  void copy_async(const Words& words) {
    if (words.size() < 3 || (words[2] != "ca" && words[2] != "cg")) {
      if (words.size() == 3 && (words[2] == "commit_group" || words[2] == "wait_group" || words[2] == "wait_all")) return nothing(words);
      refuse("the instruction");
    }
    const auto size = operand(2).bits;
    const Address to = address(operand(0)), from = address(operand(1));
    if (from.narrow || from.offset != static_cast<std::int32_t>(from.offset)) refuse("the address of");
    Slot bytes = constant(size, 4);
    if (statement->operands.size() > 3 && !has(words, "L2::cache_hint")) bytes = source(operand(3), word32);
    auto& i = emit(handler("cp.async." + std::to_string(size)), {to.base, from.base, bytes});
    finish_access(i, to, Space::shared, static_cast<unsigned>(size));
    i.target = static_cast<std::uint32_t>(static_cast<std::int32_t>(from.offset));
  }

  void to_address(const Words& words) {  // cvta
    static const std::unordered_map<std::string_view, Address_> windows{{"shared", {shared_window}}, {"shared::cta", {shared_window}}, {"local", {local_window}}};
    const Type& type = type_of(words);
    const auto found = windows.find(words[words.size() - 2]);
    if (found == windows.end() && alias(operand(0), operand(1), type)) return;
    const Slot from = source(operand(1), type), to = destination(operand(0), type);
    if (found == windows.end()) {
      emit(handler("mov" + bits_name(type.bytes)), {to, from});
      return;
    }
    if (type.bytes != 8) refuse("the instruction");
    const auto base = static_cast<std::int64_t>(found->second.value);
    emit(handler("shift_address"), {to, from}).offset = words[1] == "to" ? -base : base;
  }
  struct Address_ {
    sim::Address value;
  };

  void is_space(const Words& words) {
    auto& i = emit(handler("isspacep"), {destination(operand(0), predicate_type), source(operand(1), word64)});
    i.space = space_in(words);
    if (i.space == Space::constant) refuse("the instruction");
  }

  // --- control

  std::uint32_t label(const Operand& o) const {
    const auto* found = in_scope(function->labels, o);
    if (!found) refuse("the label of");
    return *found;
  }
  void branch(const Words& words) {
    if (words[0] == "brx") {
      const auto found = function->branch_targets.find(operand(1).name);
      if (found == function->branch_targets.end()) refuse("the table of");
      std::vector<std::uint32_t> targets;
      for (const auto& target : found->second) targets.push_back(label(target));
      auto& i = emit(nullptr, {source(operand(0), word32)});
      i.flow = Flow::table;
      table_fixups.emplace_back(program.code.size() - 1, std::move(targets));
      return;
    }
    emit(nullptr, {}).flow = Flow::branch;
    fixups.push_back({program.code.size() - 1, label(operand(0))});
  }
  void leave(const Words& words) { emit(nullptr, {}).flow = words[0] == "exit" || is_kernel ? Flow::exit : Flow::ret; }
  void trap(const Words&) { emit(nullptr, {}).flow = Flow::trap; }
  void sleep(const Words&) { emit(handler("nothing"), {}).flow = Flow::yield; }
  void nothing(const Words&) { emit(handler("nothing"), {}); }
  void fence_(const Words&) { emit(fence, {}); }

  Area area_of(const Operand& o) const {
    if (const Area* area = in_scope(areas, o)) return *area;
    if (const auto found = formal.find(o.name); found != formal.end() && !is_kernel) return found->second;
    refuse("the argument of");
  }
  void call(const Words&) {
    static const std::unordered_map<std::string_view, Builtin> builtins{
        {"vprintf", Builtin::vprintf}, {"__assertfail", Builtin::assertfail}, {"malloc", Builtin::malloc}, {"free", Builtin::free}};
    std::size_t n = 0;
    CallSite site;
    if (operand(0).kind == Operand::Kind::vector) {
      for (const auto& o : operand(n++).parts) site.results.push_back(area_of(o));
    }
    const Operand& callee = operand(n++);
    if (n < statement->operands.size() && operand(n).kind == Operand::Kind::vector) {
      for (const auto& o : operand(n).parts) site.arguments.push_back(area_of(o));
    }
    Slot through = 0;
    if (callee.kind == Operand::Kind::reg) {
      through = source(callee, word64);
      for (std::uint32_t f = 0; f < module.functions.size(); ++f) {
        if (!module.functions[f].entry && module.functions[f].defined) want(f);
      }
    } else if (const auto builtin = builtins.find(callee.name); builtin != builtins.end()) {
      site.builtin = builtin->second;
    } else {
      const auto found = module.by_name.find(callee.name);
      if (found == module.by_name.end() || !module.functions[found->second].defined) refuse("the function " + std::string(callee.name) + " in");
      site.function = static_cast<std::int32_t>(want(found->second));
    }
    auto& i = emit(nullptr, {through});
    i.flow = Flow::call;
    i.target = static_cast<std::uint32_t>(program.calls.size());
    program.calls.push_back(std::move(site));
  }
  std::uint32_t want(std::uint32_t number) {
    const auto [at, fresh] = program.function_by_number.try_emplace(number, static_cast<std::uint32_t>(program.functions.size()));
    if (fresh) {
      program.functions.push_back({.number = number, .name = module.functions[number].name, .parameters = {}, .results = {}});
      pending.push_back(number);
    }
    return at->second;
  }

  // bar.sync, bar.red, bar.arrive. o: result, barrier, count, predicate. target: 1 counted, 2 aligned, 4 negated, and the
  // operation from bit 4 on: 1 popc, 2 and, 3 or.
  void barrier(const Words& words) {
    if (has(words, "warp")) {
      auto& i = emit(handler("bar.warp.sync"), {source(operand(0), word32)});
      i.flow = Flow::collective;
      i.offset = 0;
      return;
    }
    const bool aligned = words[0] == "bar" || has(words, "aligned");
    std::uint32_t how = aligned ? 2 : 0;
    std::size_t n = 0;
    std::vector<Slot> slots(4);
    if (has(words, "red")) {
      how |= has(words, "popc") ? 1 << 4 : has(words, "and") ? 2 << 4 : 3 << 4;
      slots[0] = destination(operand(n++), has(words, "popc") ? word32 : predicate_type);
    }
    slots[1] = source(operand(n++), word32);
    const std::size_t left = statement->operands.size() - n - (how >> 4 ? 1 : 0);
    if (left) {
      slots[2] = source(operand(n++), word32);
      how |= 1;
    }
    if (how >> 4) slots[3] = source(operand(n), predicate_type);
    auto& i = emit(handler("nothing"), slots);
    i.flow = has(words, "arrive") ? Flow::arrive : Flow::barrier;
    i.target = how;
  }

  // --- collectives: the slot of the member mask is number `offset`

  void shuffle(const Words& words) {
    const std::int32_t second = operand(0).second;
    std::vector<Slot> slots{destination(operand(0), word32), second == -1 ? 0 : predicate_at(second)};
    for (std::size_t n = 1; n < 5; ++n) slots.push_back(source(operand(n), word32));
    auto& i = emit(handler(join(words)), slots);
    i.flow = Flow::collective;
    i.offset = 5;
    i.target = second != -1;
  }
  void vote(const Words& words) {
    const bool ballot = has(words, "ballot");
    auto& i = emit(handler(join(words)), {destination(operand(0), ballot ? word32 : predicate_type), source(operand(1), predicate_type), source(operand(2), word32)});
    i.flow = Flow::collective;
    i.offset = 2;
  }
  void match(const Words& words) {
    const std::int32_t second = operand(0).second;
    auto& i = emit(handler(join(words)), {destination(operand(0), word32), second == -1 ? 0 : predicate_at(second), source(operand(1), type_of(words)), source(operand(2), word32)});
    i.flow = Flow::collective;
    i.offset = 3;
    i.target = second != -1;
  }
  void reduce(const Words& words) {
    auto& i = emit(handler(join(words)), {destination(operand(0), word32), source(operand(1), word32), source(operand(2), word32)});
    i.flow = Flow::collective;
    i.offset = 2;
  }
  void active_mask(const Words& words) { emit(handler(join(words)), {destination(operand(0), word32)}); }

  void one_statement() {
    static const std::unordered_map<std::string_view, Method> methods{
        {"mov", &Decoder::move}, {"cvt", &Decoder::convert}, {"setp", &Decoder::compare}, {"set", &Decoder::compare},
        {"slct", &Decoder::select}, {"ld", &Decoder::load}, {"ldu", &Decoder::load}, {"st", &Decoder::store},
        {"atom", &Decoder::atomic}, {"red", &Decoder::atomic}, {"cvta", &Decoder::to_address}, {"isspacep", &Decoder::is_space},
        {"bra", &Decoder::branch}, {"brx", &Decoder::branch}, {"ret", &Decoder::leave}, {"exit", &Decoder::leave},
        {"trap", &Decoder::trap}, {"brkpt", &Decoder::trap}, {"nanosleep", &Decoder::sleep}, {"membar", &Decoder::fence_},
        {"fence", &Decoder::fence_}, {"call", &Decoder::call}, {"bar", &Decoder::barrier}, {"barrier", &Decoder::barrier},
        {"shfl", &Decoder::shuffle}, {"vote", &Decoder::vote}, {"match", &Decoder::match}, {"redux", &Decoder::reduce},
        {"activemask", &Decoder::active_mask}, {"prefetch", &Decoder::nothing}, {"prefetchu", &Decoder::nothing},
        {"pmevent", &Decoder::nothing}, {"discard", &Decoder::nothing}, {"applypriority", &Decoder::nothing},
        {"griddepcontrol", &Decoder::nothing}};
    Words words = split(statement->opcode);
    drop(words, "uni");
    if (words[0] == "cp") return copy_async(words);
    if (words[0] == "vote" && statement->opcode.find(".uni") != statement->opcode.npos) words = split(statement->opcode);
    if (const auto found = methods.find(words[0]); found != methods.end()) return (this->*found->second)(words);
    plain(std::move(words));
  }

  // --- functions

  void lay_out_areas(FunctionCode& code) {
    const auto area = [&](const ptx::Variable& v) {
      const auto size = align(static_cast<std::uint32_t>(v.size), 16);
      frame_bytes = align(frame_bytes, 64) + size * lane_count;
      return Area{frame_bytes - size * lane_count, size};
    };
      if (v_too_large()) refuse("so large a parameter");
    areas.clear();
    formal.clear();
    if (is_kernel) {
      for (std::size_t n = 0; n < function->parameters.size(); ++n) formal[function->parameters[n].name] = kernel_parameters[n];
    } else {
      for (const auto& v : function->parameters) code.parameters.push_back(formal[v.name] = area(v));
      for (const auto& v : function->results) code.results.push_back(formal[v.name] = area(v));
    }
    for (const auto& v : function->variables) {
      if (v.space == Space::parameter) areas[{v.scope, v.name}] = area(v);
    }
  }
  bool v_too_large() const {
    std::size_t total = 0;
    for (const auto* list : {&function->parameters, &function->results, &function->variables}) {
      for (const auto& v : *list) total += v.space == Space::parameter ? v.size : 0;
    }
    return total > 65536;
  }

  void find_lines() {
    statement_line.clear();
    std::uint32_t known = 0;
    for (const auto& s : function->statements) {
      if (module.places[s.place].line) known = s.place;
      statement_line.push_back(known);
    }
    known = 0;
    for (auto n = statement_line.size(); n-- > 0;) {
      if (statement_line[n]) known = statement_line[n]; else statement_line[n] = known;
    }
  }

  void one_function(std::uint32_t number) {
    function = &module.functions[number];
    statement = nullptr;
    if (!function->unknown.empty()) refuse("'" + function->unknown + "'");
    is_kernel = function->entry;
    find_lines();
    frame_bytes = frame_header;
    FunctionCode code = program.functions[program.function_by_number[number]];
    registers.clear();
    for (const auto& r : function->registers) registers.push_back(in_frame(r.bytes));
    count_definitions();
    lay_out_areas(code);
    locals.clear();
    std::uint32_t local = 0;
    for (const auto& v : function->variables) {
      if (v.space != Space::local) continue;
      if (v.size > (1u << 24)) refuse("so much local memory");
      local = align(local, static_cast<std::uint32_t>(v.alignment));
      locals[{v.scope, v.name}] = local;
      local += static_cast<std::uint32_t>(v.size);
    }
    code.local_bytes = align(local, 16);
    code.entry = static_cast<std::uint32_t>(program.code.size());
    temporaries.clear();
    fixups.clear();
    table_fixups.clear();
    statement_pc.clear();
    for (const auto& s : function->statements) {
      statement = &s;
      statement_pc.push_back(static_cast<std::uint32_t>(program.code.size()));
      one_statement();
      finish_statement();
    }
    statement_pc.push_back(static_cast<std::uint32_t>(program.code.size()));
    auto& last = program.code.emplace_back();
    last.flow = is_kernel ? Flow::exit : Flow::ret;
    last.place = statement_line.empty() ? 0 : statement_line.back();
    last.site = static_cast<std::uint32_t>(program.code.size() - 1);
    last.hidden = true;
    for (const auto& f : fixups) program.code[f.instruction].target = statement_pc[f.label];
    for (auto& [instruction, targets] : table_fixups) {
      for (auto& target : targets) target = statement_pc[target];
      program.code[instruction].target = static_cast<std::uint32_t>(program.branch_tables.size());
      program.branch_tables.push_back(std::move(targets));
    }
    mark_expectations(code.entry);
    code.frame_bytes = align(frame_bytes, 64);
    program.functions[program.function_by_number[number]] = std::move(code);
  }

  // The plain load of `old = *p; do … while (atomicCAS(p, old, …) != old)` may read what others are writing: the
  // compare and swap notices. Finds loads from an address that a compare and swap uses too.
  void mark_expectations(std::uint32_t from) {
    std::map<Slot, Slot> copies;  // of addresses: cvta and mov
    const auto original = [&](Slot s) {
      for (auto found = copies.find(s); found != copies.end(); found = copies.find(s)) s = found->second;
      return s;
    };
    const Handler copy = handler("mov.b64");
    std::set<std::pair<Slot, std::int64_t>> swapped;
    for (int pass = 0; pass < 2; ++pass) {
      for (auto n = from; n < program.code.size(); ++n) {
        auto& i = program.code[n];
        if (pass == 0 && i.run == copy && i.o[0] != i.o[1] && original(i.o[1]) != i.o[0]) copies.try_emplace(i.o[0], i.o[1]);
        if (pass == 0 && compares_and_swaps.contains(n)) swapped.insert({original(i.o[1]), i.offset});
        if (pass == 1 && plain_loads.contains(n) && swapped.contains({original(i.o[plain_loads.at(n)]), i.offset})) i.is_volatile = true;
      }
    }
    compares_and_swaps.clear();
    plain_loads.clear();
  }
  std::set<std::uint32_t> compares_and_swaps;          // instructions
  std::map<std::uint32_t, std::uint32_t> plain_loads;  // instruction -> operand of the address

  // Every function that may be reached, to know its shared variables before the code is made.
  void lay_out_shared(std::uint32_t kernel) {
    std::set<std::uint32_t> seen{kernel};
    std::vector<std::uint32_t> todo{kernel};
    std::set<std::string_view> names;
    const auto mention = [&](const auto& self, const Operand& o) -> void {
      if (!o.name.empty()) names.insert(o.name);
      for (const auto& part : o.parts) self(self, part);
    };
    const auto reach = [&](std::uint32_t f) {
      if (seen.insert(f).second) todo.push_back(f);
    };
    std::vector<const ptx::Variable*> variables;
    while (!todo.empty()) {
      const auto& f = module.functions[todo.back()];
      todo.pop_back();
      for (const auto& v : f.variables) {
        if (v.space == Space::shared) variables.push_back(&v);
      }
      for (const auto& s : f.statements) {
        for (const auto& o : s.operands) mention(mention, o);
        if (!s.opcode.starts_with("call")) continue;
        for (const auto& o : s.operands) {
          if (const auto found = module.by_name.find(o.name); found != module.by_name.end()) reach(found->second);
          if (o.kind != Operand::Kind::reg) continue;
          for (std::uint32_t n = 0; n < module.functions.size(); ++n) {
            if (!module.functions[n].entry) reach(n);
          }
        }
      }
    }
    std::vector<const ptx::Variable*> open;
    for (const auto& v : module.variables) {
      if (v.space == Space::shared && names.contains(v.name)) (v.size == 0 ? open : variables).push_back(&v);
    }
    std::uint32_t at = 0;
    for (const auto* v : variables) {
      at = align(at, static_cast<std::uint32_t>(v->alignment));
      shared[v->name] = at;
      if (v->size > (1u << 24) || at + v->size > (1u << 24)) throw Refusal("the kernel asks for more shared memory than any device has");
      at += static_cast<std::uint32_t>(v->size);
    }
    for (const auto* v : open) at = align(at, static_cast<std::uint32_t>(v->alignment));
    for (const auto* v : open) shared[v->name] = at;
    program.static_shared = at;
  }

  void run(std::uint32_t kernel) {
    lay_out_shared(kernel);
    program.launch_bank_bytes = static_cast<std::uint32_t>(LaunchSpecial::count) * special_bytes;
    std::uint32_t total = 0;
    kernel_parameters = parameter_layout(module.functions[kernel], total);
    want(kernel);
    while (!pending.empty()) {
      const auto next = pending.back();
      pending.pop_back();
      one_function(next);
    }
    for (const auto& i : program.code) program.places.push_back(module.places[i.place]);
    for (const auto& f : program.functions) program.local_bytes += f.local_bytes + local_gap;
    if (program.functions.size() > 1) program.local_bytes += call_stack;
  }
};

}  // namespace

const std::unordered_map<std::string_view, Slot>& special_registers() {
  static const auto of_warp = [](WarpSpecial s) { return slot(warp_bank, static_cast<std::uint32_t>(s) * special_bytes); };
  static const auto of_launch = [](LaunchSpecial s) { return slot(launch_bank, static_cast<std::uint32_t>(s) * special_bytes); };
  using W = WarpSpecial;
  using L = LaunchSpecial;
  static const std::unordered_map<std::string_view, Slot> table{
      {"%tid.x", of_warp(W::tid_x)},           {"%tid.y", of_warp(W::tid_y)},
      {"%tid.z", of_warp(W::tid_z)},           {"%warpid", of_warp(W::warp)},
      {"%ctaid.x", of_warp(W::ctaid_x)},       {"%ctaid.y", of_warp(W::ctaid_y)},
      {"%ctaid.z", of_warp(W::ctaid_z)},       {"%laneid", of_launch(L::lane)},
      {"%lanemask_eq", of_launch(L::lanemask_eq)}, {"%lanemask_le", of_launch(L::lanemask_le)},
      {"%lanemask_lt", of_launch(L::lanemask_lt)}, {"%lanemask_ge", of_launch(L::lanemask_ge)},
      {"%lanemask_gt", of_launch(L::lanemask_gt)}, {"%ntid.x", of_launch(L::ntid_x)},
      {"%ntid.y", of_launch(L::ntid_y)},       {"%ntid.z", of_launch(L::ntid_z)},
      {"%nctaid.x", of_launch(L::nctaid_x)},   {"%nctaid.y", of_launch(L::nctaid_y)},
      {"%nctaid.z", of_launch(L::nctaid_z)},   {"%nwarpid", of_launch(L::warps)},
      {"%smid", of_launch(L::zero)},           {"%nsmid", of_launch(L::one)},
      {"%gridid", of_launch(L::zero)},         {"%dynamic_smem_size", of_launch(L::dynamic_shared)},
      {"%total_smem_size", of_launch(L::total_shared)}, {"%envreg1", of_launch(L::workspace_high)},
      {"%envreg2", of_launch(L::workspace_low)}};
  return table;
}

std::vector<Area> parameter_layout(const ptx::Function& function, std::uint32_t& total) {
  std::vector<Area> result;
  total = 0;
  for (const auto& p : function.parameters) {
    total = align(total, static_cast<std::uint32_t>(p.alignment));
    result.push_back({total, static_cast<std::uint32_t>(p.size)});
    total += static_cast<std::uint32_t>(p.size);
  }
  return result;
}

std::unique_ptr<KernelCode> decode(const ptx::Module& module, std::uint32_t kernel, const Layout& layout) {
  auto program = std::make_unique<KernelCode>();
  program->kernel = module.functions[kernel].name;
  Decoder decoder(module, layout, *program);
  decoder.run(kernel);
  return program;
}

}  // namespace sim
