// quern doctor: what this machine offers, and what is missing.
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "model_header.h"
#include "models.h"
#include "quern/cpu/cpu_device.h"
#include "quern/execution/kv_plan.h"
#include "quern/execution/kv_storage.h"
#include "quern/os/child_process.h"
#include "quern/os/cpu_features.h"
#include "quern/os/memory.h"
#include "quern/store/home.h"
#include "values.h"

namespace quern::app {
namespace {

using Json = nlohmann::ordered_json;

/// What was found: a line for people and a value for programs each, and what keeps quern from serving.
class Findings {
 public:
  void add(std::string_view key, Json value, std::string_view line) {
    json_[std::string(key)] = std::move(value);
    text_ += fmt::format("{:<11} {}\n", key, one_line(line));
  }
  void miss(std::string what) { missing_.push_back(std::move(what)); }

  int print(bool as_json) {
    add("missing", missing_, missing_.empty() ? "nothing" : fmt::format("{}", fmt::join(missing_, "; ")));
    const std::string text = as_json ? json_.dump(2, ' ', false, Json::error_handler_t::replace) + "\n" : text_;
    std::fputs(text.c_str(), stdout);
    return missing_.empty() ? 0 : 1;
  }

 private:
  Json json_;
  std::string text_;
  std::vector<std::string> missing_;
};

void look_at_processor(Findings& findings) {
  const os::CpuFeatures& cpu = os::cpu_features();
  findings.add("processor", {{"name", cpu.model_name}, {"cores", os::usable_cores()}},
               fmt::format("{}, {} usable cores", cpu.model_name, os::usable_cores()));
  const std::pair<std::string_view, bool> known[] = {{"avx2", cpu.avx2},
                                                     {"avx_vnni", cpu.avx_vnni},
                                                     {"avx512", cpu.avx512},
                                                     {"avx512_vnni", cpu.avx512_vnni},
                                                     {"avx512_bf16", cpu.avx512_bf16},
                                                     {"amx_int8", cpu.amx_int8},
                                                     {"amx_bf16", cpu.amx_bf16},
                                                     {"neon_dot", cpu.neon_dot}};
  std::vector<std::string_view> features;
  for (const auto& [name, present] : known) {
    if (present) features.push_back(name);
  }
  findings.add("features", features,
               features.empty() ? "none that quern knows" : fmt::format("{}", fmt::join(features, " ")));
}

void look_at_kernels(const Options& options, Findings& findings) {
  std::vector<std::string_view> supported;
  for (const cpu::Isa& isa : cpu::isas()) {
    if (isa.supported) supported.push_back(isa.name);
  }
  const auto device = cpu::make_cpu_device({.isa = options.cpu_isa, .threads = options.threads});
  if (!device) findings.miss("kernels: " + device.error().message);
  const std::string used(device ? (*device)->name() : "none");
  findings.add("kernels", {{"used", used}, {"supported", supported}},
               fmt::format("{} (this processor can run {})", used, fmt::join(supported, ", ")));
}

void look_at_memory(Findings& findings) {
  const os::MemoryStatus memory = os::memory_status();
  std::string line =
      fmt::format("{} available of {}", format_size(memory.available_bytes), format_size(memory.total_bytes));
  Json value = {{"total_bytes", memory.total_bytes}, {"available_bytes", memory.available_bytes}};
  if (memory.control_group_limit_bytes) {
    line += fmt::format(", the control group's limit is {}", format_size(*memory.control_group_limit_bytes));
    value["control_group_limit_bytes"] = *memory.control_group_limit_bytes;
  }
  findings.add("memory", std::move(value), line);
}

/// The home can be written to, or made where it would lie.
bool writable(std::filesystem::path folder) {
  std::error_code ignored;
  while (!std::filesystem::exists(folder, ignored) && folder.has_relative_path()) folder = folder.parent_path();
  return ::access(folder.c_str(), W_OK | X_OK) == 0;
}

void look_at_home(const store::Home& home, Findings& findings) {
  const bool can_write = writable(home.root());
  findings.add("home", {{"path", home.root().string()}, {"writable", can_write}},
               fmt::format("{}, {}", home.root().string(), can_write ? "writable" : "can't be written to"));
  if (!can_write) findings.miss("a home that can be written to (--home)");
}

/// The KV budget and context that the starter would have now. Its weights count with their size in the file.
void look_at_budget(const ModelHeader& starter, Findings& findings) {
  const os::MemoryStatus memory = os::memory_status();
  const auto plan =
      execution::plan_kv({.model_context = starter.config.context,
                          .available_bytes = memory.available_bytes,
                          .limit_bytes = memory.control_group_limit_bytes,
                          .weight_bytes = starter.bytes,
                          .page_bytes = execution::KvStorage::page_bytes(starter.config, tensor::DType::kF16)});
  if (!plan) {
    findings.miss("memory for the starter: " + plan.error().message);
    return;
  }
  findings.add("kv", {{"budget_bytes", plan->budget_bytes}, {"context", plan->context}},
               fmt::format("about {} for the starter: context {} of {}", format_size(plan->budget_bytes), plan->context,
                           starter.config.context));
}

void look_at_models(const store::Home& home, Findings& findings) {
  const std::size_t count = local_models(home).size();
  findings.add("models", count, fmt::format("{} in {}", count, home.models().string()));
  const ModelChoice starter{"starter", starter_path(home).string()};
  const auto header = read_header(starter);
  findings.add("starter", {{"path", starter.path}, {"usable", header.has_value()}},
               header ? fmt::format("{}, {}", starter.path, format_size(header->bytes)) : header.error().message);
  if (header) look_at_budget(*header, findings);
  if (count == 0) findings.miss("a model (`quern get starter` fetches one)");
}

void look_at_pip(Findings& findings) {
  std::string version;
  const auto exit = os::run_child(
      {.argv = {"python3", "-m", "pip", "--version"}, .on_line = [&](std::string_view line) { version = line; }});
  const bool usable = exit && exit->ok();
  findings.add("pip", usable, usable ? version : "python3 with pip isn't there; only `quern get starter` needs it");
}

}  // namespace

Result<int> run_doctor(const Options& options, const std::vector<std::string>&) {
  const store::Home home(options.home);
  Findings findings;
  findings.add("version", QUERN_VERSION, "quern " QUERN_VERSION);
  look_at_processor(findings);
  look_at_kernels(options, findings);
  look_at_memory(findings);
  look_at_home(home, findings);
  look_at_models(home, findings);
  look_at_pip(findings);
  return findings.print(options.json);
}

}  // namespace quern::app
