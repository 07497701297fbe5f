// Statements that work on registers alone: a form and a handler named like the mnemonic.
#include <array>

#include "engine/decode/decoder.h"

namespace sim {

void Decoder::plain(Words words) {
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
  if ((words[0] == "min" || words[0] == "max") && words.size() == 2)
    note_comparison(i, words[1], i.o[1], i.o[2], false);
}

// Of integers that registers hold whole.
void Decoder::note_comparison(const Instruction& i, std::string_view type, Slot a, Slot b, bool equality) {
  const Type* known = find_type(type);
  const bool whole = type.size() == 3 && std::string_view("sub").find(type[0]) != std::string_view::npos;
  if (!known || !whole) return;
  const std::string bits = std::to_string(8 * known->bytes);
  program.comparisons.push_back({i.site, i.run, handler((known->is_signed ? "observe.s" : "observe.u") + bits), a, b,
                                 known->is_signed, equality});
}

void Decoder::move(const Words& words) {
  const Type& type = type_of(words);
  if (operand(0).kind == Operand::Kind::vector) return unpack(type);
  if (alias(operand(0), operand(1), type)) return;
  const std::string name = type.bytes ? "mov" + bits_name(type.bytes) : "mov.pred";
  const Slot from = source(operand(1), type);
  emit(handler(name), {destination(operand(0), type), from});
}

void Decoder::unpack(const Type& type) {
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

void Decoder::convert(const Words& words) {
  if (words.size() < 3) refuse("the instruction");
  const Type *to = find_type(words[words.size() - 2]), *from = find_type(words.back());
  if (!to || !from) refuse("the types of");
  const Handler found = handler(join(words));
  std::vector<Slot> slots{destination(operand(0), *to)};
  for (std::size_t n = 1; n < statement->operands.size(); ++n) slots.push_back(source(operand(n), *from));
  if (slots.size() != (to->name.ends_with("x2") ? 3u : 2u)) refuse("the operands of");
  emit(found, slots);
}

void Decoder::compare(const Words& words) {  // setp and set
  static const std::array<std::string_view, 4> combinations{"", "and", "or", "xor"};
  Words name = words;
  std::int64_t how = 0;
  for (std::int64_t n = 1; n < 4; ++n) {
    if (has(words, combinations[static_cast<std::size_t>(n)])) how = n;
  }
  if (how) drop(name, combinations[static_cast<std::size_t>(how)]);
  // lo, ls, hi, hs are the unsigned comparisons under other names.
  static const std::unordered_map<std::string_view, std::string_view> aliases{
      {"lo", "lt"}, {"ls", "le"}, {"hi", "gt"}, {"hs", "ge"}};
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
  note_comparison(i, words.back(), i.o[2], i.o[3], name[1] == "eq" || name[1] == "ne");
}

void Decoder::select(const Words& words) {  // slct
  const Type& condition = *find_type(words.back());
  const Type& type = type_of(Words(words.begin(), words.end() - 1));
  emit(handler(join(words)), {destination(operand(0), type), source(operand(1), type), source(operand(2), type),
                              source(operand(3), condition)});
}

}  // namespace sim
