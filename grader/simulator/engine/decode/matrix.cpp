// Statements on matrices: their fragments become lists of registers, as isa/matrix.cpp wants them.
#include <array>

#include "engine/decode/decoder.h"

namespace sim {
namespace {

// Shapes and types that the simulator knows: m, n, k; types of a and b; for wmma, too.
struct MatrixShape {
  std::string_view name;
  std::uint32_t m, n, k;
  std::array<std::string_view, 2> types;
  bool mma, wmma;
};
constexpr MatrixShape shapes[] = {
    {"m16n8k8", 16, 8, 8, {"f16", "bf16"}, true, false},     {"m16n8k16", 16, 8, 16, {"f16", "bf16"}, true, false},
    {"m16n8k4", 16, 8, 4, {"tf32", ""}, true, false},        {"m16n8k8", 16, 8, 8, {"tf32", ""}, true, false},
    {"m8n8k16", 8, 8, 16, {"s8", "u8"}, true, false},        {"m16n8k16", 16, 8, 16, {"s8", "u8"}, true, false},
    {"m16n8k32", 16, 8, 32, {"s8", "u8"}, true, false},      {"m8n8k4", 8, 8, 4, {"f64", ""}, true, true},
    {"m16n16k16", 16, 16, 16, {"f16", "bf16"}, false, true}, {"m16n16k16", 16, 16, 16, {"s8", "u8"}, false, true},
    {"m32n8k16", 32, 8, 16, {"f16", "bf16"}, false, true},   {"m32n8k16", 32, 8, 16, {"s8", "u8"}, false, true},
    {"m8n32k16", 8, 32, 16, {"f16", "bf16"}, false, true},   {"m8n32k16", 8, 32, 16, {"s8", "u8"}, false, true},
    {"m16n16k8", 16, 16, 8, {"tf32", ""}, false, true}};

std::uint32_t element_bytes(std::string_view type) {
  return type == "f64"                                      ? 8
         : type == "f32" || type == "tf32" || type == "s32" ? 4
         : type == "s8" || type == "u8"                     ? 1
                                                            : 2;
}

// The shape of that name; if a type is given, one that has it.
const MatrixShape* find_shape(const Words& words, std::string_view type, bool wmma) {
  for (const auto& shape : shapes) {
    if ((wmma ? shape.wmma : shape.mma) && has(words, shape.name) &&
        (type.empty() || shape.types[0] == type || shape.types[1] == type))
      return &shape;
  }
  return nullptr;
}

}  // namespace

// The instruction that lets the lanes of the warp meet: those of a matrix instruction are one and the same.
void Decoder::meet() {
  auto& i = emit(handler("matrix.meet"), {0, constant(all_lanes, 4)});
  i.flow = Flow::collective;
  i.offset = 1;
  i.hidden = true;
}

// Appends matrix 0 (a), 1 (b) or 2 (c, d) to the lists.
void Decoder::fragment(const Operand& o, std::uint32_t matrix, const std::array<std::uint32_t, 3>& mnk,
                       std::string_view element, bool written, std::size_t copies) {
  const std::uint32_t bytes = element_bytes(element);
  const auto [m, n, k] = mnk;
  const std::uint32_t elements = (matrix == 0 ? m * k : matrix == 1 ? k * n : m * n) / lane_count;
  const std::uint32_t registers = elements * bytes / (bytes == 8 ? 8 : 4);
  const std::size_t given = o.kind == Operand::Kind::vector ? o.parts.size() : 1;
  if (given != (copies ? copies : registers)) refuse("the registers of");
  const Type type = bytes == 8 ? word64 : word32;
  auto& list = program.lists;
  list.insert(list.end(), {matrix, m, n, k, bytes, static_cast<std::uint32_t>(given)});
  for (std::size_t r = 0; r < given; ++r) {
    const Operand& part = o.kind == Operand::Kind::vector ? o.parts[r] : o;
    const Slot at = written ? destination(part, type) : source(part, type);
    list.push_back(at);
  }
}

void Decoder::multiply_matrices(const Words& words) {  // mma.sync, wmma.mma.sync
  const bool wmma = words[0] == "wmma";
  std::vector<std::string_view> types;
  for (const auto word : words) {
    if (find_type(word)) types.push_back(word);
  }
  if (wmma && types.size() == 2) types.insert(types.begin() + 1, {"f16", "f16"});
  if (types.size() != 4) refuse("the types of");
  const MatrixShape* shape = find_shape(words, types[1], wmma);
  if (!shape) refuse("the shape and type of");
  for (const auto word : words) {
    const bool known = find_type(word) || word == shape->name || word == "mma" || word == "wmma" || word == "sync" ||
                       word == "aligned" || word == "row" || word == "col" || word == "satfinite" || word == "rn";
    if (!known) refuse("the modifier ." + std::string(word) + " of");
  }
  const Handler found = handler("mma." + std::string(types[0]) + "." + std::string(types[1]) + "." +
                                std::string(types[2]) + "." + std::string(types[3]));
  meet();
  const std::array<std::uint32_t, 3> mnk{shape->m, shape->n, shape->k};
  const std::size_t copies = wmma && types[1] == "f16" ? 8 : 0;
  const auto list = static_cast<std::uint32_t>(program.lists.size());
  fragment(operand(0), 2, mnk, types[0], true, 0);
  fragment(operand(1), 0, mnk, types[1], false, copies);
  fragment(operand(2), 1, mnk, types[2], false, copies);
  fragment(operand(3), 2, mnk, types[3], false, 0);
  auto& i = emit(found, {});
  i.target = list;
  i.offset = has(words, "satfinite");
}

void Decoder::move_matrix(const Words& words) {  // wmma.load, wmma.store
  const bool store = words[1] == "store";
  const bool sums = words[2] == "c" || words[2] == "d";
  const std::string_view type = type_of(words).name;
  const MatrixShape* shape = find_shape(words, sums ? std::string_view{} : type, true);
  const Space space = space_in(words);
  if (!shape || (sums && !(type == "f32" || type == "f16" || type == "s32" || type == "f64")))
    refuse("the shape and type of");
  const Address a = address(operand(store ? 0 : 1));
  const bool by_row = has(words, "row");
  const std::uint32_t matrix = words[2] == "a" ? 0 : words[2] == "b" ? 1 : 2;
  const std::uint32_t lead = matrix == 0   ? (by_row ? shape->k : shape->m)
                             : matrix == 1 ? (by_row ? shape->n : shape->k)
                             : by_row      ? shape->n
                                           : shape->m;
  const Slot stride = statement->operands.size() > 2 ? source(operand(2), word32) : constant(lead, 4);
  meet();
  const auto list = static_cast<std::uint32_t>(program.lists.size());
  fragment(operand(store ? 1 : 0), matrix, {shape->m, shape->n, shape->k}, type, !store,
           matrix != 2 && type == "f16" ? 8 : 0);
  const std::uint32_t bytes = element_bytes(type);
  auto& i = emit(
      handler(std::string(store ? "wmma.store." : "wmma.load.") + space_name(space) + ".b" + std::to_string(8 * bytes)),
      {a.base, stride});
  finish_access(i, a, space, by_row);
  i.target = list;
  if (space != Space::global) program.shared_granule = std::min(program.shared_granule, bytes);
  if (store && space != Space::shared) program.global_granule = std::min(program.global_granule, bytes);
}

void Decoder::load_matrices(const Words& words) {  // ldmatrix
  const std::uint32_t count = has(words, "x4") ? 4 : has(words, "x2") ? 2 : 1;
  if (!has(words, "m8n8") || words.back() != "b16") refuse("the instruction");
  const Space space = space_in(words);
  if (space != Space::shared && space != Space::generic) refuse("the instruction");
  const Operand& to = operand(0);
  const std::size_t given = to.kind == Operand::Kind::vector ? to.parts.size() : 1;
  if (given != count) refuse("the vector of");
  const Address a = address(operand(1));
  meet();
  std::vector<Slot> slots(5, 0);
  for (std::size_t n = 0; n < given; ++n)
    slots[n] = destination(to.kind == Operand::Kind::vector ? to.parts[n] : to, word32);
  slots[4] = a.base;
  auto& i = emit(handler(std::string("ldmatrix.") + space_name(space)), slots);
  finish_access(i, a, space, has(words, "trans"));
  i.target = count;
}

void Decoder::matrix(const Words& words) {
  if (words[0] == "ldmatrix") return load_matrices(words);
  if (words[0] == "mma" || (words.size() > 1 && words[1] == "mma")) return multiply_matrices(words);
  if (words.size() > 3 && (words[1] == "load" || words[1] == "store")) return move_matrix(words);
  refuse("the instruction");
}

}  // namespace sim
