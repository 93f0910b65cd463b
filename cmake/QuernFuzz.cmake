# The one function that declares a fuzzer.

# quern_fuzzer(<name> SOURCES <files> LIBS <targets> [CORPUS <folder>])
#
# SOURCES, relative to the calling folder, define LLVMFuzzerTestOneInput. CORPUS, relative to the project, is
# fixtures/corpus/<name> unless said otherwise, and holds at least one file. With QUERN_FUZZ (clang) the program is a
# libFuzzer one; in every other build the same unit is compiled with tests/fuzz_replay_main.cc. Both are registered with
# CTest as fuzz.<name>, which runs each file of the corpus once; the program is <build folder>/fuzzers/<name>.
function(quern_fuzzer name)
  cmake_parse_arguments(ARG "" "CORPUS" "SOURCES;LIBS" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "quern_fuzzer(${name}): what is '${ARG_UNPARSED_ARGUMENTS}'?")
  endif()
  if(NOT QUERN_TESTS AND NOT QUERN_FUZZ)
    return()
  endif()
  if(NOT ARG_CORPUS)
    set(ARG_CORPUS fixtures/corpus/${name})
  endif()
  set(corpus ${PROJECT_SOURCE_DIR}/${ARG_CORPUS})
  file(GLOB seeds ${corpus}/*)
  if(NOT seeds)
    message(FATAL_ERROR "quern_fuzzer(${name}): ${ARG_CORPUS} holds no file")
  endif()

  set(target quern_fuzz_${name})
  add_executable(${target} ${ARG_SOURCES})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name}
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzzers)
  target_link_libraries(${target} PRIVATE ${ARG_LIBS} quern_options)
  if(QUERN_FUZZ)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    add_test(NAME fuzz.${name} COMMAND ${target} -runs=0 ${corpus})
  else()
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz_replay_main.cc)
    add_test(NAME fuzz.${name} COMMAND ${target} ${corpus})
  endif()
  set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz)
endfunction()
