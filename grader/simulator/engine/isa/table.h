// Mnemonic -> handler. One table per build of the handlers (plain, AVX2, AVX-512).
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/machine.h"

namespace sim {

class Table {
 public:
  void add(std::string name, Handler handler) { handlers_.insert_or_assign(std::move(name), handler); }
  Handler find(std::string_view name) const {
    const auto found = handlers_.find(std::string(name));
    return found == handlers_.end() ? nullptr : found->second;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& [name, handler] : handlers_) result.push_back(name);
    return result;
  }

 private:
  std::unordered_map<std::string, Handler> handlers_;
};

// The table for this processor.
const Table& instructions();

}  // namespace sim
