// A socket that carries frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace sim {

// The other side is gone, or so far behind that it counts as gone.
struct Disconnected {};

class Channel {
 public:
  // limit: the longest frame that the other side may send.
  Channel(int descriptor, std::size_t limit, bool takes_descriptors)
      : descriptor_(descriptor), limit_(limit), takes_descriptors_(takes_descriptors) {}
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  int descriptor() const { return descriptor_; }

  // Takes in what has arrived without waiting; false at the end of the stream.
  bool fill();
  // The next complete frame without its length, valid until the next call; throws Malformed for one over the limit.
  std::optional<std::span<const std::byte>> next();
  // Waits for a frame. Throws Disconnected, Malformed.
  std::span<const std::byte> wait();
  // The descriptor that came with the frames, once; -1 if none did.
  int take_descriptor();

  void send(std::span<const std::byte> frame, int descriptor = -1);  // throws Disconnected

 private:
  bool receive(bool wait);
  int descriptor_, received_ = -1;
  std::size_t limit_;
  bool takes_descriptors_;
  std::size_t begin_ = 0, end_ = 0;
  std::vector<std::byte> buffer_;
};

}  // namespace sim
