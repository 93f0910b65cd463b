# The module list and the one function that declares a module.
#
# QUERN_MODULES is ordered lowest first; QUERN_USES_<module> is the complete list of the modules that it may use, each of
# which stands above it in the order. A module that isn't listed, or a use that doesn't stand lower, is a configure error.
# tests/arch reads this file too: it is the only place where the list lives.

set(QUERN_MODULES
  base os events tensor formats text ops cpu cuda model kv sampling scheduling execution engine
  store hub jobs quantize training datasets evals wire server)

set(QUERN_USES_base)
set(QUERN_USES_os base)
set(QUERN_USES_events base)
set(QUERN_USES_tensor base os)
set(QUERN_USES_formats base os tensor)
set(QUERN_USES_text base formats)
set(QUERN_USES_ops base tensor)
set(QUERN_USES_cpu base os tensor ops)
set(QUERN_USES_cuda base os tensor ops)
set(QUERN_USES_model base os tensor formats ops)
set(QUERN_USES_kv base)
set(QUERN_USES_sampling base tensor text)
set(QUERN_USES_scheduling base)
set(QUERN_USES_execution base os tensor text ops cpu cuda model kv sampling scheduling)
set(QUERN_USES_engine base os events formats text model kv sampling scheduling execution)
set(QUERN_USES_store base os)
set(QUERN_USES_hub base os events store formats)
set(QUERN_USES_jobs base os events store scheduling)
set(QUERN_USES_quantize base os tensor formats text ops cpu model sampling execution jobs)
set(QUERN_USES_training base os tensor formats text ops cpu model sampling execution jobs)
set(QUERN_USES_datasets base os text engine jobs)
set(QUERN_USES_evals base os text engine jobs)
set(QUERN_USES_wire base events text sampling)
set(QUERN_USES_server base os events engine hub jobs wire)

foreach(module IN LISTS QUERN_MODULES)
  list(FIND QUERN_MODULES ${module} module_rank)
  foreach(use IN LISTS QUERN_USES_${module})
    list(FIND QUERN_MODULES ${use} use_rank)
    if(use_rank LESS 0 OR NOT use_rank LESS module_rank)
      message(FATAL_ERROR "module '${module}' may not use '${use}': it is unknown or doesn't stand lower")
    endif()
  endforeach()
endforeach()

set(QUERN_INCLUDE_ROOTS ${PROJECT_BINARY_DIR}/include-roots)

# quern_module(<name> [SOURCES ...] [TESTS ...] [SLOW_TESTS ...] [PUBLIC <targets>] [PRIVATE <targets>]
#              [TEST_LIBS <targets>])
#
# Declares the library quern_<name> from src/<name>. Its headers are included as "quern/<name>/x.h" through a root of its
# own that holds one link, so that a module which isn't on another's list can't be included from it. SOURCES and TESTS are
# relative to the module's folder; each *.h becomes a unit that includes only that header, so that each compiles alone.
# TESTS make one executable, quern_<name>_tests, registered with CTest under the label unit; SLOW_TESTS, which the thread
# sanitizer leaves out, make quern_<name>_slow_tests under the label slow.
function(quern_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;TESTS;SLOW_TESTS;PUBLIC;PRIVATE;TEST_LIBS" ${ARGN})
  if(NOT name IN_LIST QUERN_MODULES)
    message(FATAL_ERROR "'${name}' is not in the module list of cmake/QuernModule.cmake")
  endif()
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "quern_module(${name}): what is '${ARG_UNPARSED_ARGUMENTS}'?")
  endif()
  set(folder ${PROJECT_SOURCE_DIR}/src/${name})
  set(root ${QUERN_INCLUDE_ROOTS}/${name})
  file(MAKE_DIRECTORY ${root}/quern)
  if(NOT EXISTS ${root}/quern/${name})
    file(CREATE_LINK ${folder} ${root}/quern/${name} SYMBOLIC)
  endif()

  list(TRANSFORM ARG_SOURCES PREPEND ${folder}/)
  file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${folder} ${folder}/*.h)
  if(ARG_SOURCES)
    add_library(quern_${name} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(quern_${name} PRIVATE quern_options ${ARG_PRIVATE})
  else()
    add_library(quern_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(quern_${name} ${scope} ${root})
  target_link_libraries(quern_${name} ${scope} ${ARG_PUBLIC})
  foreach(use IN LISTS QUERN_USES_${name})
    if(TARGET quern_${use})
      target_link_libraries(quern_${name} ${scope} quern_${use})
    endif()
  endforeach()

  if(NOT QUERN_TESTS)
    return()
  endif()
  set(header_units)
  foreach(header IN LISTS headers)
    if(header MATCHES "-inl\\.h$")
      continue()
    endif()
    string(MAKE_C_IDENTIFIER ${header} id)
    set(unit ${PROJECT_BINARY_DIR}/header-units/${name}/${id}.cc)
    if(NOT EXISTS ${unit})
      file(WRITE ${unit} "#include \"quern/${name}/${header}\"  // must compile alone\n")
    endif()
    list(APPEND header_units ${unit})
  endforeach()
  if(header_units AND QUERN_HEADER_UNITS)
    add_library(quern_${name}_headers OBJECT ${header_units})
    target_link_libraries(quern_${name}_headers PRIVATE quern_${name} quern_options)
  endif()
  quern_module_tests(${name} quern_${name}_tests unit "${ARG_TESTS}" "${ARG_TEST_LIBS}")
  quern_module_tests(${name} quern_${name}_slow_tests slow "${ARG_SLOW_TESTS}" "${ARG_TEST_LIBS}")
endfunction()

# One test executable of a module; none when `sources` is empty.
function(quern_module_tests module target label sources libs)
  if(NOT sources)
    return()
  endif()
  list(TRANSFORM sources PREPEND ${PROJECT_SOURCE_DIR}/src/${module}/)
  add_executable(${target} ${sources})
  target_link_libraries(${target} PRIVATE quern_${module} quern_options ${libs} GTest::gmock_main)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)  # "support/x.h": what tests share
  target_compile_definitions(${target} PRIVATE QUERN_FIXTURES="${PROJECT_SOURCE_DIR}/fixtures")
  gtest_discover_tests(${target} TEST_PREFIX ${module}. PROPERTIES LABELS ${label} DISCOVERY_TIMEOUT 60)
endfunction()
