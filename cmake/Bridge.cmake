# The Rust library behind src/text, built by cargo: the target quern_bridge.
#
# One release build serves every preset (build/bridge): sanitizers don't see into it, and need not. cargo fetches what
# Cargo.lock names when it isn't there yet, and needs no network afterwards.

find_program(CARGO cargo HINTS $ENV{CARGO_HOME}/bin $ENV{HOME}/.cargo/bin)
find_program(RUSTC rustc HINTS $ENV{CARGO_HOME}/bin $ENV{HOME}/.cargo/bin)
if(NOT CARGO OR NOT RUSTC)
  message(FATAL_ERROR "cargo and rustc (1.85 or later) are needed to build bridge/: install Rust with rustup")
endif()
execute_process(COMMAND ${RUSTC} --version OUTPUT_VARIABLE rustc_version OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY)
if(NOT rustc_version MATCHES "^rustc ([0-9]+\\.[0-9]+\\.[0-9]+)" OR CMAKE_MATCH_1 VERSION_LESS 1.85)
  message(FATAL_ERROR "bridge/ needs rustc 1.85 or later; ${RUSTC} is '${rustc_version}'")
endif()

set(bridge_folder ${PROJECT_SOURCE_DIR}/bridge)
set(bridge_target ${PROJECT_SOURCE_DIR}/build/bridge)
set(bridge_library ${bridge_target}/release/libquern_bridge.a)
file(GLOB bridge_sources CONFIGURE_DEPENDS ${bridge_folder}/src/*.rs)
add_custom_command(OUTPUT ${bridge_library}
  COMMAND ${CMAKE_COMMAND} -E env CARGO_TARGET_DIR=${bridge_target} RUSTC=${RUSTC}
    ${CARGO} build --release --locked --quiet
  COMMAND ${CMAKE_COMMAND} -E touch ${bridge_library}  # cargo leaves it as it is when nothing in it changed
  DEPENDS ${bridge_sources} ${bridge_folder}/Cargo.toml ${bridge_folder}/Cargo.lock
  WORKING_DIRECTORY ${bridge_folder}
  COMMENT "Building bridge/ with cargo: minutes the first time"
  USES_TERMINAL VERBATIM)
add_custom_target(quern_bridge_library DEPENDS ${bridge_library})

add_library(quern_bridge STATIC IMPORTED GLOBAL)
set_target_properties(quern_bridge PROPERTIES
  IMPORTED_LOCATION ${bridge_library}
  INTERFACE_INCLUDE_DIRECTORIES ${bridge_folder}/include
  INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")
add_dependencies(quern_bridge quern_bridge_library)
