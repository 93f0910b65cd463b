// Fuzzer: any bytes as each of Hugging Face's JSON files.
#include <cstdint>
#include <string_view>

#include "quern/base/check.h"
#include "quern/formats/hf_config.h"
#include "quern/formats/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace quern::formats;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto config = HfConfig::parse(text, "config.json")) {
    for (const std::string_view field : {"num_hidden_layers", "rms_norm_eps", "rope_theta", "tie_word_embeddings"}) {
      if (const auto value = config->integer(field, 1, 100); value && *value)
        QUERN_CHECK(**value >= 1 && **value <= 100);
      if (const auto value = config->number(field, 0.0, 1.0); value && *value)
        QUERN_CHECK(**value >= 0 && **value <= 1);
      static_cast<void>(config->boolean(field));
      static_cast<void>(config->string(field));
      static_cast<void>(config->integers(field));
      static_cast<void>(config->rope_number(field, 0.0, 1.0));
    }
    if (config->quantization()) QUERN_CHECK(config->quantization()->defaults.bits >= 2);
  }
  if (const auto config = parse_generation_config(text, "generation_config.json")) {
    for (const std::int32_t id : config->eos_token_ids) QUERN_CHECK(id >= 0);
  }
  static_cast<void>(parse_tokenizer_config(text, "tokenizer_config.json"));
  if (const auto index = parse_shard_index(text, "model.safetensors.index.json")) {
    for (const auto& shard : index->shards) QUERN_CHECK(shard.find('/') == std::string::npos);
  }
  return 0;
}
