// What a device linker does: functions and variables of several modules find each other by name.
#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "engine/ptx/module.h"

namespace sim::ptx {
namespace {

using Names = std::unordered_map<std::string_view, std::string_view>;

void rename(std::string_view& name, const Names& names) {
  if (const auto found = names.find(name); found != names.end()) name = found->second;
}

void rename(Operand& operand, const Names& names) {
  rename(operand.name, names);
  for (auto& part : operand.parts) rename(part, names);
}

// Other names for what only this module sees, where something else is called the same.
Names other_names(const Module& part, std::unordered_set<std::string_view>& taken, std::deque<std::string>& names) {
  Names result;
  const auto add = [&](std::string_view name, bool local) {
    if (!local || taken.insert(name).second) return;
    result[name] = names.emplace_back(std::string(name) + "." + std::to_string(names.size()));
  };
  for (const auto& v : part.variables) add(v.name, v.local);
  for (const auto& f : part.functions) add(f.name, f.local);
  return result;
}

void add_variables(Module& module, Module& part, const Names& names) {
  for (auto& v : part.variables) {
    rename(v.name, names);
    for (auto& value : v.values) rename(value.symbol, names);
    // What is .weak stands in each module that uses it.
    const bool known = std::ranges::any_of(
        module.variables, [&](const Variable& other) { return other.name == v.name && other.external == v.external; });
    if (!known) module.variables.push_back(std::move(v));
  }
}

void add_functions(Module& module, Module& part, const Names& names, std::uint32_t places_ahead) {
  for (auto& f : part.functions) {
    rename(f.name, names);
    for (auto& statement : f.statements) {
      statement.place += places_ahead;
      for (auto& operand : statement.operands) rename(operand, names);
    }
    const auto number = static_cast<std::uint32_t>(module.functions.size());
    if (const auto [known, fresh] = module.by_name.try_emplace(f.name, number); fresh) {
      module.functions.push_back(std::move(f));
    } else if (!module.functions[known->second].defined) {
      module.functions[known->second] = std::move(f);
    }
  }
}

}  // namespace

void link(Module& module, std::vector<std::unique_ptr<Module>> parts) {
  module.parts = std::move(parts);
  std::unordered_set<std::string_view> taken;
  for (const auto& part : module.parts) {
    for (const auto& v : part->variables) {
      if (!v.local) taken.insert(v.name);
    }
    for (const auto& f : part->functions) {
      if (!f.local) taken.insert(f.name);
    }
  }
  for (const auto& part : module.parts) {
    const auto names = other_names(*part, taken, module.names);
    const auto places_ahead = static_cast<std::uint32_t>(module.places.size());
    add_variables(module, *part, names);
    add_functions(module, *part, names, places_ahead);
    for (auto& place : part->places) {
      if (place.caller) place.caller += places_ahead;
    }
    std::ranges::move(part->places, std::back_inserter(module.places));
  }
}

}  // namespace sim::ptx
