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
constexpr std::uint16_t kind_ptx = 1;
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

}  // namespace

std::string ptx_of(std::span<const std::byte> container) {
  if (field<std::uint32_t>(container, 0) != magic) throw FatbinError("the CUDA code in this file is of an unknown format");
  auto images = part(container, field<std::uint16_t>(container, 6), field<std::uint64_t>(container, 8));
  std::optional<Image> best;
  while (!images.empty()) {
    const auto header = field<std::uint32_t>(images, 4);
    const auto size = field<std::uint64_t>(images, 8);
    if (header < 48) throw FatbinError("the CUDA code in this file is damaged");
    if (field<std::uint16_t>(images, 0) == kind_ptx) {
      const Image image{field<std::uint32_t>(images, 28), field<std::uint64_t>(images, 40),
                        header >= 64 ? field<std::uint64_t>(images, 56) : 0, part(images, header, size)};
      if (!best || better(image, *best)) best = image;
    }
    part(images, header, size);
    images = images.subspan(header + size);
  }
  if (!best) return {};
  if ((best->flags & (flag_lz4 | flag_zstd)) != 0) return inflate(*best);
  const std::string_view padded(reinterpret_cast<const char*>(best->payload.data()), best->payload.size());
  return std::string(padded.substr(0, padded.find('\0')));
}

std::vector<std::string> ptx_of_elf(std::span<const std::byte> file) {
  const auto elf = field<Elf64_Ehdr>(file, 0);
  if (std::memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 || elf.e_ident[EI_CLASS] != ELFCLASS64) {
    throw FatbinError("this is not a 64-bit object or library that nvcc made");
  }
  const auto section = [&](std::uint64_t i) { return field<Elf64_Shdr>(file, elf.e_shoff + i * sizeof(Elf64_Shdr)); };
  if (elf.e_shentsize != sizeof(Elf64_Shdr) || elf.e_shstrndx >= elf.e_shnum) {
    throw FatbinError("this library has no section table (was it stripped?)");
  }
  const auto strings = section(elf.e_shstrndx);
  const auto names = part(file, strings.sh_offset, strings.sh_size);

  std::vector<std::string> found;
  for (std::uint64_t i = 0; i < elf.e_shnum; ++i) {
    const auto header = section(i);
    if (header.sh_name >= names.size() || header.sh_type == SHT_NOBITS) continue;
    const auto tail = names.subspan(header.sh_name);
    const std::string_view all(reinterpret_cast<const char*>(tail.data()), tail.size());
    if (all.substr(0, all.find('\0')) != ".nv_fatbin") continue;

    auto data = part(file, header.sh_offset, header.sh_size);
    while (data.size() >= 16) {
      if (field<std::uint32_t>(data, 0) != magic) {  // padding between containers
        data = data.subspan(8);
        continue;
      }
      const auto head = field<std::uint16_t>(data, 6);
      const auto size = field<std::uint64_t>(data, 8);
      part(data, head, size);
      if (auto ptx = ptx_of(data.first(head + size)); !ptx.empty()) found.push_back(std::move(ptx));
      data = data.subspan(std::min<std::uint64_t>(data.size(), (head + size + 7) / 8 * 8));
    }
  }
  return found;
}

}  // namespace sim
