// Statements that touch memory: addresses, loads and stores, parameters, atomics.
#include <array>

#include "engine/decode/decoder.h"

namespace sim {
namespace {

constexpr std::string_view cache_words[] = {
    "weak",         "volatile",    "relaxed", "acquire", "release", "acq_rel", "cta",    "cluster",
    "gpu",          "sys",         "ca",      "cg",      "cs",      "lu",      "cv",     "wb",
    "wt",           "nc",          "global",  "shared",  "local",   "const",   "param",  "shared::cta",
    "param::entry", "param::func", "v2",      "v4",      "mmio",    "noftz",   "unified"};

}  // namespace

ptx::Space Decoder::space_in(const Words& words) const {
  static const std::unordered_map<std::string_view, Space> table{
      {"global", Space::global},          {"shared", Space::shared},
      {"shared::cta", Space::shared},     {"local", Space::local},
      {"const", Space::constant},         {"param", Space::parameter},
      {"param::entry", Space::parameter}, {"param::func", Space::parameter}};
  for (const auto word : words) {
    if (const auto found = table.find(word); found != table.end()) return found->second;
  }
  return Space::generic;
}

const char* Decoder::space_name(Space space) {
  switch (space) {
    case Space::global:
    case Space::constant: return "global";
    case Space::shared: return "shared";
    case Space::local: return "local";
    default: return "generic";
  }
}

Decoder::Address Decoder::address(const Operand& o) {
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

void Decoder::check_modifiers(const Words& words) const {
  for (std::size_t n = 1; n < words.size(); ++n) {
    const auto word = words[n];
    const bool known = find_type(word) || word.starts_with("L1::") || word.starts_with("L2::") ||
                       std::find(std::begin(cache_words), std::end(cache_words), word) != std::end(cache_words);
    if (!known) refuse("the modifier ." + std::string(word) + " of");
  }
}

void Decoder::load(const Words& words) {
  check_modifiers(words);
  const Space space = space_in(words);
  const Type& type = type_of(words);
  if (type.bytes == 0) refuse("the type of");
  if (space == Space::parameter) return load_parameter(words, type);
  const auto elements = vector_of(operand(0), words);
  std::vector<Slot> slots;
  slots.reserve(elements.size() + 1);
  for (const auto* o : elements) slots.push_back(destination(*o, type));
  memory(words, "ld.", space, type, slots, operand(1));
}

void Decoder::store(const Words& words) {
  check_modifiers(words);
  const Space space = space_in(words);
  const Type& type = type_of(words);
  if (type.bytes == 0) refuse("the type of");
  if (space == Space::parameter) return store_parameter(words, type);
  const auto elements = vector_of(operand(1), words);
  std::vector<Slot> slots;
  slots.reserve(elements.size() + 1);
  for (const auto* o : elements) slots.push_back(source(*o, type));
  memory(words, "st.", space, type, slots, operand(0));
}

std::vector<const Operand*> Decoder::vector_of(const Operand& o, const Words& words) const {
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

void Decoder::memory(const Words& words, const char* kind, Space space, const Type& type, std::vector<Slot> slots,
                     const Operand& at) {
  const auto count = slots.size();
  const Address a = address(at);
  slots.push_back(a.base);
  const std::string vector = count > 1 ? ".v" + std::to_string(count) : "";
  auto& i = emit(handler(kind + std::string(space_name(space)) + vector + bits_name(type.bytes)), slots);
  finish_access(i, a, space, static_cast<unsigned>(type.bytes * count));
  if (kind[0] == 'l') plain_loads[i.site] = static_cast<std::uint32_t>(count);
  i.only_volatile = has(words, "volatile");
  if (i.only_volatile) volatiles.push_back({i.site, static_cast<std::uint32_t>(count), kind[0] == 'l'});
  i.is_volatile = i.only_volatile || has(words, "relaxed") || has(words, "acquire") || has(words, "release");
  i.may_spin = i.is_volatile && kind[0] == 'l';
  i.lets_others_run = i.is_volatile && (space == Space::global || space == Space::generic);
  i.publishes = i.lets_others_run && kind[0] == 's';
  i.read_only = has(words, "nc");
  i.strong = i.is_volatile;
  order(i, words, kind[0] == 's', space);
  if (space == Space::shared || space == Space::generic)
    program.shared_granule = std::min(program.shared_granule, type.bytes);
  if (space == Space::global || space == Space::generic) {
    std::uint32_t& smallest = kind[0] == 's' ? program.global_granule : program.smallest_load;
    smallest = std::min<std::uint32_t>(smallest, i.size);
  }
}

// "Scope" and "Operation types": a volatile operation is relaxed with .sys, an atomic one without words with .gpu.
void Decoder::order(Instruction& i, const Words& words, bool stores, Space space) {
  const bool both = has(words, "acq_rel");
  i.acquires = both || has(words, "acquire");
  i.releases = both || has(words, "release");
  i.of_block = has(words, "cta") || has(words, "cluster");
  program.strong_stores |= i.strong && stores;
  program.fences |= i.acquires || i.releases;
  program.fences_between_blocks |= (i.acquires || i.releases) && !i.of_block;
  program.publishes |= i.strong && stores && !has(words, "atom") && !i.reduces && space != Space::shared;
}

void Decoder::finish_access(Instruction& i, const Address& a, Space space, unsigned size) {
  i.flow = Flow::memory;
  i.space = space;
  i.offset = a.offset;
  i.narrow_address = a.narrow;
  i.size = static_cast<std::uint8_t>(size);
}

// A parameter of the kernel with a fixed address is a value that the launch lays down; others are read where they lie.
void Decoder::load_parameter(const Words& words, const Type& type) {
  const Operand& at = operand(1);
  const auto elements = vector_of(operand(0), words);
  std::uint64_t offset = at.bits;
  for (const auto* o : elements) {
    const bool fixed = is_kernel && at.reg < 0 && formal.contains(at.name) && !in_scope(areas, at);
    if (fixed && o->kind == Operand::Kind::reg && width(o->reg) == type.bytes && is_written_once(o->reg) &&
        statement->guard < 0 && !mentioned[static_cast<std::size_t>(o->reg)]) {
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

Slot Decoder::kernel_parameter(const Area& area, const Type& type, std::uint64_t offset) {
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

void Decoder::from_area(const char* name, const Area& area, Slot value, const Type& type, std::uint64_t offset) {
  if (offset + type.bytes > area.size) refuse("an access beyond the parameter in");
  auto& i = emit(handler(name + bits_name(type.bytes)), {value});
  i.o[5] = slot(frame_bank, area.offset);
  i.target = area.size;
  i.offset = static_cast<std::int64_t>(offset);
}

void Decoder::store_parameter(const Words& words, const Type& type) {
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

void Decoder::atomic(const Words& words) {
  static const std::array<std::string_view, 11> operations{"add",  "min", "max", "and", "or", "xor",
                                                           "exch", "cas", "inc", "dec", "sub"};
  const Type& type = type_of(words);
  const Space space = space_in(words);
  // nvcc writes atom also where nobody looks at the result; ptxas makes red of it.
  const bool result = words[0] == "atom" && operand(0).kind != Operand::Kind::sink && is_used(operand(0));
  std::string operation;
  for (const auto word : words) {
    if (std::find(operations.begin(), operations.end(), word) != operations.end()) operation = "." + std::string(word);
  }
  if (has(words, "v2") || has(words, "v4") || has(words, "v8")) refuse("the vector of");
  std::string suffix = "." + std::string(type.name);
  const bool bitwise =
      operation == ".exch" || operation == ".cas" || operation == ".and" || operation == ".or" || operation == ".xor";
  if (bitwise) suffix = bits_name(type.bytes);
  const bool half = type.name.find("f16") != type.name.npos;
  std::size_t n = words[0] == "atom" ? 1 : 0;
  const Address a = address(operand(n));
  std::vector<Slot> slots;
  if (result) slots.push_back(destination(operand(0), type));
  slots.push_back(a.base);
  slots.push_back(source(operand(++n), type));
  const Slot value = slots.back();
  if (operation == ".cas") slots.push_back(source(operand(++n), type));
  const std::string name =
      std::string(result ? "atom." : "red.") + space_name(space) + operation + (half ? ".noftz" : "") + suffix;
  auto& i = emit(handler(name), slots);
  finish_access(i, a, space, type.bytes);
  i.is_volatile = true;
  i.may_spin = operation == ".cas" || operation == ".exch";
  i.publishes = operation == ".exch" && space != Space::shared;
  const bool zero_is_neutral = operation == ".add" || operation == ".sub" || operation == ".or" || operation == ".xor";
  i.polls =
      result && (operation == ".cas" ? slots.back() == value : zero_is_neutral && value == constant(0, type.bytes));
  i.lets_others_run = !i.polls && space != Space::shared;
  program.publishes |= i.publishes || (i.polls && space != Space::shared);
  program.draws |= result && i.lets_others_run && space == Space::global;
  if (operation == ".cas") compares_and_swaps[i.site] = result;
  if (operation == ".min" || operation == ".max") extremes[i.site] = result;
  i.strong = true;
  i.reduces = !result;
  i.overwrites = !result && operation == ".exch";
  const bool draws = result && !i.polls && operation != ".cas";  // which is told that somebody came between
  i.draws = draws && space != Space::shared;
  i.draws_in_block = draws && space == Space::shared;
  program.draws_in_block |= i.draws_in_block;
  i.packed = type.name.ends_with("x2");
  order(i, words, true, space);
  if (space == Space::global && !i.polls && !i.acquires && !i.releases) relaxed_atomics.insert(i.site);
  if (space != Space::global) program.shared_granule = std::min(program.shared_granule, type.bytes);
  if (space != Space::shared) program.global_granule = std::min<std::uint32_t>(program.global_granule, type.bytes);
}

void Decoder::to_address(const Words& words) {  // cvta
  static const std::unordered_map<std::string_view, sim::Address> windows{
      {"shared", shared_window}, {"shared::cta", shared_window}, {"local", local_window}};
  const Type& type = type_of(words);
  const auto found = windows.find(words[words.size() - 2]);
  if (found == windows.end() && alias(operand(0), operand(1), type)) return;
  const Slot from = source(operand(1), type), to = destination(operand(0), type);
  if (found == windows.end()) {
    emit(handler("mov" + bits_name(type.bytes)), {to, from});
    return;
  }
  if (type.bytes != 8) refuse("the instruction");
  const auto base = static_cast<std::int64_t>(found->second);
  emit(handler("shift_address"), {to, from}).offset = words[1] == "to" ? -base : base;
}

// createpolicy. Only cache hints take the result, and they change no value.
void Decoder::cache_policy(const Words&) {
  emit(handler("mov.b64"), {destination(operand(0), word64), constant(0, 8)});
}

void Decoder::is_space(const Words& words) {
  auto& i = emit(handler("isspacep"), {destination(operand(0), predicate_type), source(operand(1), word64)});
  i.space = space_in(words);
  if (i.space == Space::constant) refuse("the instruction");
}

}  // namespace sim
