// PYBIND11_MODULE: the functions of a module of C++ that Python may call.
#pragma once

#include "grader/tensor.h"

namespace pybind11 {

// --- arguments and results

namespace detail {

struct WrongTypeError {};  // of an argument

// A result, and what it points to while Python reads it.
struct Result {
  std::vector<grader::Value> values;
  bool one = true;  // and no tuple
  std::vector<at::Tensor> tensors;
  std::vector<std::string> texts;
};

template <class Type, class = void>
struct Caster;

template <>
struct Caster<at::Tensor> {
  static at::Tensor from(const grader::Value& value) {
    if (value.kind == grader::nothing) return {};
    if (value.kind != grader::tensor) throw WrongTypeError();
    return at::Tensor(value.integer);
  }
  static void to(Result& result, const at::Tensor& tensor) {
    result.tensors.push_back(tensor);
    at::detail::pass(result.values, tensor);
  }
};

template <class Number>
struct Caster<Number, std::enable_if_t<std::is_arithmetic_v<Number>>> {
  static Number from(const grader::Value& value) {
    constexpr bool real = std::is_floating_point_v<Number>;
    if (value.kind == grader::real && real) return static_cast<Number>(value.real);
    if (value.kind == grader::boolean || (value.kind == grader::integer && !std::is_same_v<Number, bool>)) {
      return static_cast<Number>(value.integer);
    }
    throw WrongTypeError();
  }
  static void to(Result& result, Number number) { at::detail::pass(result.values, at::Scalar(number)); }
};

template <>
struct Caster<at::Scalar> {
  static at::Scalar from(const grader::Value& value) {
    if (value.kind == grader::real) return at::Scalar(value.real);
    return at::Scalar(Caster<std::int64_t>::from(value));
  }
};

template <>
struct Caster<at::ScalarType> {
  static at::ScalarType from(const grader::Value& value) {
    if (value.kind != grader::dtype) throw WrongTypeError();
    return static_cast<at::ScalarType>(value.integer);
  }
};

template <>
struct Caster<std::string> {
  static std::string from(const grader::Value& value) {
    if (value.kind != grader::text) throw WrongTypeError();
    return static_cast<const char*>(value.pointer);
  }
  static void to(Result& result, const std::string& text) {
    result.texts.push_back(text);
    result.values.push_back({grader::text, 0, 0, result.texts.back().c_str()});
  }
};

template <class Type>
struct Caster<std::optional<Type>> {
  static std::optional<Type> from(const grader::Value& value) {
    if (value.kind == grader::nothing) return {};
    return Caster<Type>::from(value);
  }
  static void to(Result& result, const std::optional<Type>& value) {
    if (value) {
      Caster<Type>::to(result, *value);
    } else {
      result.values.push_back({});
    }
  }
};

template <class Type>
struct Caster<std::vector<Type>> {
  static std::vector<Type> from(const grader::Value& value) {
    const bool of_tensors = std::is_same_v<Type, at::Tensor>;
    if (value.kind != (of_tensors ? grader::tensors : grader::integers)) throw WrongTypeError();
    const auto* const elements = static_cast<const std::int64_t*>(value.pointer);
    std::vector<Type> all;
    for (std::int64_t i = 0; i < value.integer; ++i) all.push_back(Type(elements[i]));
    return all;
  }
  static void to(Result& result, const std::vector<Type>& all) {
    result.one = false;
    for (const auto& element : all) Caster<Type>::to(result, element);
  }
};

template <class... Types>
struct Caster<std::tuple<Types...>> {
  static void to(Result& result, const std::tuple<Types...>& all) {
    result.one = false;
    std::apply([&](const auto&... each) { (Caster<std::decay_t<decltype(each)>>::to(result, each), ...); }, all);
  }
};
template <class First, class Second>
struct Caster<std::pair<First, Second>> {
  static void to(Result& result, const std::pair<First, Second>& both) {
    Caster<std::tuple<First, Second>>::to(result, both);
  }
};

// How an argument is held while the function runs: lists that only look at elements need an owner.
template <class Type>
struct Held {
  using type = std::decay_t<Type>;
};
template <class Type>
struct Held<at::ArrayRef<Type>> {
  using type = std::vector<Type>;
};
template <class Type>
using held = typename Held<std::decay_t<Type>>::type;

}  // namespace detail

// --- the names and defaults of arguments

struct arg {
  explicit constexpr arg(const char* name) : name(name) {}
  template <class Type>
  struct Default;
  template <class Type>
  auto operator=(const Type& value) const;
  arg& noconvert(bool = true) { return *this; }
  arg& none(bool = true) { return *this; }
  const char* name;
};
struct none {};
struct arg_v : arg {
  template <class Type>
  arg_v(const char* name, const Type& value) : arg(name) {
    if constexpr (std::is_same_v<Type, std::nullopt_t> || std::is_same_v<Type, pybind11::none>) {
      result.values.push_back({});
    } else if constexpr (std::is_convertible_v<Type, std::string> && !std::is_arithmetic_v<Type>) {
      detail::Caster<std::string>::to(result, value);
    } else {
      detail::Caster<Type>::to(result, value);
    }
  }
  detail::Result result;
};
template <class Type>
auto arg::operator=(const Type& value) const {
  return arg_v(name, value);
}
namespace literals {
constexpr arg operator""_a(const char* name, std::size_t) { return arg(name); }
}  // namespace literals
struct gil_scoped_release {
  gil_scoped_release() {}
};
template <class... Types>
struct call_guard {};

// --- functions

struct Function {
  std::string name;
  std::string arguments;  // their names, a comma between them; "" where some have none
  std::string types;      // for the error of an argument that has another one
  std::size_t count = 0;
  std::vector<grader::Value> defaults;  // of kind `missing` where there is none
  std::vector<std::shared_ptr<detail::Result>> owners;  // of these
  std::function<void(const grader::Value*, detail::Result&)> call;
};

namespace detail {

template <class Returned, class... Arguments, class Called, std::size_t... index>
void invoke(Called& called, const grader::Value* values, Result& result, std::index_sequence<index...>) {
  std::tuple<held<Arguments>...> all{Caster<held<Arguments>>::from(values[index])...};
  if constexpr (std::is_void_v<Returned>) {
    called(static_cast<Arguments&&>(std::get<index>(all))...);
    result.values.push_back({});
  } else {
    Caster<std::decay_t<Returned>>::to(result, called(static_cast<Arguments&&>(std::get<index>(all))...));
  }
}

template <class Type>
const char* name_of_type() {
  if constexpr (std::is_same_v<Type, at::Tensor>) return "torch.Tensor";
  if constexpr (std::is_same_v<Type, bool>) return "bool";
  if constexpr (std::is_floating_point_v<Type>) return "float";
  if constexpr (std::is_arithmetic_v<Type>) return "int";
  if constexpr (std::is_same_v<Type, std::string>) return "str";
  return "...";
}

template <class Signature>
struct Maker;
template <class Returned, class... Arguments>
struct Maker<Returned(Arguments...)> {
  template <class Called>
  static Function made(Called called) {
    Function function;
    function.count = sizeof...(Arguments);
    ((function.types += (function.types.empty() ? "" : ", "), function.types += name_of_type<held<Arguments>>()), ...);
    function.call = [called](const grader::Value* values, Result& result) mutable {
      using Convertible = std::tuple<Arguments...>;
      static_assert(std::tuple_size_v<Convertible> == sizeof...(Arguments));
      invoke<Returned, std::conditional_t<std::is_reference_v<Arguments>, Arguments, Arguments>...>(
          called, values, result, std::index_sequence_for<Arguments...>());
    };
    return function;
  }
};

template <class Called>
struct SignatureOf : SignatureOf<decltype(&Called::operator())> {};
template <class Returned, class... Arguments>
struct SignatureOf<Returned (*)(Arguments...)> {
  using type = Returned(Arguments...);
};
template <class Class, class Returned, class... Arguments>
struct SignatureOf<Returned (Class::*)(Arguments...) const> {
  using type = Returned(Arguments...);
};
template <class Class, class Returned, class... Arguments>
struct SignatureOf<Returned (Class::*)(Arguments...)> {
  using type = Returned(Arguments...);
};

inline void add(Function& function, const arg& argument) {
  function.arguments += (function.arguments.empty() ? "" : ",") + std::string(argument.name);
  function.defaults.push_back({grader::missing, 0, 0, nullptr});
}
inline void add(Function& function, const arg_v& argument) {
  add(function, static_cast<const arg&>(argument));
  const auto owner = std::make_shared<Result>(argument.result);
  function.owners.push_back(owner);
  function.defaults.back() = owner->values.front();
  if (!owner->texts.empty()) function.defaults.back().pointer = owner->texts.front().c_str();
}
inline void add(Function&, const char*) {}
template <class... Types>
void add(Function&, const call_guard<Types...>&) {}

}  // namespace detail

class module_ {
 public:
  template <class Called, class... Extra>
  module_& def(const char* name, Called called, const Extra&... extra) {
    using Signature = typename detail::SignatureOf<std::decay_t<Called>>::type;
    auto function = detail::Maker<Signature>::made(called);
    function.name = name;
    (detail::add(function, extra), ...);
    functions.push_back(std::move(function));
    return *this;
  }
  std::string& doc() { return doc_; }
  std::vector<Function> functions;

 private:
  std::string doc_;
};
using module = module_;

}  // namespace pybind11

namespace py = pybind11;
namespace torch {
template <class Called>
Called wrap_pybind_function(Called called) {
  return called;
}
}  // namespace torch

#define PYBIND11_MODULE(name, variable, ...) extern "C" void grader_define(::pybind11::module_& variable)
