#include "engine/crew.h"

#include <chrono>
#include <utility>

namespace sim {

void rest() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

void Crew::run(std::size_t count, const std::function<void(std::size_t)>& work) {
  while (members_.size() + 1 < count) members_.push_back(std::make_unique<Member>());
  for (std::size_t n = 1; n < count; ++n) members_[n - 1]->begin([&work, n] { work(n); });
  work(0);
  for (std::size_t n = 1; n < count; ++n) members_[n - 1]->finish();
}

Crew::Member::~Member() {
  {
    const std::lock_guard lock(mutex_);
    leaves_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Crew::Member::begin(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    work_ = std::move(work);
  }
  changed_.notify_all();
}

void Crew::Member::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !work_; });
}

void Crew::Member::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return work_ || leaves_; });
    if (!work_) return;
    lock.unlock();
    work_();
    lock.lock();
    work_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace sim
