// AT_DISPATCH: the same code for each type of elements that a tensor may have.
#pragma once

#define AT_DISPATCH_CASE(enumerated, ...)                                              \
  case enumerated: {                                                                   \
    using scalar_t [[maybe_unused]] = typename ::at::detail::TypeOf<enumerated>::type; \
    return __VA_ARGS__();                                                              \
  }
#define AT_DISPATCH_SWITCH(TYPE, NAME, ...)                                                  \
  [&] {                                                                                      \
    const ::c10::ScalarType grader_type = (TYPE);                                            \
    switch (grader_type) {                                                                   \
      __VA_ARGS__                                                                            \
      default: TORCH_CHECK(false, "\"", NAME, "\" not implemented for '", grader_type, "'"); \
    }                                                                                        \
  }()

namespace at::detail {
template <ScalarType type>
struct TypeOf;
#define GRADER_ROW(number, cpp_type, name) \
  template <>                              \
  struct TypeOf<k##name> {                 \
    using type = cpp_type;                 \
  };
GRADER_SCALAR_TYPES(GRADER_ROW)
#undef GRADER_ROW
}  // namespace at::detail

#define AT_DISPATCH_CASE_FLOATING_TYPES(...)               \
  AT_DISPATCH_CASE(::c10::ScalarType::Double, __VA_ARGS__) \
  AT_DISPATCH_CASE(::c10::ScalarType::Float, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...)             \
  AT_DISPATCH_CASE(::c10::ScalarType::Byte, __VA_ARGS__) \
  AT_DISPATCH_CASE(::c10::ScalarType::Char, __VA_ARGS__) \
  AT_DISPATCH_CASE(::c10::ScalarType::Int, __VA_ARGS__)  \
  AT_DISPATCH_CASE(::c10::ScalarType::Long, __VA_ARGS__) \
  AT_DISPATCH_CASE(::c10::ScalarType::Short, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...)        \
  AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)

#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...) \
  AT_DISPATCH_FLOATING_TYPES_AND(::c10::ScalarType::Half, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND(TYPE1, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(TYPE1, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND2(TYPE1, TYPE2, TYPE, NAME, ...)                                 \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                                       \
                     AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(TYPE1, __VA_ARGS__) \
                         AT_DISPATCH_CASE(TYPE2, __VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND(TYPE1, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(TYPE1, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND2(TYPE1, TYPE2, TYPE, NAME, ...)                                 \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                                  \
                     AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(TYPE1, __VA_ARGS__) \
                         AT_DISPATCH_CASE(TYPE2, __VA_ARGS__))
