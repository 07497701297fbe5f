#include "channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "../protocol.h"

namespace sim {
namespace {

constexpr int patience_ms = 20'000;  // for a side that does not read its answers
constexpr std::size_t read_size = std::size_t{256} << 10;

}  // namespace

Channel::~Channel() {
  close(descriptor_);
  if (received_ >= 0) close(received_);
}

bool Channel::receive(bool wait) {
  if (begin_ == end_) begin_ = end_ = 0;
  if (begin_ > 0 && begin_ >= buffer_.size() / 2) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
  }
  if (buffer_.size() - end_ < read_size) buffer_.resize(std::max(buffer_.size() * 2, end_ + read_size));

  iovec data{buffer_.data() + end_, buffer_.size() - end_};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (takes_descriptors_) {  // without room for them the kernel drops what a program sends
    message.msg_control = control;
    message.msg_controllen = CMSG_LEN(sizeof(int));
  }
  const auto n = recvmsg(descriptor_, &message, (wait ? 0 : MSG_DONTWAIT) | MSG_CMSG_CLOEXEC);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  for (auto* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    if (received_ >= 0) close(received_);
    std::memcpy(&received_, CMSG_DATA(header), sizeof received_);
  }
  end_ += static_cast<std::size_t>(n);
  return n > 0;
}

bool Channel::fill() { return receive(false); }

std::optional<std::span<const std::byte>> Channel::next() {
  const auto have = end_ - begin_;
  if (have < 4) return {};
  std::uint32_t length;
  std::memcpy(&length, buffer_.data() + begin_, 4);
  if (length < 4 || length > limit_) throw Malformed("a frame of " + std::to_string(length) + " bytes");
  if (have - 4 < length) return {};
  const std::span<const std::byte> frame(buffer_.data() + begin_ + 4, length);
  begin_ += 4 + length;
  return frame;
}

std::span<const std::byte> Channel::wait() {
  while (true) {
    if (const auto frame = next()) return *frame;
    if (!receive(true)) throw Disconnected{};
  }
}

int Channel::take_descriptor() { return std::exchange(received_, -1); }

void Channel::send(std::span<const std::byte> frame, int descriptor) {
  while (!frame.empty()) {
    iovec data{const_cast<std::byte*>(frame.data()), frame.size()};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    if (descriptor >= 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      auto* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    }
    const auto n = sendmsg(descriptor_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      descriptor = -1;
      frame = frame.subspan(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      pollfd ready{descriptor_, POLLOUT, 0};
      if (poll(&ready, 1, patience_ms) == 0) throw Disconnected{};
    } else if (errno != EINTR) {
      throw Disconnected{};
    }
  }
}

}  // namespace sim
