// Device memory: the two arenas, the allocations in them and what is known of every byte.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device.h"

namespace sim {

// No overflow of less than this lands in another allocation.
inline constexpr std::size_t red_zone = 64 * 1024;
inline constexpr std::size_t gpu_page = std::size_t{2} << 20;  // of what cudaMalloc maps
// Pages that are given back cost more to get again than a small kernel takes. So small places are kept and given out
// again, but not before so many bytes have been freed since that a use after free has been seen.
inline constexpr std::size_t most_of_one_kept = std::size_t{4} << 20, freed_before = std::size_t{32} << 20,
                             most_kept = 2 * freed_before;

inline constexpr Address most_padding = 16;  // bytes: the greatest alignment of a type

struct Arena {
  Address base = 0;
  std::size_t size = 0;
  Address next = 0;  // first address never handed out
};

class Memory {
 public:
  Memory(std::size_t device_bytes, int shared_fd, std::size_t shared_bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  Address allocate(std::size_t bytes, Space, bool ready = true);
  // 0 if the heap of malloc() in kernels has no room beside `others` bytes.
  Address allocate_in_kernel(std::size_t bytes, std::size_t others);
  std::size_t heap_limit = ~std::size_t{0};  // bytes of that heap: cudaLimitMallocHeapSize
  void make_ready(Address);
  void surround(Address, std::size_t bytes);  // with poison, as far as the red zones reach
  bool renew(Address);  // a live allocation is as it was when it was allocated; false if it is none
  bool release(Address, bool reuse = false);
  bool describe(Address, std::string_view name, bool constant);
  std::string name(Address base) const;  // empty if it has none
  std::optional<Allocation> find(Address) const;         // the allocation around an address, live or freed
  std::optional<Allocation> nearest(Address, Address most) const;  // the closest one, less than so many bytes away
  bool inside(Address, std::size_t bytes) const;         // within one live allocation that is ready
  // Whether a GPU has memory there: all of each page that holds an allocation, even if that was freed. Between
  // allocations lie zeros, until a kernel writes there, or the poison around the judge's own.
  bool mapped(Address, std::size_t bytes) const;
  void reset();

  bool has_shadow(Address a) const { return a - device_.base < device_.size; }
  // One bit per byte of the device arena: has it been written?
  std::uint8_t* written() const { return written_; }
  std::size_t bit_of(Address a) const { return a - device_.base; }
  void mark(Address, std::size_t bytes, bool written);
  // Of bytes of one allocation, those that nothing has written, apart from holes that padding may be.
  Unwritten unwritten(Address, std::size_t bytes) const;
  void copy_marks(Address to, Address from, std::size_t bytes);

  Address device_base() const { return device_.base; }
  std::size_t device_size() const { return device_.size; }

 private:
  struct Place {
    Address base;
    std::uint64_t freed;  // bytes in all, with this one
  };

  Address place(Arena&, std::size_t bytes);
  Address kept_place(std::size_t span);  // 0 if there is none
  void keep(const Allocation&);
  void discard(const Allocation&);

  Arena device_, shared_;
  std::uint8_t* written_ = nullptr;
  mutable std::mutex mutex_;  // device-side malloc comes from several threads
  std::map<Address, Allocation> allocations_;
  std::map<Address, std::string> names_;  // of live allocations of the judge
  std::map<std::size_t, std::deque<Place>> kept_;  // by their spans, the first freed first
  std::size_t kept_bytes_ = 0;
  std::uint64_t freed_bytes_ = 0;  // of what was kept, ever
  std::size_t heap_bytes_ = 0;     // that kernels have allocated
};

}  // namespace sim
