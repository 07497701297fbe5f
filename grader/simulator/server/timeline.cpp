#include "timeline.h"

#include <algorithm>
#include <utility>

#include "../protocol.h"

namespace sim {
namespace {

constexpr std::size_t most_bytes = std::size_t{256} << 20, most_entries = 100'000, most_handles = 100'000;
constexpr std::size_t most_slots = 64;  // further streams share theirs, and are taken to be ordered
constexpr std::uint64_t first_id = 0x1000;  // a handle is a pointer to the program, and not a null one

StreamId canonical(StreamId id) { return id == default_stream ? legacy_stream : id; }

}  // namespace

Timeline::Timeline() : next_id_(first_id) { clear(); }

void Timeline::clear() {
  streams_.clear();
  events_.clear();
  held_bytes_ = held_entries_ = 0;
  issued_in_.clear();
  slots_taken_ = 0;
  host_.clear();
  streams_[legacy_stream].slot = take_slot();
}

std::size_t Timeline::take_slot() {
  const auto slot = slots_taken_++ % most_slots;
  issued_in_.resize(std::max(issued_in_.size(), slot + 1));
  return slot;
}

void Timeline::join(Past& into, const Past& other) {
  into.resize(std::max(into.size(), other.size()));
  for (std::size_t n = 0; n < other.size(); ++n) into[n] = std::max(into[n], other[n]);
}

Timeline::Stream& Timeline::stream(StreamId id) {
  const auto found = streams_.find(canonical(id));
  if (found == streams_.end() || found->second.destroyed) throw UnknownHandle{};
  return found->second;
}

Timeline::Event& Timeline::event(EventId id) {
  const auto found = events_.find(id);
  if (found == events_.end()) throw UnknownHandle{};
  return found->second;
}

StreamId Timeline::create_stream(bool blocking) {
  if (streams_.size() >= most_handles) throw UnknownHandle{};
  auto& made = streams_[next_id_ += 16];
  made.blocking = blocking;
  made.slot = take_slot();
  return next_id_;
}

void Timeline::destroy_stream(StreamId id) {
  auto& gone = stream(id);
  if (canonical(id) == legacy_stream) throw UnknownHandle{};
  if (gone.blocking) join(streams_.at(legacy_stream).past, gone.past);  // which still waits for it
  for (const auto side : std::exchange(gone.sides, {})) destroy_stream(side);
  gone.destroyed = true;
  if (gone.queue.empty()) streams_.erase(id);
}

bool Timeline::pending(const Mark& mark) const {
  const auto found = streams_.find(mark.stream);
  return found != streams_.end() && found->second.done < mark.ticket;
}

Timeline::Mark Timeline::push(StreamId id, Work work, std::size_t bytes, std::vector<Mark> after) {
  id = canonical(id);
  crossings_ += std::exchange(last_, id) != id;
  auto& target = stream(id);
  const auto behind = [&](StreamId other, const Stream& its) {
    if (!its.queue.empty()) after.push_back({other, its.done + its.queue.size()});
    join(target.past, its.past);
  };
  join(target.past, host_);
  if (id == legacy_stream) {
    for (const auto& [other, its] : streams_) {
      if (its.blocking && other != legacy_stream) behind(other, its);
    }
  } else if (target.blocking) {
    behind(legacy_stream, streams_.at(legacy_stream));
  }
  const auto number = ++issued_in_[target.slot];
  target.past.resize(std::max(target.past.size(), target.slot + 1));
  target.past[target.slot] = number;
  target.queue.push_back({std::move(work), std::move(after), ++issued_, bytes, {target.slot, number, id, target.past}});
  held_bytes_ += bytes;
  ++held_entries_;
  return {id, target.done + target.queue.size()};
}

void Timeline::enqueue(StreamId id, Work work, std::size_t bytes) {
  auto& its = stream(id);
  if (its.capture) {
    auto& nodes = its.capture->graph.nodes;
    if (nodes.size() >= most_entries) throw Capturing{};
    nodes.push_back({std::move(work), canonical(id), std::exchange(its.ends, {nodes.size()})});
  } else {
    push(id, std::move(work), bytes);
  }
}

void Timeline::run_until(Mark mark) {
  while (pending(mark)) {
    auto& its = streams_.at(mark.stream);
    // The dependences are of earlier issue than this entry, so the recursion is no deeper than there are streams.
    auto after = std::exchange(its.queue.front().after, {});
    std::ranges::reverse(after);
    for (const auto& earlier : after) run_until(earlier);
    auto entry = std::move(its.queue.front());
    its.queue.pop_front();
    ++its.done;
    held_bytes_ -= entry.bytes;
    --held_entries_;
    if (its.destroyed && its.queue.empty()) streams_.erase(mark.stream);
    now_ = std::move(entry.moment);
    entry.work();
  }
}

void Timeline::synchronize(StreamId id) {
  if (stream(id).capture) throw Capturing{};
  run_until(push(id, [] {}, 0));
  join(host_, stream(id).past);
}

void Timeline::synchronize() {
  drain();
  for (const auto& [id, its] : streams_) join(host_, its.past);
}

bool Timeline::comes_before_all_else(const Moment& m) const {
  return m.in(host_) && std::ranges::all_of(streams_, [&](const auto& entry) {
           const auto& queue = entry.second.queue;
           return queue.empty() || m.in(queue.front().moment.past);
         });
}

void Timeline::drain() {
  while (true) {
    std::pair<std::uint64_t, Mark> latest{};
    for (const auto& [id, its] : streams_) {
      if (!its.queue.empty()) {
        const std::pair candidate(its.queue.front().issued, Mark{id, its.done + 1});
        if (candidate.first > latest.first) latest = candidate;
      }
    }
    if (latest.first == 0) return;
    run_until(latest.second);
  }
}

EventId Timeline::create_event() {
  if (events_.size() >= most_handles) throw UnknownHandle{};
  events_[next_id_ += 16];
  return next_id_;
}

void Timeline::destroy_event(EventId id) {
  event(id);
  events_.erase(id);
}

void Timeline::record(EventId id, StreamId on) {
  auto& target = event(id);
  target.capture = stream(on).capture;
  target.ends = stream(on).ends;
  target.mark.reset();
  if (target.capture) return;
  target.time = std::make_shared<std::optional<Clock::time_point>>();
  target.mark = push(on, [time = target.time] { *time = Clock::now(); }, 0);
  target.past = stream(on).past;
}

void Timeline::wait(StreamId id, EventId on) {
  const auto& awaited = event(on);
  auto& waiting = stream(id);
  if (awaited.capture) {
    if (canonical(id) == legacy_stream) throw Capturing{};
    if (waiting.capture != awaited.capture) waiting.ends.clear();
    waiting.capture = awaited.capture;
    waiting.ends.insert(waiting.ends.end(), awaited.ends.begin(), awaited.ends.end());
  } else if (awaited.mark) {
    join(waiting.past, awaited.past);
    if (!pending(*awaited.mark)) return;
    if (waiting.capture) throw Capturing{};
    push(id, [] {}, 0, {*awaited.mark});
  }
}

void Timeline::synchronize_event(EventId id) {
  const auto& target = event(id);
  if (target.capture) throw Capturing{};
  if (!target.mark) return;
  run_until(*target.mark);
  join(host_, target.past);
}

std::optional<float> Timeline::elapsed(EventId start, EventId end) {
  const auto from = event(start).time, to = event(end).time;
  if (!from || !to || !*from || !*to) return {};
  return std::chrono::duration<float, std::milli>(**to - **from).count();
}

void Timeline::begin_capture(StreamId id) {
  auto& its = stream(id);
  if (canonical(id) == legacy_stream || its.capture) throw Capturing{};
  its.capture = std::make_shared<Capture>(Capture{++issued_, {canonical(id), {}}});
  its.ends.clear();
}

Graph Timeline::end_capture(StreamId id) {
  const auto ended = stream(id).capture;
  if (!ended || ended->graph.origin != canonical(id)) throw Unmatched{};
  for (auto& [other, its] : streams_) {
    if (its.capture == ended) its.capture.reset();
  }
  return std::make_shared<const CapturedGraph>(std::move(ended->graph));
}

std::uint64_t Timeline::capture(StreamId id) const {
  const auto found = streams_.find(canonical(id));
  if (found == streams_.end()) throw UnknownHandle{};
  return found->second.capture ? found->second.capture->id : 0;
}

bool Timeline::capturing() const {
  return std::ranges::any_of(streams_, [](const auto& entry) { return entry.second.capture != nullptr; });
}

// The stream on which branch `number` of a graph runs that is launched on `on`; all graphs share it.
StreamId Timeline::side_stream(StreamId on, std::size_t number) {
  auto& sides = stream(on).sides;
  while (sides.size() <= number) sides.push_back(create_stream(false));
  return sides[number];
}

void Timeline::launch(const Graph& graph, StreamId on) {
  if (stream(on).capture) throw Capturing{};  // a graph in a graph in a graph could be nested without end
  const Mark start = push(on, [] {}, 0);
  const Past before = stream(on).past;
  std::vector<Mark> marks;
  std::vector<Past> pasts;
  std::map<StreamId, StreamId> targets{{graph->origin, on}};  // by the stream that was captured
  for (std::size_t n = 0; n < graph->nodes.size(); ++n) {
    const Node& node = graph->nodes[n];
    const auto [branch, fresh] = targets.try_emplace(node.branch);
    if (fresh) branch->second = side_stream(on, targets.size() - 2);
    const StreamId target = branch->second;
    std::vector<Mark> after{start};
    join(stream(target).past, before);
    for (const auto earlier : node.after) {
      after.push_back(marks[earlier]);
      join(stream(target).past, pasts[earlier]);
    }
    marks.push_back(push(target, [graph, n] { graph->nodes[n].work(); }, 0, std::move(after)));
    pasts.push_back(stream(target).past);
  }
  for (const auto& past : pasts) join(stream(on).past, past);
  push(on, [] {}, 0, std::move(marks));
}

bool Timeline::overfull() const { return held_bytes_ > most_bytes || held_entries_ > most_entries; }

}  // namespace sim
