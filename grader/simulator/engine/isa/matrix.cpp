// Matrix instructions: mma, wmma, ldmatrix. The decoder lets the warp's lanes meet first. sim: multiversion
//
// Of a fragment each lane holds some registers, laid out as the PTX ISA shows for mma; wmma leaves its layout open, and
// has the same one here. Products are exact and summed up in double precision (integers: exactly), then rounded once:
// closer than the ISA asks, which leaves order and rounding of the sum open.
#include "engine/isa/access.h"
#include "engine/isa/half_lanes.h"

namespace sim {
void needs_whole_warp(Warp&, const Instruction&, Mask);
void rows_apart(Warp&, const Instruction&, std::uint64_t bytes);
}  // namespace sim

namespace sim::SIM_TARGET {
namespace {

using ptx::Space;

enum Matrix : u32 { left, right, sum };

// Heads the operands of an instruction in Warp::lists; the registers follow.
struct Fragment {
  u32 matrix, m, n, k, element, registers;  // bytes of an element
  u32 per_register() const { return element == 8 ? 1 : 4 / element; }
  u32 distinct() const {
    return (matrix == left ? m * k : matrix == right ? k * n : m * n) / lane_count / per_register();
  }
};
constexpr u32 fragment_words = sizeof(Fragment) / sizeof(u32);

struct Position {
  u32 row, column;
};
// Of element j of a register: blocks of 8 rows, two of them above each other before the next to the right.
SIM_INLINE Position position(const Fragment& f, u32 reg, u32 lane, u32 j) {
  const u32 group = lane >> 2, within = lane & 3, per = f.per_register();
  if (f.matrix == right) {
    const u32 down = f.k / (4 * per);
    return {reg % down * 4 * per + within * per + j, reg / down * 8 + group};
  }
  const u32 high = f.m < 16 ? 1 : 2, element = reg * per + j;
  const u32 block = f.matrix == sum ? element / 2 : reg;
  const u32 blocks = high * (f.matrix == sum ? f.n / 8 : f.k / (4 * per));
  const u32 row = block / blocks * 16 + block % blocks % high * 8 + group, column = block % blocks / high;
  return {row, f.matrix == sum ? column * 8 + 2 * within + element % 2 : column * 4 * per + within * per + j};
}

struct F64 {
  using Word = u64;
  using Number = f64;
  static SIM_INLINE f64 get(u64 w, u32) { return std::bit_cast<f64>(w); }
  static SIM_INLINE u64 put(f64 v, bool) { return std::bit_cast<u64>(v); }
};
struct F32 {
  using Word = u32;
  using Number = f64;
  static SIM_INLINE f64 get(u32 w, u32) { return real_of<f32>(w); }
  static SIM_INLINE u32 put(f64 v, bool) { return bits_of(canonical(static_cast<f32>(v))); }
};
struct Tf32 {
  using Word = u32;
  using Number = f64;
  static SIM_INLINE f64 get(u32 w, u32) { return real_of<f32>(w & 0xffffe000); }
};
template <class H> struct Short {
  using Word = u32;
  using Number = f64;
  static SIM_INLINE f64 get(u32 w, u32 j) { return H::widen(static_cast<u16>(w >> 16 * j)); }
  static SIM_INLINE u32 put(f64 v, bool) { return H::template narrow<>(to_odd(v)); }
};
template <class T> struct Byte {
  using Word = u32;
  using Number = s64;
  static SIM_INLINE s64 get(u32 w, u32 j) { return static_cast<T>(w >> 8 * j); }
};
struct S32 {
  using Word = u32;
  using Number = s64;
  static SIM_INLINE s64 get(u32 w, u32) { return static_cast<s32>(w); }
  static SIM_INLINE u32 put(s64 v, bool saturate) {
    return static_cast<u32>(!saturate ? v : v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v);
  }
};

constexpr u32 most = 32 * 32;  // elements of a matrix

// The elements of a matrix, row after row; goes to the next fragment.
template <class E> void gather(const Warp& w, const u32*& list, typename E::Number* out) {
  Fragment f;
  std::memcpy(&f, list, sizeof f);
  const Slot* registers = list + fragment_words;
  const u32 width = f.matrix == left ? f.k : f.n;
  for (u32 r = 0; r < f.distinct(); ++r) {
    const auto* words = at<typename E::Word>(w, registers[r]);
    for (u32 l = 0; l < lane_count; ++l) {
      for (u32 j = 0; j < f.per_register(); ++j) {
        const Position p = position(f, r, l, j);
        out[p.row * width + p.column] = E::get(words[l], j);
      }
    }
  }
  list = registers + f.registers;
}

// offset: whether integers saturate.
template <class D, class A, class B, class C> void multiply(Warp& w, const Instruction& i, Mask mask) {
  using Number = typename D::Number;
  const u32* list = w.lists + i.target;
  Fragment f;
  std::memcpy(&f, list, sizeof f);
  const Slot* results = list + fragment_words;
  list = results + f.registers;
  alignas(64) Number a[most], b[most], d[most];
  gather<A>(w, list, a);
  gather<B>(w, list, b);
  gather<C>(w, list, d);
  for (u32 row = 0; row < f.m; ++row) {
    for (u32 k = 0; k < f.k; ++k) {
      const Number factor = a[row * f.k + k];
      for (u32 column = 0; column < f.n; ++column) d[row * f.n + column] += factor * b[k * f.n + column];
    }
  }
  for (u32 r = 0; r < f.registers; ++r) {
    auto* words = at<typename D::Word>(w, results[r]);
    for (Mask m = mask; m; m &= m - 1) {
      const auto l = static_cast<u32>(std::countr_zero(m));
      typename D::Word word = 0;
      for (u32 j = 0; j < f.per_register(); ++j) {
        const Position p = position(f, r, l, j);
        word |= static_cast<typename D::Word>(D::put(d[p.row * f.n + p.column], i.offset != 0)) << (j * 16);
      }
      words[l] = word;
    }
  }
}

// One access of T by each lane, `part` bytes into the lanes of a register.
template <class T, Space S, bool Store> void piece(Warp& w, const Instruction& i, Access& a, std::byte* lanes,
                                                   u32 stride) {
  if (!allowed<S>(w, i, a)) return;
  alignas(64) T staged[lane_count];
  for (u32 l = 0; l < lane_count; ++l) std::memcpy(&staged[l], lanes + l * stride, sizeof(T));
  if (S != Space::local && w.watched) {
    a.element = sizeof(T);
    a.value[0] = reinterpret_cast<const std::byte*>(staged);
    watch(w, i, a);
  }
  for (Mask m = a.mask; m; m &= m - 1) {
    const auto l = static_cast<u32>(std::countr_zero(m));
    std::byte* memory = place<S>(w, a.address[l], l);
    if constexpr (Store)
      std::memcpy(memory, &staged[l], sizeof(T));
    else
      std::memcpy(lanes + l * stride, memory, sizeof(T));
  }
}
template <class T, Space S, bool Store> void pieces(Warp& w, const Instruction& i, const u64* address, Mask mask,
                                                    std::byte* lanes, u32 stride) {
  Access a;
  std::memcpy(a.address, address, sizeof a.address);
  a.size = sizeof(T);
  a.mask = mask;
  a.write = Store;
  if constexpr (S != Space::generic) {
    piece<T, S, Store>(w, i, a, lanes, stride);
  } else {
    by_space(a.address, mask, [&]<Space Found>(Mask part) {
      a.mask = part;
      piece<T, Found, Store>(w, i, a, lanes, stride);
    });
  }
}

// wmma.load and wmma.store. o: address, elements between two rows (or columns); size: whether rows lie one after
// another.
template <class T, class Word, Space S, bool Store> void fragment(Warp& w, const Instruction& i, Mask mask) {
  const u32* list = w.lists + i.target;
  Fragment f;
  std::memcpy(&f, list, sizeof f);
  const Slot* registers = list + fragment_words;
  alignas(64) u64 base[lane_count], address[lane_count];
  read_addresses(w, i, i.o[0], base);
  alignas(64) u32 stride[lane_count];
  std::memcpy(stride, at<u32>(w, i.o[1]), sizeof stride);
  const bool by_row = i.size != 0;
  rows_apart(w, i, u64{stride[std::countr_zero(mask)]} * sizeof(T));
  for (u32 r = 0; r < f.distinct(); ++r) {
    alignas(64) Word words[lane_count] = {};
    if (Store) std::memcpy(words, at<Word>(w, registers[r]), sizeof words);
    // Elements of a register lie side by side in memory if they do in the matrix.
    const bool whole = f.matrix == right ? !by_row : by_row;
    for (u32 j = 0; j < (whole ? 1 : f.per_register()); ++j) {
      for (u32 l = 0; l < lane_count; ++l) {
        const Position p = position(f, r, l, j);
        address[l] =
            base[l] + (by_row ? u64{p.row} * stride[l] + p.column : u64{p.column} * stride[l] + p.row) * sizeof(T);
      }
      const Mask now = mask & ~w.fallen;
      if (!now) return;
      std::byte* lanes = reinterpret_cast<std::byte*>(words) + j * sizeof(T);
      if (whole)
        pieces<Word, S, Store>(w, i, address, now, lanes, sizeof(Word));
      else
        pieces<T, S, Store>(w, i, address, now, lanes, sizeof(Word));
    }
    if (Store) continue;
    // Some fragments hold every element several times.
    for (u32 copy = r; copy < f.registers; copy += f.distinct()) {
      Word* to = at<Word>(w, registers[copy]);
      for (Mask m = mask & ~w.fallen; m; m &= m - 1) to[std::countr_zero(m)] = words[std::countr_zero(m)];
    }
  }
}

// ldmatrix: 8 lanes each give the addresses of 8 rows of 16 bytes; o: results, the address last; target: matrices;
// size: whether they are transposed.
template <Space S> void load_matrices(Warp& w, const Instruction& i, Mask mask) {
  alignas(64) u64 address[lane_count];
  read_addresses(w, i, i.o[4], address);
  const u32 count = i.target;
  struct Row {
    u16 element[8];
  };
  alignas(64) Row rows[lane_count] = {};
  const Mask giving = mask & (count == 4 ? all_lanes : (1u << 8 * count) - 1);
  if (giving) pieces<Row, S, false>(w, i, address, giving, reinterpret_cast<std::byte*>(rows), sizeof(Row));
  for (u32 n = 0; n < count; ++n) {
    u32* d = at<u32>(w, i.o[n]);
    for (Mask m = mask & ~w.fallen; m; m &= m - 1) {
      const auto l = static_cast<u32>(std::countr_zero(m));
      const Row* matrix = rows + 8 * n;
      const u32 x = l / 4, y = l % 4 * 2;
      d[l] = i.size ? matrix[y].element[x] | static_cast<u32>(matrix[y + 1].element[x]) << 16
                    : matrix[x].element[y] | static_cast<u32>(matrix[x].element[y + 1]) << 16;
    }
  }
}

void meet(Warp& w, const Instruction& i, Mask mask) {
  if (mask != all_lanes) needs_whole_warp(w, i, mask);
}

template <class T, class Word, Space S> void add_fragment(Table& t, const std::string& space) {
  const std::string name = space + ".b" + std::to_string(8 * sizeof(T));
  t.add("wmma.load." + name, fragment<T, Word, S, false>);
  t.add("wmma.store." + name, fragment<T, Word, S, true>);
}
template <Space S> void add_space(Table& t, const std::string& space) {
  add_fragment<u8, u32, S>(t, space);
  add_fragment<u16, u32, S>(t, space);
  add_fragment<u32, u32, S>(t, space);
  add_fragment<u64, u64, S>(t, space);
}
template <class A, class B> void add_bytes(Table& t, const std::string& types) {
  t.add("mma.s32." + types + ".s32", multiply<S32, Byte<A>, Byte<B>, S32>);
}

}  // namespace

void add_matrix(Table& t) {
  using F16 = Short<Half>;
  using Bf16 = Short<Brain>;
  t.add("matrix.meet", meet);
  t.add("mma.f32.f16.f16.f32", multiply<F32, F16, F16, F32>);
  t.add("mma.f16.f16.f16.f16", multiply<F16, F16, F16, F16>);
  t.add("mma.f32.f16.f16.f16", multiply<F32, F16, F16, F16>);
  t.add("mma.f16.f16.f16.f32", multiply<F16, F16, F16, F32>);
  t.add("mma.f32.bf16.bf16.f32", multiply<F32, Bf16, Bf16, F32>);
  t.add("mma.f32.tf32.tf32.f32", multiply<F32, Tf32, Tf32, F32>);
  t.add("mma.f64.f64.f64.f64", multiply<F64, F64, F64, F64>);
  add_bytes<s8, s8>(t, "s8.s8");
  add_bytes<s8, u8>(t, "s8.u8");
  add_bytes<u8, s8>(t, "u8.s8");
  add_bytes<u8, u8>(t, "u8.u8");
  add_space<Space::generic>(t, "generic");
  add_space<Space::global>(t, "global");
  add_space<Space::shared>(t, "shared");
  t.add("ldmatrix.generic", load_matrices<Space::generic>);
  t.add("ldmatrix.shared", load_matrices<Space::shared>);
}

}  // namespace sim::SIM_TARGET
