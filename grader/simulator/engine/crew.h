// Threads that wait from launch to launch: to start and end one takes as long as a short launch.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace sim {

// Leaves the processor to other threads for a moment, when what they do is waited for.
void rest();

class Crew {
 public:
  // Calls work(n) for each n below `count`, all at the same time and the first of them here.
  void run(std::size_t count, const std::function<void(std::size_t)>& work);

 private:
  class Member {
   public:
    Member() = default;
    ~Member();
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;
    void begin(std::function<void()> work);
    void finish();  // waits until it is done

   private:
    void serve();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::function<void()> work_;  // until it is done
    bool leaves_ = false;
    std::thread thread_{&Member::serve, this};
  };
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace sim
