// A whole kernel: all functions that it may reach, their frames, labels and shared variables.
#include <algorithm>

#include "engine/decode/decoder.h"

namespace sim {

const Type& Decoder::type_of(const Words& words) const {
  for (auto word = words.rbegin(); word != words.rend(); ++word) {
    if (const Type* type = find_type(*word)) return *type;
  }
  refuse("the type of");
}

void Decoder::one_statement() {
  static const std::unordered_map<std::string_view, Method> methods{{"mov", &Decoder::move},
                                                                    {"cvt", &Decoder::convert},
                                                                    {"setp", &Decoder::compare},
                                                                    {"set", &Decoder::compare},
                                                                    {"slct", &Decoder::select},
                                                                    {"ld", &Decoder::load},
                                                                    {"ldu", &Decoder::load},
                                                                    {"st", &Decoder::store},
                                                                    {"atom", &Decoder::atomic},
                                                                    {"red", &Decoder::atomic},
                                                                    {"cvta", &Decoder::to_address},
                                                                    {"isspacep", &Decoder::is_space},
                                                                    {"bra", &Decoder::branch},
                                                                    {"brx", &Decoder::branch},
                                                                    {"ret", &Decoder::leave},
                                                                    {"exit", &Decoder::leave},
                                                                    {"trap", &Decoder::trap},
                                                                    {"brkpt", &Decoder::trap},
                                                                    {"nanosleep", &Decoder::sleep},
                                                                    {"membar", &Decoder::fence_},
                                                                    {"fence", &Decoder::fence_},
                                                                    {"call", &Decoder::call},
                                                                    {"bar", &Decoder::barrier},
                                                                    {"barrier", &Decoder::barrier},
                                                                    {"shfl", &Decoder::shuffle},
                                                                    {"vote", &Decoder::vote},
                                                                    {"match", &Decoder::match},
                                                                    {"redux", &Decoder::reduce},
                                                                    {"activemask", &Decoder::active_mask},
                                                                    {"prefetch", &Decoder::nothing},
                                                                    {"prefetchu", &Decoder::nothing},
                                                                    {"mma", &Decoder::matrix},
                                                                    {"wmma", &Decoder::matrix},
                                                                    {"ldmatrix", &Decoder::matrix},
                                                                    {"cp", &Decoder::copy_async},
                                                                    {"mbarrier", &Decoder::phase_barrier},
                                                                    {"pmevent", &Decoder::nothing},
                                                                    {"discard", &Decoder::nothing},
                                                                    {"applypriority", &Decoder::nothing},
                                                                    {"createpolicy", &Decoder::cache_policy},
                                                                    {"griddepcontrol", &Decoder::depend}};
  if (statement->unknown) refuse(statement->opcode.starts_with('.') ? "the directive" : "the instruction");
  Words words = split(statement->opcode);
  drop(words, "uni");
  if (words[0] == "vote" && statement->opcode.find(".uni") != statement->opcode.npos) words = split(statement->opcode);
  if (const auto found = methods.find(words[0]); found != methods.end()) return (this->*found->second)(words);
  plain(std::move(words));
}

// In place of what was made of the statement: an instruction that ends the launch for the lanes that it is for.
void Decoder::unknown_statement(const Refusal& why, std::size_t start) {
  program.code.resize(start);
  program.statements.resize(start);
  std::erase_if(fixups, [&](const Fixup& f) { return f.instruction >= start; });
  std::erase_if(table_fixups, [&](const auto& f) { return f.first >= start; });
  extensions.clear();
  temporaries_used.clear();
  const bool guarded = statement->guard >= 0 && width(statement->guard) == 0;
  auto& i = emit(nullptr, {}, guarded);
  i.flow = Flow::unknown;
  i.target = static_cast<std::uint32_t>(program.unknown.size());
  program.unknown.push_back(why);
}

void Decoder::lay_out_areas(FunctionCode& code) {
  const auto area = [&](const ptx::Variable& v) {
    const auto size = align(static_cast<std::uint32_t>(v.size), 16);
    frame_bytes = align(frame_bytes, 64) + size * lane_count;
    return Area{frame_bytes - size * lane_count, size};
  };
  if (parameters_are_too_large()) refuse("so large a parameter");
  areas.clear();
  formal.clear();
  if (is_kernel) {
    for (std::size_t n = 0; n < function->parameters.size(); ++n)
      formal[function->parameters[n].name] = kernel_parameters[n];
  } else {
    for (const auto& v : function->parameters) code.parameters.push_back(formal[v.name] = area(v));
    for (const auto& v : function->results) code.results.push_back(formal[v.name] = area(v));
  }
  for (const auto& v : function->variables) {
    if (v.space == Space::parameter) areas[{v.scope, v.name}] = area(v);
  }
}

bool Decoder::parameters_are_too_large() const {
  std::size_t total = 0;
  for (const auto* list : {&function->parameters, &function->results, &function->variables}) {
    for (const auto& v : *list) total += v.space == Space::parameter ? v.size : 0;
  }
  return total > 65536;
}

void Decoder::find_lines() {
  statement_line.clear();
  std::uint32_t known = 0;
  for (const auto& s : function->statements) {
    if (module.places[s.place].line) known = s.place;
    statement_line.push_back(known);
  }
  known = 0;
  for (auto n = statement_line.size(); n-- > 0;) {
    if (statement_line[n])
      known = statement_line[n];
    else
      statement_line[n] = known;
  }
}

void Decoder::one_function(std::uint32_t number) {
  function = &module.functions[number];
  statement = nullptr;
  is_kernel = function->entry;
  find_lines();
  frame_bytes = frame_header;
  FunctionCode code = program.functions[program.function_by_number[number]];
  registers.clear();
  for (const auto& r : function->registers) registers.push_back(in_frame(r.bytes));
  count_definitions();
  lay_out_areas(code);
  locals.clear();
  std::uint32_t local = 0;
  for (const auto& v : function->variables) {
    if (v.space != Space::local) continue;
    if (v.size > (1u << 24)) refuse("so much local memory");
    local = align(local, static_cast<std::uint32_t>(v.alignment));
    locals[{v.scope, v.name}] = local;
    local += static_cast<std::uint32_t>(v.size);
  }
  code.local_bytes = align(local, 16);
  code.entry = static_cast<std::uint32_t>(program.code.size());
  temporaries.clear();
  shuffled.clear();
  find_indices();
  fixups.clear();
  table_fixups.clear();
  statement_pc.clear();
  for (const auto& s : function->statements) {
    statement = &s;
    statement_pc.push_back(static_cast<std::uint32_t>(program.code.size()));
    const auto start = program.code.size();
    try {
      if (checks_overflow) before_statement();
      one_statement();
      finish_statement();
      if (checks_overflow) after_statement();
    } catch (const Refusal& why) {
      unknown_statement(why, start);
    }
  }
  statement_pc.push_back(static_cast<std::uint32_t>(program.code.size()));
  auto& last = program.code.emplace_back();
  last.flow = is_kernel ? Flow::exit : Flow::ret;
  last.place = statement_line.empty() ? 0 : statement_line.back();
  last.site = static_cast<std::uint32_t>(program.code.size() - 1);
  last.hidden = true;
  program.statements.push_back(static_cast<std::uint32_t>(function->statements.size()));
  for (const auto& f : fixups) program.code[f.instruction].target = statement_pc[f.label];
  for (auto& [instruction, targets] : table_fixups) {
    for (auto& target : targets) target = statement_pc[target];
    program.code[instruction].target = static_cast<std::uint32_t>(program.branch_tables.size());
    program.branch_tables.push_back(std::move(targets));
  }
  list_arithmetic();
  mark_expectations(code.entry);
  mark_passings();
  code.frame_bytes = align(frame_bytes, 64);
  code.registers = registers;
  code.shuffled.assign(shuffled.begin(), shuffled.end());
  program.functions[program.function_by_number[number]] = std::move(code);
}

// The plain load of `old = *p; do … while (atomicCAS(p, old, …) != old)` may read what others are writing: the
// compare and swap notices. So may that of `if (*p < x) atomicMax(p, x)`: what it finds too small or too large is seen
// again by the atomic. Finds loads from an address that such an atomic uses, too.
void Decoder::mark_expectations(std::uint32_t from) {
  std::map<Slot, Slot> copies;  // of addresses: cvta and mov
  const auto original = [&](Slot s) {
    for (auto found = copies.find(s); found != copies.end(); found = copies.find(s)) s = found->second;
    return s;
  };
  const Handler copy = handler("mov.b64");
  std::set<std::pair<Slot, std::int64_t>> swapped, most;
  for (int pass = 0; pass < 2; ++pass) {
    for (auto n = from; n < program.code.size(); ++n) {
      auto& i = program.code[n];
      if (pass == 0 && i.run == copy && i.o[0] != i.o[1] && original(i.o[1]) != i.o[0])
        copies.try_emplace(i.o[0], i.o[1]);
      if (pass == 0 && compares_and_swaps.contains(n)) {
        swapped.insert({original(i.o[compares_and_swaps.at(n)]), i.offset});
      }
      if (pass == 0 && extremes.contains(n)) most.insert({original(i.o[extremes.at(n)]), i.offset});
      if (pass == 0 || !plain_loads.contains(n)) continue;
      const std::pair place{original(i.o[plain_loads.at(n)]), i.offset};
      if (!swapped.contains(place) && !(most.contains(place) && is_only_compared(n))) continue;
      i.is_volatile = program.looks_first = true;
    }
  }
  mark_revisions(from, original);
  compares_and_swaps.clear();
  extremes.clear();
  plain_loads.clear();
  volatiles.clear();
}

// Relaxed atomics on different places, of which the second one needs nothing of the first, have no order for other
// threads ("Memory Consistency Model" of the PTX ISA): marks pairs with nothing but arithmetic between them.
void Decoder::mark_passings() {
  const auto sites = std::exchange(relaxed_atomics, {});
  if (!program.lists.empty()) return;  // some operands are not where they can be seen
  for (const auto site : sites) {
    auto& first = program.code[site];
    const auto mentions = [](const Instruction& i, Slot slot) { return std::ranges::find(i.o, slot) != std::end(i.o); };
    const auto depends = [&](const Instruction& later, bool has_result) {
      return (!first.reduces && mentions(later, first.o[0])) || (has_result && mentions(first, later.o[0]));
    };
    auto n = site + 1;
    while (n < program.code.size() && program.code[n].flow == Flow::plain && !depends(program.code[n], true)) ++n;
    if (!sites.contains(n)) continue;
    auto& second = program.code[n];
    first.may_be_passed = second.passes = !depends(second, !second.reduces);
  }
}

// Whether nothing but comparisons reads what an instruction loads.
bool Decoder::is_only_compared(std::uint32_t load) const {
  const Operand& loaded = function->statements[program.statements[load]].operands[0];
  const auto reads = [&](const Statement& s, const Operand& o) {
    if (&o == s.operands.data() && o.kind != Operand::Kind::address) return false;  // a result
    return o.reg == loaded.reg || o.second == loaded.reg ||
           std::ranges::any_of(o.parts, [&](const Operand& part) { return part.reg == loaded.reg; });
  };
  return loaded.kind == Operand::Kind::reg && std::ranges::all_of(function->statements, [&](const Statement& s) {
           return s.opcode.starts_with("setp.") ||
                  std::ranges::none_of(s.operands, [&](const Operand& o) { return reads(s, o); });
         });
}

// Volatile stores of what is computed from a volatile load of the same place, like `*counter = *counter + 1`.
void Decoder::mark_revisions(std::uint32_t from, const std::function<Slot(Slot)>& original) {
  const auto place = [&](const Volatile& v) {
    const auto& i = program.code[v.instruction];
    return std::pair(original(i.o[v.address]), i.offset);
  };
  std::map<std::pair<Slot, std::int64_t>, std::vector<const Volatile*>> places;
  for (const auto& v : volatiles) {
    if (v.address == 1) places[place(v)].push_back(&v);  // no vectors
  }
  for (const auto& [_, accesses] : places) {
    std::set<Slot> computed;
    for (const auto* v : accesses) {
      if (v->load) computed.insert(program.code[v->instruction].o[0]);
    }
    if (computed.empty() || std::ranges::all_of(accesses, &Volatile::load)) continue;
    add_computed(program, from, program.code.size(), computed);
    for (const auto* v : accesses) {
      auto& i = program.code[v->instruction];
      i.revises = !v->load && computed.contains(i.o[0]);
    }
  }
}

// Every function that may be reached, to know its shared variables before the code is made.
void Decoder::lay_out_shared(std::uint32_t kernel) {
  std::set<std::uint32_t> seen{kernel};
  std::vector<std::uint32_t> todo{kernel};
  std::set<std::string_view> names;
  const auto mention = [&](const auto& self, const Operand& o) -> void {
    if (!o.name.empty()) names.insert(o.name);
    for (const auto& part : o.parts) self(self, part);
  };
  const auto reach = [&](std::uint32_t f) {
    if (seen.insert(f).second) todo.push_back(f);
  };
  std::vector<const ptx::Variable*> variables;
  while (!todo.empty()) {
    const auto& f = module.functions[todo.back()];
    todo.pop_back();
    for (const auto& v : f.variables) {
      if (v.space == Space::shared) variables.push_back(&v);
    }
    for (const auto& s : f.statements) {
      for (const auto& o : s.operands) mention(mention, o);
      if (!s.opcode.starts_with("call")) continue;
      for (const auto& o : s.operands) {
        if (const auto found = module.by_name.find(o.name); found != module.by_name.end()) reach(found->second);
        if (o.kind != Operand::Kind::reg) continue;
        for (std::uint32_t n = 0; n < module.functions.size(); ++n) {
          if (!module.functions[n].entry) reach(n);
        }
      }
    }
  }
  std::vector<const ptx::Variable*> open;
  for (const auto& v : module.variables) {
    if (v.space == Space::shared && names.contains(v.name)) (v.size == 0 ? open : variables).push_back(&v);
  }
  std::uint32_t at = 0;
  for (const auto* v : variables) {
    at = align(at, static_cast<std::uint32_t>(v->alignment));
    shared[v->name] = at;
    if (v->size > (1u << 24) || at + v->size > (1u << 24))
      throw Refusal("the kernel asks for more shared memory than any device has");
    at += static_cast<std::uint32_t>(v->size);
  }
  for (const auto* v : open) at = align(at, static_cast<std::uint32_t>(v->alignment));
  for (const auto* v : open) shared[v->name] = at;
  program.static_shared = at;
  if (names.contains("%reserved_smem_offset_1")) program.reserved_shared = 1024;
}

void Decoder::run(std::uint32_t kernel) {
  lay_out_shared(kernel);
  program.launch_bank_bytes = static_cast<std::uint32_t>(LaunchSpecial::count) * special_bytes;
  std::uint32_t total = 0;
  kernel_parameters = parameter_layout(module.functions[kernel], total);
  program.parameters = kernel_parameters;
  want(kernel);
  while (!pending.empty()) {
    const auto next = pending.back();
    pending.pop_back();
    one_function(next);
  }
  for (const auto& i : program.code) program.places.push_back(module.places[i.place]);
  program.of_triton = std::ranges::any_of(program.places, [](const auto& p) { return p.file.ends_with(".py"); });
  for (const auto& f : program.functions) program.local_bytes += f.local_bytes + local_gap;
  if (program.functions.size() > 1) program.local_bytes += call_stack;
}

std::vector<Area> parameter_layout(const ptx::Function& function, std::uint32_t& total) {
  std::vector<Area> result;
  total = 0;
  for (const auto& p : function.parameters) {
    total = align(total, static_cast<std::uint32_t>(p.alignment));
    result.push_back({total, static_cast<std::uint32_t>(p.size)});
    total += static_cast<std::uint32_t>(p.size);
  }
  return result;
}

std::unique_ptr<KernelCode> decode(const ptx::Module& module, std::uint32_t kernel, const Layout& layout,
                                   bool checks_overflow) {
  auto program = std::make_unique<KernelCode>();
  program->kernel = module.functions[kernel].name;
  Decoder decoder(module, layout, *program);
  decoder.checks_overflow = checks_overflow;
  decoder.run(kernel);
  return program;
}

}  // namespace sim
