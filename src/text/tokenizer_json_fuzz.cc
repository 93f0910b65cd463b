// Fuzzer: any bytes as tokenizer.json; whatever loads encodes and decodes a text.
#include <cstdint>
#include <string_view>

#include "quern/base/check.h"
#include "quern/text/detokenizer.h"
#include "quern/text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using quern::text::Tokenizer;
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = Tokenizer::from_json(json, "fuzz.json");
  if (!tokenizer) {
    QUERN_CHECK(!tokenizer.error().message.empty());
    return 0;
  }
  for (const auto special : {Tokenizer::Special::kParse, Tokenizer::Special::kPlain}) {
    const auto ids = (*tokenizer)->encode("It's 12 fox\u00e9s \U0001F600\n <s> [CLS]", special);
    if (!ids) continue;
    quern::text::Detokenizer detokenizer(**tokenizer);
    for (const auto id : *ids) {
      static_cast<void>(detokenizer.push(id));
      static_cast<void>((*tokenizer)->token_text(id));
    }
    static_cast<void>((*tokenizer)->decode(*ids));
  }
  return 0;
}
