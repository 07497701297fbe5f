#include "fatbin.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#ifdef SIM_HAVE_ZSTD
#include <zstd.h>
#endif

namespace sim {
namespace {

constexpr std::uint32_t magic = 0xBA55'ED50;
constexpr std::uint16_t kind_ptx = 1, kind_elf = 2;
constexpr std::uint64_t flag_lz4 = 0x2000, flag_zstd = 0x8000;
constexpr std::uint32_t our_target = 80;
constexpr std::size_t ptx_limit = std::size_t{256} << 20;

template <typename T>
T field(std::span<const std::byte> data, std::uint64_t at) {
  if (at > data.size() || data.size() - at < sizeof(T)) throw FatbinError("the CUDA code in this file is damaged");
  T value;
  std::memcpy(&value, data.data() + at, sizeof value);
  return value;
}

std::span<const std::byte> part(std::span<const std::byte> data, std::uint64_t at, std::uint64_t size) {
  if (at > data.size() || data.size() - at < size) throw FatbinError("the CUDA code in this file is damaged");
  return data.subspan(at, size);
}

struct Image {
  std::uint32_t target;
  std::uint64_t flags, inflated;
  std::span<const std::byte> payload;
};

std::string inflate([[maybe_unused]] const Image& image) {
#ifdef SIM_HAVE_ZSTD
  if ((image.flags & flag_zstd) != 0 && image.inflated <= ptx_limit) {
    std::string ptx(image.inflated, '\0');
    const auto frame = ZSTD_findFrameCompressedSize(image.payload.data(), image.payload.size());
    if (!ZSTD_isError(frame)) {
      const auto size = ZSTD_decompress(ptx.data(), ptx.size(), image.payload.data(), frame);
      if (!ZSTD_isError(size)) {
        ptx.resize(size);
        return ptx;
      }
    }
  }
#endif
  throw FatbinError("the PTX in this file is compressed; compile it with the nvcc option --no-compress");
}

bool better(const Image& candidate, const Image& best) {
  const bool candidate_fits = candidate.target <= our_target, best_fits = best.target <= our_target;
  if (candidate_fits != best_fits) return candidate_fits;
  return candidate_fits ? candidate.target > best.target : candidate.target < best.target;
}

// An ELF file's sections.
struct Elf {
  std::span<const std::byte> file;
  Elf64_Ehdr header = field<Elf64_Ehdr>(file, 0);

  bool valid() const {
    return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64;
  }
  bool has_sections() const { return header.e_shentsize == sizeof(Elf64_Shdr) && header.e_shstrndx < header.e_shnum; }
  Elf64_Shdr section(std::uint64_t i) const { return field<Elf64_Shdr>(file, header.e_shoff + i * sizeof(Elf64_Shdr)); }
  std::span<const std::byte> content(const Elf64_Shdr& s) const { return part(file, s.sh_offset, s.sh_size); }
  // A string of a table of strings, which section `table` is.
  std::string_view text(std::uint64_t table, std::uint64_t at) const {
    const auto all = content(section(table));
    const auto tail = all.subspan(std::min<std::uint64_t>(at, all.size()));
    const std::string_view rest(reinterpret_cast<const char*>(tail.data()), tail.size());
    return rest.substr(0, rest.find('\0'));
  }
  template <class F> void each(std::string_view name, F f) const {
    for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
      const auto s = section(i);
      if (s.sh_type != SHT_NOBITS && text(header.e_shstrndx, s.sh_name) == name) f(s);
    }
  }
};

// What ptxas says of each kernel: attributes of 4 bytes, of which those of format 4 have as many more as their size
// says.
void count_registers(const Elf& elf, DeviceCode& code) try {
  constexpr std::uint8_t sized = 4, register_count = 0x2f;
  if (!elf.valid() || !elf.has_sections()) return;
  elf.each(".nv.info", [&](const Elf64_Shdr& info) {
    const auto symbols = elf.section(info.sh_link);
    const auto all = elf.content(info);
    for (std::uint64_t at = 0; at < all.size();) {
      const auto format = field<std::uint8_t>(all, at), attribute = field<std::uint8_t>(all, at + 1);
      const auto size = format == sized ? field<std::uint16_t>(all, at + 2) : 0u;
      if (format == sized && attribute == register_count) {
        const auto symbol =
            field<Elf64_Sym>(elf.content(symbols), field<std::uint32_t>(all, at + 4) * sizeof(Elf64_Sym));
        const auto count = field<std::uint32_t>(all, at + 8);
        const auto [entry, fresh] =
            code.registers.try_emplace(std::string(elf.text(symbols.sh_link, symbol.st_name)), count);
        if (!fresh) entry->second = std::min(entry->second, count);
      }
      at += 4 + size;
    }
  });
} catch (const FatbinError&) {  // machine code in another form: nobody runs it here
}

}  // namespace

DeviceCode code_of(std::span<const std::byte> container) {
  if (field<std::uint32_t>(container, 0) != magic)
    throw FatbinError("the CUDA code in this file is of an unknown format");
  auto images = part(container, field<std::uint16_t>(container, 6), field<std::uint64_t>(container, 8));
  DeviceCode code;
  std::optional<Image> best;
  while (!images.empty()) {
    const auto kind = field<std::uint16_t>(images, 0);
    const auto header = field<std::uint32_t>(images, 4);
    const auto size = field<std::uint64_t>(images, 8);
    if (header < 48) throw FatbinError("the CUDA code in this file is damaged");
    const Image image{field<std::uint32_t>(images, 28), field<std::uint64_t>(images, 40),
                      header >= 64 ? field<std::uint64_t>(images, 56) : 0, part(images, header, size)};
    if (kind == kind_ptx && (!best || better(image, *best))) best = image;
    if (kind == kind_elf && (image.flags & (flag_lz4 | flag_zstd)) == 0) count_registers(Elf{image.payload}, code);
    images = images.subspan(header + size);
  }
  if (!best) return code;
  if ((best->flags & (flag_lz4 | flag_zstd)) != 0) {
    code.ptx = inflate(*best);
  } else {
    code.ptx = {reinterpret_cast<const char*>(best->payload.data()), best->payload.size()};
  }
  code.ptx.resize(std::min(code.ptx.size(), code.ptx.find('\0')));
  return code;
}

std::vector<DeviceCode> code_of_elf(std::span<const std::byte> file) {
  const Elf elf{file};
  if (!elf.valid()) throw FatbinError("this is not a 64-bit object or library that nvcc made");
  if (!elf.has_sections()) throw FatbinError("this library has no section table (was it stripped?)");
  std::vector<DeviceCode> found;
  DeviceCode linked;  // of relocatable code: its machine code alone
  const auto add = [&](const Elf64_Shdr& section) {
    auto data = elf.content(section);
    while (data.size() >= 16) {
      if (field<std::uint32_t>(data, 0) != magic) {  // padding between containers
        data = data.subspan(8);
        continue;
      }
      const auto head = field<std::uint16_t>(data, 6);
      const auto size = field<std::uint64_t>(data, 8);
      part(data, head, size);
      auto code = code_of(data.first(head + size));
      if (code.ptx.empty())
        linked.registers.merge(code.registers);
      else
        found.push_back(std::move(code));
      data = data.subspan(std::min<std::uint64_t>(data.size(), (head + size + 7) / 8 * 8));
    }
  };
  elf.each(".nv_fatbin", add);
  const auto whole = found.size();
  elf.each("__nv_relfatbin", add);
  for (auto& code : std::span(found).subspan(whole)) {
    for (auto& [kernel, count] : code.registers) {
      if (const auto known = linked.registers.find(kernel); known != linked.registers.end()) count = known->second;
    }
  }
  return found;
}

}  // namespace sim
