// Graphs: captured ones, which are the device's, and those that a program builds node by node.
//
// A graph that was built is captured when it is instantiated: its nodes are issued to streams of our own, which wait
// for each other as the nodes do. So the device knows one kind of graph.

#include "graphs.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <variant>
#include <vector>

#include "launch.h"
#include "streams.h"

namespace cudart {

CUDART_API Error cudaLaunchKernel(const void*, Dim3, Dim3, void**, std::size_t, Stream);
CUDART_API Error cudaMemcpy3DAsync(const Memcpy3D*, Stream);
CUDART_API Error cudaMemset2DAsync(void*, std::size_t, int, std::size_t, std::size_t, Stream);
CUDART_API Error cudaLaunchHostFunc(Stream, void (*)(void*), void*);
CUDART_API Error cudaStreamCreateWithFlags(Stream*, unsigned);
CUDART_API Error cudaStreamDestroy(Stream);
CUDART_API Error cudaStreamWaitEvent(Stream, Event, unsigned);
CUDART_API Error cudaEventCreate(Event*);
CUDART_API Error cudaEventDestroy(Event);
CUDART_API Error cudaEventRecord(Event, Stream);

namespace {

using sim::Ask;

constexpr unsigned non_blocking = 1;
constexpr Error success = sim::success;

struct KernelParams {
  const void* function;
  Dim3 grid, block;
  unsigned shared;
  void** arguments;
  void** packed;
};
struct MemsetParams {
  void* to;
  std::size_t pitch;
  unsigned value, element_bytes;
  std::size_t width, height;
};
struct HostParams {
  void (*function)(void*);
  void* argument;
};

// Its parameters point to the copies of the arguments, also when it is moved, but not when it is copied.
struct Kernel {
  KernelParams params;
  Arguments arguments;
  std::vector<void*> pointers;
};
struct Empty {};
struct Built;
using Child = std::shared_ptr<const Built>;
// In the order of cudaGraphNodeType.
using Content = std::variant<Kernel, Memcpy3D, MemsetParams, HostParams, Child, Empty>;

struct Node {
  Content content;
  std::vector<std::size_t> after;  // nodes of the same graph, which were added before
  const Built* graph;
  std::size_t number;
};
struct Built {
  std::vector<std::unique_ptr<Node>> nodes;
};

Kernel kernel_of(const char* call, const KernelParams& params) {
  Kernel kernel{params, copied(call, params.function, params.arguments), {}};
  kernel.pointers = kernel.arguments.pointers();
  kernel.params.arguments = kernel.pointers.data();
  return kernel;
}

std::shared_ptr<Built> clone(const Built& graph) {
  auto copy = std::make_shared<Built>();
  for (const auto& node : graph.nodes) {
    copy->nodes.push_back(std::make_unique<Node>(Node{node->content, node->after, copy.get(), node->number}));
    if (auto* kernel = std::get_if<Kernel>(&copy->nodes.back()->content)) *kernel = kernel_of("", kernel->params);
  }
  return copy;
}

// All graphs that this process has: by handle those that it built, and what each graph of the device keeps.
struct Graphs {
  std::mutex mutex;
  std::map<void*, std::shared_ptr<Built>> built;
  std::map<void*, std::shared_ptr<Built>> executables;  // what those were built of that can be launched
  std::map<std::uint64_t, std::vector<Kept>> kept_by_captures;
  std::map<void*, std::vector<Kept>> kept_by_graphs;
};
Graphs& graphs() {
  static auto* all = new Graphs;  // used until the very end of the process
  return *all;
}
std::atomic<bool> has_captured{false};

std::shared_ptr<Built> built(void* graph) {
  const std::lock_guard lock(graphs().mutex);
  const auto entry = graphs().built.find(graph);
  return entry == graphs().built.end() ? nullptr : entry->second;
}

std::uint64_t id(const void* handle) { return reinterpret_cast<std::uint64_t>(handle); }

Question about(Ask what, const char* call, Stream stream) {
  Question question(what, call);
  question.put(stream_id(stream));
  return question;
}

Error begin_capture(const char* call, Stream stream) {
  has_captured = true;
  return run(about(Ask::capture_begin, call, stream));
}

Error end_capture(const char* call, Stream stream, void** graph) {
  const auto capture = capture_of(call, stream);
  const auto code = run<std::uint64_t>(about(Ask::capture_end, call, stream), graph);
  const std::lock_guard lock(graphs().mutex);
  if (auto kept = graphs().kept_by_captures.extract(capture); kept && code == success) {
    graphs().kept_by_graphs[*graph] = std::move(kept.mapped());
  }
  return code;
}

void inherit(void* from, void* to) {
  const std::lock_guard lock(graphs().mutex);
  if (const auto entry = graphs().kept_by_graphs.find(from); entry != graphs().kept_by_graphs.end()) {
    graphs().kept_by_graphs[to] = entry->second;
  }
}

Error destroy(const char* call, void* graph) {
  std::vector<Kept> released;  // once the lock is open
  {
    const std::lock_guard lock(graphs().mutex);
    graphs().executables.erase(graph);
    if (auto kept = graphs().kept_by_graphs.extract(graph)) released = std::move(kept.mapped());
    if (graphs().built.erase(graph) != 0) return success;
  }
  Question question(Ask::graph_destroy, call);
  question.put(id(graph));
  return run(std::move(question));
}

Error copy_of_captured(const char* call, void** copy, void* graph) {
  Question question(Ask::graph_instantiate, call);
  question.put(id(graph));
  const auto code = run<std::uint64_t>(std::move(question), copy);
  if (code == success) inherit(graph, *copy);
  return code;
}

Error graph_launch(const char* call, void* graph, Stream stream) {
  Question question(Ask::graph_launch, call);
  question.put(id(graph)).put(stream_id(stream));
  return run(std::move(question));
}

// Issues the nodes of a graph to streams that are being captured. A node goes to the stream of one that it comes
// behind, unless another does so already.
class Issue {
 public:
  explicit Issue(Stream origin) : origin_(origin) {}
  Issue(const Issue&) = delete;
  Issue& operator=(const Issue&) = delete;
  ~Issue() {
    for (const auto event : events_) cudaEventDestroy(event);
    for (const auto stream : streams_) cudaStreamDestroy(stream);
  }

  Error all(const Built& graph) {
    const auto start = record(origin_);
    const auto ends = nodes(graph, {start});
    for (const auto& [stream, event] : ends) check(cudaStreamWaitEvent(origin_, event, 0));
    return code_;
  }

 private:
  struct End {
    Stream stream;
    Event event;
  };

  std::vector<End> nodes(const Built& graph, const std::vector<End>& behind) {
    std::vector<std::vector<End>> ends;
    std::vector<End> last = graph.nodes.empty() ? behind : std::vector<End>{};
    for (const auto& node : graph.nodes) {
      std::vector<End> before;
      for (const auto earlier : node->after) before.insert(before.end(), ends[earlier].begin(), ends[earlier].end());
      if (node->after.empty()) before = behind;
      const auto* child = std::get_if<Child>(&node->content);
      ends.push_back(child != nullptr ? nodes(**child, before) : std::vector<End>{single(node->content, before)});
      last.insert(last.end(), ends.back().begin(), ends.back().end());
    }
    return last;
  }

  End single(const Content& content, const std::vector<End>& before) {
    Stream stream = nullptr;
    for (const auto& [candidate, event] : before) {
      if (candidate == origin_ || latest_[candidate] != event) continue;
      stream = candidate;
      break;
    }
    if (stream == nullptr) {
      check(cudaStreamCreateWithFlags(&stream, non_blocking));
      streams_.push_back(stream);
    }
    for (const auto& [other, event] : before) {
      if (other != stream) check(cudaStreamWaitEvent(stream, event, 0));
    }
    std::visit([&](const auto& one) { check(issue(one, stream)); }, content);
    return record(stream);
  }

  static Error issue(const Kernel& kernel, Stream stream) {
    const auto& params = kernel.params;
    return cudaLaunchKernel(params.function, params.grid, params.block, params.arguments, params.shared, stream);
  }
  static Error issue(const Memcpy3D& box, Stream stream) { return cudaMemcpy3DAsync(&box, stream); }
  static Error issue(const MemsetParams& params, Stream stream) {
    auto* const to = static_cast<std::byte*>(params.to);
    if (params.element_bytes == 1) {
      const auto value = static_cast<int>(params.value & 0xFF);
      return cudaMemset2DAsync(to, params.pitch, value, params.width, params.height, stream);
    }
    for (std::size_t row = 0; row < params.height; ++row) {  // the device knows values of one byte
      for (unsigned byte = 0; byte < params.element_bytes; ++byte) {
        const auto value = static_cast<int>(params.value >> 8 * byte & 0xFF);
        auto* const start = to + row * params.pitch + byte;
        const auto code = cudaMemset2DAsync(start, params.element_bytes, value, 1, params.width, stream);
        if (code != success) return code;
      }
    }
    return success;
  }
  static Error issue(const HostParams& host, Stream stream) {
    return cudaLaunchHostFunc(stream, host.function, host.argument);
  }
  static Error issue(const Child&, Stream) { return success; }  // its nodes are issued
  static Error issue(const Empty&, Stream) { return success; }

  End record(Stream stream) {
    Event event = nullptr;
    check(cudaEventCreate(&event));
    events_.push_back(event);
    check(cudaEventRecord(event, stream));
    latest_[stream] = event;
    return {stream, event};
  }

  void check(Error code) {
    if (code_ == success) code_ = code;
  }

  Stream origin_;
  std::vector<Stream> streams_;
  std::vector<Event> events_;
  std::map<Stream, Event> latest_;
  Error code_ = success;
};

// Captures a graph that was built as one of the device.
Error captured(const char* call, const Built& graph, void** result) {
  Stream origin = nullptr;
  if (const auto code = cudaStreamCreateWithFlags(&origin, non_blocking); code != success) return code;
  auto code = begin_capture(call, origin);
  if (code == success) {
    Issue issue(origin);
    code = issue.all(graph);
    const auto ended = end_capture(call, origin, result);
    if (code == success) {
      code = ended;
    } else if (ended == success) {
      destroy(call, *result);
    }
  }
  cudaStreamDestroy(origin);
  return remember(code);
}

Error instantiate(const char* call, void** executable, void* graph) {
  if (executable == nullptr) return remember(sim::invalid_value);
  const auto source = built(graph);
  if (!source) return copy_of_captured(call, executable, graph);
  void* device_graph = nullptr;
  auto code = captured(call, *source, &device_graph);
  if (code != success) return code;
  code = copy_of_captured(call, executable, device_graph);
  destroy(call, device_graph);
  if (code == success) {
    auto copy = clone(*source);
    const std::lock_guard lock(graphs().mutex);
    graphs().executables[*executable] = std::move(copy);
  }
  return code;
}

// Makes `executable` launch what `graph` of the device holds.
Error update(const char* call, void* executable, void* graph) {
  Question question(Ask::graph_update, call);
  question.put(id(executable)).put(id(graph));
  const auto code = run(std::move(question));
  if (code == success) inherit(graph, executable);
  return code;
}

Error update_by(const char* call, void* executable, const Built& graph) {
  void* device_graph = nullptr;
  auto code = captured(call, graph, &device_graph);
  if (code != success) return code;
  code = update(call, executable, device_graph);
  destroy(call, device_graph);
  return code;
}

Error add(Node** node, void* graph, Node* const* after, std::size_t count, Content content) {
  const auto owner = built(graph);
  if (node == nullptr || !owner || (count != 0 && after == nullptr)) return remember(sim::invalid_value);
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < count; ++i) {
    if (after[i] == nullptr || after[i]->graph != owner.get()) return remember(sim::invalid_value);
    numbers.push_back(after[i]->number);
  }
  const auto number = owner->nodes.size();
  owner->nodes.push_back(std::make_unique<Node>(Node{std::move(content), std::move(numbers), owner.get(), number}));
  *node = owner->nodes.back().get();
  return success;
}

Error add_kernel(const char* call, Node** node, void* graph, Node* const* after, std::size_t count,
                 const KernelParams* params) {
  if (params == nullptr) return remember(sim::invalid_value);
  if (params->packed != nullptr) return unsupported("cudaGraphAddKernelNode_with_extra");
  return add(node, graph, after, count, kernel_of(call, *params));
}

template <typename Part>
Error get(const Node* node, Part* part) {
  const auto* content = node == nullptr ? nullptr : std::get_if<Part>(&node->content);
  if (content == nullptr || part == nullptr) return remember(sim::invalid_value);
  *part = *content;
  return success;
}

// Replaces what a node does by something of the same kind.
Error set(Node* node, Content content) {
  if (node == nullptr || node->content.index() != content.index()) return remember(sim::invalid_value);
  node->content = std::move(content);
  return success;
}

// The same for the node of an executable graph that was made of `node`.
Error set_in(const char* call, void* executable, const Node* node, Content content) {
  std::shared_ptr<Built> graph;
  {
    const std::lock_guard lock(graphs().mutex);
    const auto entry = graphs().executables.find(executable);
    if (entry != graphs().executables.end()) graph = entry->second;
  }
  if (!graph || node == nullptr || node->number >= graph->nodes.size()) return remember(sim::invalid_value);
  if (const auto code = set(graph->nodes[node->number].get(), std::move(content)); code != success) return code;
  return update_by(call, executable, *graph);
}

Memcpy3D line(void* to, const void* from, std::size_t bytes, MemcpyKind kind) {
  Memcpy3D box{};
  box.source = {const_cast<void*>(from), bytes, bytes, 1};
  box.target = {to, bytes, bytes, 1};
  box.extent = {bytes, 1, 1};
  box.kind = kind;
  return box;
}

struct UpdateResult {
  int result;
  void *node, *from;
};

}  // namespace

std::uint64_t capture_of(const char* call, Stream stream) {
  if (!has_captured) return 0;
  auto question = about(Ask::capture_status, call, stream);
  const auto answer = ask(question);
  if (answer.code != success) return 0;
  auto reader = answer.reader();
  reader.take<std::uint32_t>();
  return reader.take<std::uint64_t>();
}

void keep_in_graph(std::uint64_t capture, Kept kept) {
  const std::lock_guard lock(graphs().mutex);
  graphs().kept_by_captures[capture].push_back(std::move(kept));
}

CUDART_API Error cudaStreamBeginCapture(Stream stream, int) { return begin_capture(__func__, stream); }
CUDART_API Error cudaStreamBeginCapture_ptsz(Stream stream, int) {
  return begin_capture("cudaStreamBeginCapture", per_thread(stream));
}
CUDART_API Error cudaStreamEndCapture(Stream stream, void** graph) { return end_capture(__func__, stream, graph); }
CUDART_API Error cudaStreamEndCapture_ptsz(Stream stream, void** graph) {
  return end_capture("cudaStreamEndCapture", per_thread(stream), graph);
}
CUDART_API Error cudaThreadExchangeStreamCaptureMode(int*) { return sim::success; }

CUDART_API Error cudaGraphInstantiate(void** executable, void* graph, unsigned long long) {
  return instantiate(__func__, executable, graph);
}
CUDART_API Error cudaGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  return instantiate(__func__, executable, graph);
}
CUDART_API Error cudaGraphUpload(void*, Stream) { return sim::success; }
CUDART_API Error cudaGraphUpload_ptsz(void*, Stream) { return sim::success; }
CUDART_API Error cudaGraphLaunch(void* graph, Stream stream) { return graph_launch(__func__, graph, stream); }
CUDART_API Error cudaGraphLaunch_ptsz(void* graph, Stream stream) {
  return graph_launch("cudaGraphLaunch", graph, per_thread(stream));
}
CUDART_API Error cudaGraphDestroy(void* graph) { return destroy(__func__, graph); }
CUDART_API Error cudaGraphExecDestroy(void* graph) { return destroy(__func__, graph); }
CUDART_API Error cudaGraphExecUpdate(void* executable, void* graph, UpdateResult* result) {
  const auto source = built(graph);
  const auto code = source ? update_by(__func__, executable, *source) : update(__func__, executable, graph);
  if (result != nullptr) *result = {code == sim::success ? 0 : 2, nullptr, nullptr};  // the topology changed
  return code;
}

CUDART_API Error cudaGraphCreate(void** graph, unsigned) {
  if (graph == nullptr) return remember(sim::invalid_value);
  auto fresh = std::make_shared<Built>();
  *graph = fresh.get();
  const std::lock_guard lock(graphs().mutex);
  graphs().built[*graph] = std::move(fresh);
  return sim::success;
}
CUDART_API Error cudaGraphClone(void** copy, void* graph) {
  if (copy == nullptr) return remember(sim::invalid_value);
  const auto source = built(graph);
  if (!source) return copy_of_captured(__func__, copy, graph);
  auto fresh = clone(*source);
  *copy = fresh.get();
  const std::lock_guard lock(graphs().mutex);
  graphs().built[*copy] = std::move(fresh);
  return sim::success;
}
CUDART_API Error cudaGraphNodeFindInClone(Node** node, const Node* original, void* copy) {
  const auto graph = built(copy);
  if (node == nullptr || original == nullptr || !graph || original->number >= graph->nodes.size()) {
    return remember(sim::invalid_value);
  }
  *node = graph->nodes[original->number].get();
  return sim::success;
}
CUDART_API Error cudaGraphGetNodes(void* graph, Node** nodes, std::size_t* count) {
  if (count == nullptr) return remember(sim::invalid_value);
  const auto source = built(graph);
  if (!source) {
    if (nodes != nullptr) return unsupported("cudaGraphGetNodes_of_a_captured_graph");
    Question question(Ask::graph_nodes, __func__);
    question.put(id(graph));
    return run<std::uint64_t>(std::move(question), count);
  }
  const auto all = source->nodes.size();
  if (nodes != nullptr) {
    for (std::size_t i = 0; i < *count; ++i) nodes[i] = i < all ? source->nodes[i].get() : nullptr;
  }
  *count = nodes == nullptr ? all : std::min(all, *count);
  return sim::success;
}
CUDART_API Error cudaGraphGetRootNodes(void* graph, Node** nodes, std::size_t* count) {
  const auto source = built(graph);
  if (count == nullptr) return remember(sim::invalid_value);
  if (!source) return unsupported("cudaGraphGetRootNodes_of_a_captured_graph");
  std::vector<Node*> roots;
  for (const auto& node : source->nodes) {
    if (node->after.empty()) roots.push_back(node.get());
  }
  if (nodes != nullptr) {
    for (std::size_t i = 0; i < *count; ++i) nodes[i] = i < roots.size() ? roots[i] : nullptr;
  }
  *count = nodes == nullptr ? roots.size() : std::min(roots.size(), *count);
  return sim::success;
}
CUDART_API Error cudaGraphNodeGetType(const Node* node, int* type) {
  if (node == nullptr || type == nullptr) return remember(sim::invalid_value);
  *type = static_cast<int>(node->content.index());
  return sim::success;
}

CUDART_API Error cudaGraphAddKernelNode(Node** node, void* graph, Node* const* after, std::size_t count,
                                        const KernelParams* params) {
  return add_kernel(__func__, node, graph, after, count, params);
}
CUDART_API Error cudaGraphAddMemcpyNode(Node** node, void* graph, Node* const* after, std::size_t count,
                                        const Memcpy3D* box) {
  if (box == nullptr) return remember(sim::invalid_value);
  return add(node, graph, after, count, *box);
}
CUDART_API Error cudaGraphAddMemcpyNode1D(Node** node, void* graph, Node* const* after, std::size_t count, void* to,
                                          const void* from, std::size_t bytes, MemcpyKind kind) {
  return add(node, graph, after, count, line(to, from, bytes, kind));
}
CUDART_API Error cudaGraphAddMemsetNode(Node** node, void* graph, Node* const* after, std::size_t count,
                                        const MemsetParams* params) {
  if (params == nullptr) return remember(sim::invalid_value);
  return add(node, graph, after, count, *params);
}
CUDART_API Error cudaGraphAddHostNode(Node** node, void* graph, Node* const* after, std::size_t count,
                                      const HostParams* params) {
  if (params == nullptr) return remember(sim::invalid_value);
  return add(node, graph, after, count, *params);
}
CUDART_API Error cudaGraphAddEmptyNode(Node** node, void* graph, Node* const* after, std::size_t count) {
  return add(node, graph, after, count, Empty{});
}
CUDART_API Error cudaGraphAddChildGraphNode(Node** node, void* graph, Node* const* after, std::size_t count,
                                            void* child) {
  const auto source = built(child);
  if (!source) return unsupported("cudaGraphAddChildGraphNode_of_a_captured_graph");
  return add(node, graph, after, count, Child(clone(*source)));
}

CUDART_API Error cudaGraphKernelNodeGetParams(const Node* node, KernelParams* params) {
  const auto* kernel = node == nullptr ? nullptr : std::get_if<Kernel>(&node->content);
  if (kernel == nullptr || params == nullptr) return remember(sim::invalid_value);
  *params = kernel->params;
  return sim::success;
}
CUDART_API Error cudaGraphMemcpyNodeGetParams(const Node* node, Memcpy3D* box) { return get(node, box); }
CUDART_API Error cudaGraphMemsetNodeGetParams(const Node* node, MemsetParams* params) { return get(node, params); }
CUDART_API Error cudaGraphHostNodeGetParams(const Node* node, HostParams* params) { return get(node, params); }

CUDART_API Error cudaGraphKernelNodeSetParams(Node* node, const KernelParams* params) {
  if (params == nullptr) return remember(sim::invalid_value);
  return set(node, kernel_of(__func__, *params));
}
CUDART_API Error cudaGraphMemcpyNodeSetParams(Node* node, const Memcpy3D* box) {
  return box == nullptr ? remember(sim::invalid_value) : set(node, *box);
}
CUDART_API Error cudaGraphMemcpyNodeSetParams1D(Node* node, void* to, const void* from, std::size_t bytes,
                                                MemcpyKind kind) {
  return set(node, line(to, from, bytes, kind));
}
CUDART_API Error cudaGraphMemsetNodeSetParams(Node* node, const MemsetParams* params) {
  return params == nullptr ? remember(sim::invalid_value) : set(node, *params);
}
CUDART_API Error cudaGraphHostNodeSetParams(Node* node, const HostParams* params) {
  return params == nullptr ? remember(sim::invalid_value) : set(node, *params);
}

CUDART_API Error cudaGraphExecKernelNodeSetParams(void* executable, const Node* node, const KernelParams* params) {
  if (params == nullptr) return remember(sim::invalid_value);
  return set_in(__func__, executable, node, kernel_of(__func__, *params));
}
CUDART_API Error cudaGraphExecMemcpyNodeSetParams(void* executable, const Node* node, const Memcpy3D* box) {
  return box == nullptr ? remember(sim::invalid_value) : set_in(__func__, executable, node, *box);
}
CUDART_API Error cudaGraphExecMemcpyNodeSetParams1D(void* executable, const Node* node, void* to, const void* from,
                                                    std::size_t bytes, MemcpyKind kind) {
  return set_in(__func__, executable, node, line(to, from, bytes, kind));
}
CUDART_API Error cudaGraphExecMemsetNodeSetParams(void* executable, const Node* node, const MemsetParams* params) {
  return params == nullptr ? remember(sim::invalid_value) : set_in(__func__, executable, node, *params);
}
CUDART_API Error cudaGraphExecHostNodeSetParams(void* executable, const Node* node, const HostParams* params) {
  return params == nullptr ? remember(sim::invalid_value) : set_in(__func__, executable, node, *params);
}
CUDART_API Error cudaGraphExecChildGraphNodeSetParams(void* executable, const Node* node, void* child) {
  const auto source = built(child);
  return source ? set_in(__func__, executable, node, Child(clone(*source))) : remember(sim::invalid_value);
}

}  // namespace cudart
