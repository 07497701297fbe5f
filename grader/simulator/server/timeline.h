// Streams and events of one program: which work waits for which, and when it runs.
//
// Work is queued with the dependences that CUDA guarantees and no others. Who runs it decides how late: after every
// call (program order), or only when something waits for it, the last issued first, so that work which relies on an
// order that nobody promised meets the other one.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace sim {

using Work = std::function<void()>;
using StreamId = std::uint64_t;
using EventId = std::uint64_t;
// Of a graph, one work: the stream that it was captured on, and the nodes that come before it.
struct Node {
  Work work;
  StreamId branch = 0;
  std::vector<std::size_t> after;
};
struct CapturedGraph {
  StreamId origin = 0;
  std::vector<Node> nodes;
  bool like(const CapturedGraph& other) const {  // as many nodes, which come behind the same ones
    return std::ranges::equal(nodes, other.nodes, {}, &Node::after, &Node::after);
  }
};
using Graph = std::shared_ptr<const CapturedGraph>;
// How many works of each tracked stream, by its slot, come before.
using Past = std::vector<std::uint64_t>;
// A work among all others: the so-manieth of the stream in this slot, and what comes before it and itself.
struct Moment {
  std::size_t slot = 0;
  std::uint64_t number = 0;
  StreamId stream = 0;
  Past past;
  bool in(const Past& all) const { return slot < all.size() && all[slot] >= number; }
};

// A handle that was never given out or is destroyed.
struct UnknownHandle {};
// What a stream that is being captured does not allow.
struct Capturing {};
// An end of a capture that did not begin there.
struct Unmatched {};

class Timeline {
 public:
  Timeline();

  StreamId create_stream(bool blocking);
  void destroy_stream(StreamId);  // what is queued still runs
  // bytes: what the work holds on to until it has run.
  void enqueue(StreamId, Work, std::size_t bytes = 0);
  void synchronize(StreamId);
  void synchronize();  // the host waits for all but what is being captured
  void drain();        // runs the same, and the host does not know

  // Of the work that runs.
  const Moment& now() const { return now_; }
  void host_waits_for_now() { join(host_, now_.past); }
  bool comes_before_all_else(const Moment&) const;  // that has not run yet
  bool host_knows(const Moment& m) const { return m.in(host_); }  // that it is over
  bool several_streams() const { return issued_in_.size() > 1; }
  // How often work came on another stream than the work before it.
  std::uint64_t crossings() const { return crossings_; }

  EventId create_event();
  void destroy_event(EventId);
  void record(EventId, StreamId);
  void wait(StreamId, EventId);
  void synchronize_event(EventId);
  // Milliseconds between two events; nothing unless both were recorded.
  std::optional<float> elapsed(EventId start, EventId end);

  void begin_capture(StreamId);
  Graph end_capture(StreamId);
  std::uint64_t capture(StreamId) const;  // its number, 0 if the stream is not being captured
  bool capturing() const;
  // Its branches run as work on streams of their own would.
  void launch(const Graph&, StreamId);

  bool overfull() const;
  void clear();  // forgets everything, what is queued too

 private:
  using Clock = std::chrono::steady_clock;
  struct Mark {
    StreamId stream = 0;
    std::uint64_t ticket = 0;
  };
  struct Entry {
    Work work;
    std::vector<Mark> after;
    std::uint64_t issued;
    std::size_t bytes;
    Moment moment;
  };
  struct Capture {
    std::uint64_t id;
    CapturedGraph graph;
  };
  struct Stream {
    bool blocking = true, destroyed = false;
    std::uint64_t done = 0;
    std::deque<Entry> queue;
    std::shared_ptr<Capture> capture;
    std::vector<std::size_t> ends;  // nodes of the capture that the next one comes behind
    std::vector<StreamId> sides;  // where the branches of graphs run that are launched on it
    std::size_t slot = 0;
    Past past;  // of what it is given next
  };
  struct Event {
    Past past;
    std::optional<Mark> mark;
    std::shared_ptr<std::optional<Clock::time_point>> time;
    std::shared_ptr<Capture> capture;
    std::vector<std::size_t> ends;
  };

  Stream& stream(StreamId);
  Event& event(EventId);
  Mark push(StreamId, Work, std::size_t bytes, std::vector<Mark> after = {});
  static void join(Past& into, const Past& other);
  StreamId side_stream(StreamId on, std::size_t number);
  std::size_t take_slot();
  void run_until(Mark);
  bool pending(const Mark&) const;

  std::map<StreamId, Stream> streams_;
  std::map<EventId, Event> events_;
  std::uint64_t next_id_, issued_ = 0, crossings_ = 0;
  StreamId last_ = 0;  // that work was issued on
  std::vector<std::uint64_t> issued_in_;  // by slot
  std::size_t slots_taken_ = 0;
  Past host_;
  Moment now_;
  std::size_t held_bytes_ = 0, held_entries_ = 0;
};

}  // namespace sim
