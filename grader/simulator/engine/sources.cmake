# The engine's sources. Files under isa/ that say "sim: multiversion" are compiled once per instruction set, the rest once.
# Gives SIM_ENGINE_OBJECTS (generator expressions to link) and SIM_COMPILE_OPTIONS.
file(GLOB_RECURSE SIM_ENGINE_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cpp)
set(SIM_ISA_SOURCES)
foreach(family integer bits real approximate half compare convert move memory collective matrix)
  list(APPEND SIM_ISA_SOURCES ${CMAKE_CURRENT_LIST_DIR}/isa/${family}.cpp)
endforeach()
# These go lane after lane: a wider instruction set gives them nothing.
set(SIM_SCALAR_SOURCES)
foreach(family carry atomic mbarrier)
  list(APPEND SIM_SCALAR_SOURCES ${CMAKE_CURRENT_LIST_DIR}/isa/${family}.cpp)
endforeach()
list(REMOVE_ITEM SIM_ENGINE_SOURCES ${SIM_ISA_SOURCES} ${SIM_SCALAR_SOURCES})

# Exact arithmetic: nothing is contracted or reassociated. Traps and errno are not observed, which lets loops be vectorised.
set(SIM_COMPILE_OPTIONS -Wall -Wextra -Werror -ffp-contract=off -fno-math-errno -fno-trapping-math -fno-strict-aliasing -fwrapv)
set(SIM_INCLUDE_DIRECTORY ${CMAKE_CURRENT_LIST_DIR}/..)
find_package(Threads REQUIRED)

set(SIM_X86 OFF)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(SIM_X86 ON)
endif()

function(sim_engine_part name)
  add_library(${name} OBJECT ${ARGN})
  target_compile_options(${name} PRIVATE -idirafter ${SIM_INCLUDE_DIRECTORY})
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_compile_options(${name} PRIVATE ${SIM_COMPILE_OPTIONS})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS ON)
  if(SIM_X86)
    target_compile_definitions(${name} PRIVATE SIM_X86)
  endif()
endfunction()

sim_engine_part(sim_engine ${SIM_ENGINE_SOURCES})
# Vectorises the loops of the checkers, but not what stands side by side: a processor waits where parts that were just
# stored are loaded as one.
target_compile_options(sim_engine PRIVATE -O3 -fno-tree-slp-vectorize)
sim_engine_part(sim_isa_baseline ${SIM_ISA_SOURCES} ${SIM_SCALAR_SOURCES})
# Unrolling 32 lanes of scalar code would take minutes to compile and gain nothing.
target_compile_definitions(sim_isa_baseline PRIVATE SIM_TARGET=baseline)
target_compile_options(sim_isa_baseline PRIVATE -O2)
set(SIM_ENGINE_OBJECTS $<TARGET_OBJECTS:sim_engine> $<TARGET_OBJECTS:sim_isa_baseline>)
if(SIM_X86)
  sim_engine_part(sim_isa_v3 ${SIM_ISA_SOURCES})
  target_compile_definitions(sim_isa_v3 PRIVATE SIM_TARGET=v3)
  target_compile_options(sim_isa_v3 PRIVATE -O3 -march=x86-64-v3)
  sim_engine_part(sim_isa_v4 ${SIM_ISA_SOURCES})
  target_compile_definitions(sim_isa_v4 PRIVATE SIM_TARGET=v4)
  target_compile_options(sim_isa_v4 PRIVATE -O3 -march=x86-64-v4 -mprefer-vector-width=512)
  list(APPEND SIM_ENGINE_OBJECTS $<TARGET_OBJECTS:sim_isa_v3> $<TARGET_OBJECTS:sim_isa_v4>)
endif()
