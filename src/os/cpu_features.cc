// Processor features by CPUID, register state by XGETBV, AMX by asking the kernel.
#include "quern/os/cpu_features.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "quern/os/memory.h"

namespace quern::os {
namespace {

#if defined(__x86_64__)

struct Registers {
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(std::uint32_t leaf, std::uint32_t subleaf) {
  Registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
  return r;
}

bool bit(std::uint32_t value, int index) {
  return ((value >> index) & 1U) != 0;
}

// The register states that the system saves; XGETBV as an instruction, so that this file needs no -mxsave.
std::uint64_t saved_states() {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<std::uint64_t>(high) << 32) | low;
}

bool request_amx() {
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;               // XFEATURE_XTILE_DATA
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

void detect(CpuFeatures& features) {
  const Registers one = cpuid(1, 0);
  if (!bit(one.ecx, 27)) return;  // OSXSAVE
  const std::uint64_t saved = saved_states();
  const bool ymm = (saved & 0x6U) == 0x6U;
  const bool zmm = ymm && (saved & 0xe0U) == 0xe0U;
  const bool tiles = (saved & 0x60000U) == 0x60000U;
  const Registers seven = cpuid(7, 0);
  const Registers seven_one = cpuid(7, 1);
  features.avx2 = ymm && bit(seven.ebx, 5) && bit(one.ecx, 12) && bit(one.ecx, 29);
  features.avx_vnni = features.avx2 && bit(seven_one.eax, 4);
  features.avx512 = features.avx2 && zmm && bit(seven.ebx, 16) && bit(seven.ebx, 17) && bit(seven.ebx, 28) &&
                    bit(seven.ebx, 30) && bit(seven.ebx, 31);
  features.avx512_vnni = features.avx512 && bit(seven.ecx, 11);
  features.avx512_bf16 = features.avx512 && bit(seven_one.eax, 5);
  if (features.avx512 && tiles && bit(seven.edx, 24) && request_amx()) {
    features.amx_int8 = bit(seven.edx, 25);
    features.amx_bf16 = bit(seven.edx, 22);
  }
}

std::string model_name() {
  std::string name;
  for (std::uint32_t leaf = 0x80000002U; leaf <= 0x80000004U; ++leaf) {
    const Registers r = cpuid(leaf, 0);
    for (const std::uint32_t word : {r.eax, r.ebx, r.ecx, r.edx}) {
      for (int byte = 0; byte < 4; ++byte) {
        const char c = static_cast<char>((word >> (8 * byte)) & 0xffU);
        if (c != '\0') name += c;
      }
    }
  }
  const auto first = name.find_first_not_of(' ');
  if (first == std::string::npos) return "unknown x86-64 processor";
  return name.substr(first, name.find_last_not_of(' ') - first + 1);
}

#else

void detect(CpuFeatures& features) {
#if defined(__aarch64__)
  features.neon_dot = (::getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#else
  static_cast<void>(features);
#endif
}

std::string model_name() {
  return "unknown processor";
}

#endif

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = [] {
    CpuFeatures found;
    found.model_name = model_name();
    detect(found);
    return found;
  }();
  return features;
}

int usable_cores() {
  int cores = 1;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) cores = std::max(1, CPU_COUNT(&set));
  if (const auto quota = control_group_cpus()) {
    cores = std::clamp(static_cast<int>(std::ceil(*quota)), 1, cores);
  }
  return cores;
}

}  // namespace quern::os
