#include "engine/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <system_error>

namespace sim {
namespace {

constexpr int poison = 0xff;  // NaN as a float, -1 as an integer
constexpr std::size_t granule = 512;

void* map(Address where, std::size_t bytes, int fd) {
  const int flags =
      (where ? MAP_FIXED_NOREPLACE : 0) | (fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS) | MAP_NORESERVE;
  void* at = mmap(reinterpret_cast<void*>(where), bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (at == MAP_FAILED)
    throw std::system_error(errno, std::generic_category(), "cannot map the simulator's device memory");
  if (fd < 0) madvise(at, bytes, MADV_HUGEPAGE);  // kernels stream through it
  return at;
}
std::size_t whole_pages(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }
std::size_t span_of(std::size_t bytes) {
  return (std::max<std::size_t>(bytes, 1) + granule - 1) / granule * granule + red_zone;
}

}  // namespace

Memory::Memory(std::size_t device_bytes, int shared_fd, std::size_t shared_bytes) {
  device_ = {device_arena, whole_pages(device_bytes), device_arena + red_zone};
  map(device_.base, device_.size, -1);
  written_ = static_cast<std::uint8_t*>(map(0, device_.size / 8 + 64, -1));
  if (shared_fd >= 0) {
    shared_ = {shared_arena, whole_pages(shared_bytes), shared_arena + red_zone};
    map(shared_.base, shared_.size, shared_fd);
  }
}

Memory::~Memory() {
  munmap(reinterpret_cast<void*>(device_.base), device_.size);
  munmap(written_, device_.size / 8 + 64);
  if (shared_.size) munmap(reinterpret_cast<void*>(shared_.base), shared_.size);
}

Address Memory::place(Arena& arena, std::size_t bytes) {
  if (arena.size == 0 || bytes > arena.size - red_zone) return 0;
  const std::size_t span = span_of(bytes);
  if (&arena == &device_) {
    if (const Address at = kept_place(span)) return at;
  }
  if (arena.next + span <= arena.base + arena.size) {
    const Address at = arena.next;
    arena.next += span;
    return at;
  }
  // The arena is full: freed allocations are forgotten, and the first gap between live ones is taken.
  kept_.clear();
  kept_bytes_ = 0;
  std::erase_if(allocations_,
                [&](const auto& entry) { return !entry.second.live && entry.first - arena.base < arena.size; });
  Address at = arena.base + red_zone;
  for (const auto& [base, allocation] : allocations_) {
    if (base - arena.base >= arena.size) continue;
    if (at + span <= base) return at;
    at = base + span_of(allocation.size);
  }
  return at + span <= arena.base + arena.size ? at : 0;
}

Address Memory::kept_place(std::size_t span) {
  const auto found = kept_.find(span);
  if (found == kept_.end() || freed_bytes_ - found->second.front().freed < freed_before) return 0;
  const Address at = found->second.front().base;
  found->second.pop_front();
  if (found->second.empty()) kept_.erase(found);
  kept_bytes_ -= span;
  return at;
}

void Memory::keep(const Allocation& a) {
  std::memset(reinterpret_cast<void*>(a.base), 0, a.size);
  const std::size_t span = span_of(a.size);
  kept_bytes_ += span;
  freed_bytes_ += span;
  kept_[span].push_back({a.base, freed_bytes_});
  while (kept_bytes_ > most_kept) {
    const auto first = std::min_element(kept_.begin(), kept_.end(), [](const auto& one, const auto& other) {
      return one.second.front().freed < other.second.front().freed;
    });
    discard(allocations_.at(first->second.front().base));
    kept_bytes_ -= first->first;
    first->second.pop_front();
    if (first->second.empty()) kept_.erase(first);
  }
}

Address Memory::allocate(std::size_t bytes, Space space, bool ready) {
  const std::lock_guard lock(mutex_);
  Arena& arena = space == Space::device ? device_ : shared_;
  const Address at = place(arena, bytes);
  if (!at) return 0;
  allocations_[at] = {at, bytes, space, true, ready, !ready};
  std::memset(reinterpret_cast<void*>(at), poison, bytes);
  mark(at, bytes, false);
  return at;
}

Address Memory::allocate_in_kernel(std::size_t bytes, std::size_t others) {
  {
    const std::lock_guard lock(mutex_);
    if (bytes > heap_limit - std::min(heap_limit, heap_bytes_ + others)) return 0;
    heap_bytes_ += bytes;
  }
  const Address at = allocate(bytes, Space::device);
  const std::lock_guard lock(mutex_);
  if (at)
    allocations_.at(at).of_kernel = true;
  else
    heap_bytes_ -= bytes;
  return at;
}

void Memory::surround(Address base, std::size_t bytes) {
  std::memset(reinterpret_cast<void*>(base - red_zone), poison, red_zone);
  std::memset(reinterpret_cast<void*>(base + bytes), poison, red_zone);
}

bool Memory::renew(Address base) {
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(base);
  if (found == allocations_.end() || !found->second.live) return false;
  std::memset(reinterpret_cast<void*>(base), poison, found->second.size);
  mark(base, found->second.size, false);
  return true;
}

bool Memory::describe(Address base, std::string_view name, bool constant) {
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(base);
  if (found == allocations_.end() || !found->second.live) return false;
  found->second.constant = constant;
  names_.insert_or_assign(base, std::string(name));
  return true;
}
std::string Memory::name(Address base) const {
  const std::lock_guard lock(mutex_);
  const auto found = names_.find(base);
  return found == names_.end() ? std::string() : found->second;
}

void Memory::make_ready(Address address) {
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(address);
  if (found == allocations_.end()) return;
  Allocation& a = found->second;
  if (!a.live) {
    std::memset(reinterpret_cast<void*>(a.base), poison, a.size);
    mark(a.base, a.size, false);
  }
  a.live = a.ready = true;
}

void Memory::discard(const Allocation& a) {
  // Pages that belong to this allocation alone go back to the system, and come back as zeros like the rest of it.
  const Address end = a.base + a.size;
  const Address first = std::min((a.base + 4095) & ~Address{4095}, end), last = std::max(end & ~Address{4095}, first);
  std::memset(reinterpret_cast<void*>(a.base), 0, first - a.base);
  if (first < last)
    madvise(reinterpret_cast<void*>(first), last - first, a.space == Space::device ? MADV_DONTNEED : MADV_REMOVE);
  std::memset(reinterpret_cast<void*>(last), 0, end - last);
}

bool Memory::release(Address address, bool reuse) {
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(address);
  if (found == allocations_.end() || !found->second.live) return false;
  Allocation& a = found->second;
  a.live = false;
  names_.erase(address);
  if (a.of_kernel) heap_bytes_ -= a.size;
  if (reuse && !a.of_stream && a.space == Space::device && a.size <= most_of_one_kept)
    keep(a);
  else
    discard(a);
  return true;
}

std::optional<Allocation> Memory::find(Address address) const {
  const std::lock_guard lock(mutex_);
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return std::nullopt;
  const Allocation& a = std::prev(after)->second;
  if (address - a.base < std::max<std::size_t>(a.size, 1)) return a;
  return std::nullopt;
}

std::optional<Allocation> Memory::nearest(Address address, Address most) const {
  const std::lock_guard lock(mutex_);
  const auto after = allocations_.upper_bound(address);
  std::optional<Allocation> best;
  Address distance = most;
  const auto consider = [&](const Allocation& a) {
    const Address d = address < a.base ? a.base - address : address - std::min(address, a.base + a.size);
    if (d < distance) {
      distance = d;
      best = a;
    }
  };
  if (after != allocations_.end()) consider(after->second);
  if (after != allocations_.begin()) consider(std::prev(after)->second);
  return best;
}

bool Memory::inside(Address address, std::size_t bytes) const {
  const auto a = find(address);
  return a && a->live && a->ready && bytes <= a->size - (address - a->base);
}

bool Memory::mapped(Address address, std::size_t bytes) const {
  const auto in = [&](const Arena& arena) {
    return address - arena.base < arena.size && bytes <= arena.size - (address - arena.base);
  };
  if (!in(device_) && !in(shared_)) return false;
  const std::lock_guard lock(mutex_);
  const auto holds_one = [&](Address page) {
    const auto after = allocations_.lower_bound(page + gpu_page);
    if (after == allocations_.begin()) return false;
    const Allocation& last = std::prev(after)->second;
    return last.base + std::max<std::size_t>(last.size, 1) > page;
  };
  const Address first = address / gpu_page * gpu_page, last = (address + bytes - 1) / gpu_page * gpu_page;
  return holds_one(first) && (last == first || holds_one(last));
}

void Memory::mark(Address address, std::size_t bytes, bool value) {
  if (!has_shadow(address) || bytes == 0) return;
  std::size_t first = bit_of(address);
  const std::size_t last = first + bytes;
  const auto one = [&](std::size_t bit) {
    auto& byte = written_[bit / 8];
    byte = static_cast<std::uint8_t>(value ? byte | 1 << bit % 8 : byte & ~(1 << bit % 8));
  };
  while (first < last && first % 8) one(first++);
  const std::size_t whole = (last - first) / 8;
  std::memset(written_ + first / 8, value ? 0xff : 0, whole);
  first += whole * 8;
  while (first < last) one(first++);
}

Unwritten Memory::unwritten(Address address, std::size_t bytes) const {
  Unwritten all;
  if (!has_shadow(address) || bytes > device_.size - bit_of(address)) return all;
  const Address end = address + bytes;
  const auto missing = [&](Address at) { return (written_[bit_of(at) / 8] >> bit_of(at) % 8 & 1) == 0; };
  const auto eight_written = [&](Address at) { return bit_of(at) % 8 == 0 && written_[bit_of(at) / 8] == 0xff; };
  for (Address at = address; at < end;) {
    if (eight_written(at)) {
      at += 8;
      continue;
    }
    if (!missing(at)) {
      ++at;
      continue;
    }
    const Address first = at;
    while (at < end && missing(at)) at += bit_of(at) % 8 == 0 && end - at >= 8 && written_[bit_of(at) / 8] == 0 ? 8 : 1;
    const Address alignment = (at - address) & -(at - address);  // of the member behind it
    if (first != address && at - first < std::min<Address>(alignment, most_padding)) continue;
    if (all.bytes == 0) all.first = first;
    all.bytes += at - first;
  }
  return all;
}

void Memory::copy_marks(Address to, Address from, std::size_t bytes) {
  if (!has_shadow(to)) return;
  if (!has_shadow(from)) return mark(to, bytes, true);
  const std::size_t source = bit_of(from), target = bit_of(to);
  if (source % 8 == 0 && target % 8 == 0) {
    std::memmove(written_ + target / 8, written_ + source / 8, bytes / 8);
    const std::size_t done = bytes / 8 * 8;
    for (std::size_t n = done; n < bytes; ++n) mark(to + n, 1, written_[(source + n) / 8] >> (source + n) % 8 & 1);
    return;
  }
  std::vector<bool> marks(bytes);
  for (std::size_t n = 0; n < bytes; ++n) marks[n] = written_[(source + n) / 8] >> (source + n) % 8 & 1;
  for (std::size_t n = 0; n < bytes; ++n) mark(to + n, 1, marks[n]);
}

void Memory::reset() {
  const std::lock_guard lock(mutex_);
  allocations_.clear();
  names_.clear();
  kept_.clear();
  kept_bytes_ = heap_bytes_ = 0;
  madvise(reinterpret_cast<void*>(device_.base), device_.size, MADV_DONTNEED);
  if (shared_.size) madvise(reinterpret_cast<void*>(shared_.base), shared_.size, MADV_REMOVE);
  device_.next = device_.base + red_zone;
  shared_.next = shared_.base + red_zone;
}

}  // namespace sim
