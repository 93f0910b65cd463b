// GGUF's quantized blocks, field by field. Products of an f16 and a small integer scale are exact in f32.
#include "quern/tensor/blocks.h"

#include <array>
#include <cstring>

#include "quern/base/check.h"

namespace quern::tensor {
namespace {

using Byte = std::uint8_t;

float load_f16(const Byte* at) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return f16_to_f32(bits);
}

constexpr Byte low_nibble(Byte value) {
  return value & 0xf;
}
constexpr Byte high_nibble(Byte value) {
  return static_cast<Byte>(value >> 4);
}

/// 16 bytes hold columns 0..15 in their low nibbles and 16..31 in their high ones.
void decode_nibbles(const Byte* packed, Byte* codes) {
  for (int i = 0; i < 16; ++i) {
    codes[i] = low_nibble(packed[i]);
    codes[i + 16] = high_nibble(packed[i]);
  }
}

/// The fifth bits of 32 columns, the first in the lowest.
void add_fifth_bits(const Byte* packed, Byte* codes) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, packed, sizeof bits);
  for (int i = 0; i < 32; ++i) codes[i] = static_cast<Byte>(codes[i] | (((bits >> i) & 1U) << 4));
}

void decode_q4_0(const Byte* in, Byte* codes, float* scales, float* biases) {
  scales[0] = load_f16(in);
  biases[0] = -8.0F * scales[0];
  decode_nibbles(in + 2, codes);
}

void decode_q4_1(const Byte* in, Byte* codes, float* scales, float* biases) {
  scales[0] = load_f16(in);
  biases[0] = load_f16(in + 2);
  decode_nibbles(in + 4, codes);
}

void decode_q5_0(const Byte* in, Byte* codes, float* scales, float* biases) {
  scales[0] = load_f16(in);
  biases[0] = -16.0F * scales[0];
  decode_nibbles(in + 6, codes);
  add_fifth_bits(in + 2, codes);
}

void decode_q5_1(const Byte* in, Byte* codes, float* scales, float* biases) {
  scales[0] = load_f16(in);
  biases[0] = load_f16(in + 2);
  decode_nibbles(in + 8, codes);
  add_fifth_bits(in + 4, codes);
}

void decode_q8_0(const Byte* in, Byte* codes, float* scales, float* biases) {
  scales[0] = load_f16(in);
  biases[0] = -128.0F * scales[0];
  for (int i = 0; i < 32; ++i) codes[i] = in[2 + i] ^ 0x80;  // signed to unsigned by adding 128
}

/// Two bits a column, 128 columns in 32 bytes: byte i holds columns i, i + 32, i + 64 and i + 96.
void decode_pairs(const Byte* packed, Byte* codes) {
  for (int half = 0; half < 2; ++half) {
    for (int quarter = 0; quarter < 4; ++quarter) {
      for (int i = 0; i < 32; ++i) {
        codes[128 * half + 32 * quarter + i] = (packed[32 * half + i] >> (2 * quarter)) & 3;
      }
    }
  }
}

void decode_q2_k(const Byte* in, Byte* codes, float* scales, float* biases) {
  const float scale = load_f16(in + 80);
  const float minimum = load_f16(in + 82);
  for (int g = 0; g < 16; ++g) {
    scales[g] = scale * static_cast<float>(low_nibble(in[g]));
    biases[g] = -minimum * static_cast<float>(high_nibble(in[g]));
  }
  decode_pairs(in + 16, codes);
}

void decode_q3_k(const Byte* in, Byte* codes, float* scales, float* biases) {
  const Byte* high = in;         // [32], bit b of byte i: third bit of column 32 * b + i
  const Byte* packed = in + 96;  // [12], four low bits of 16 scales, then their two high bits
  const float scale = load_f16(in + 108);
  for (int g = 0; g < 16; ++g) {
    const Byte low = g < 8 ? low_nibble(packed[g]) : high_nibble(packed[g - 8]);
    const int top = (packed[8 + g % 4] >> (2 * (g / 4))) & 3;
    scales[g] = scale * static_cast<float>((low | (top << 4)) - 32);
    biases[g] = -4.0F * scales[g];
  }
  decode_pairs(in + 32, codes);
  for (int c = 0; c < 256; ++c) codes[c] = static_cast<Byte>(codes[c] | (((high[c % 32] >> (c / 32)) & 1) << 2));
}

/// Eight six-bit scales and minimums in 12 bytes, times the block's two f16.
void decode_scales_k(const Byte* in, float* scales, float* biases) {
  const float scale = load_f16(in);
  const float minimum = load_f16(in + 2);
  const Byte* packed = in + 4;
  for (int g = 0; g < 8; ++g) {
    const int s = g < 4 ? packed[g] & 63 : low_nibble(packed[g + 4]) | ((packed[g - 4] >> 6) << 4);
    const int m = g < 4 ? packed[g + 4] & 63 : high_nibble(packed[g + 4]) | ((packed[g] >> 6) << 4);
    scales[g] = scale * static_cast<float>(s);
    biases[g] = -minimum * static_cast<float>(m);
  }
}

/// 32 bytes hold 32 columns in their low nibbles and the next 32 in their high ones.
void decode_nibbles_k(const Byte* packed, Byte* codes) {
  for (int part = 0; part < 4; ++part) {
    for (int i = 0; i < 32; ++i) {
      codes[64 * part + i] = low_nibble(packed[32 * part + i]);
      codes[64 * part + 32 + i] = high_nibble(packed[32 * part + i]);
    }
  }
}

void decode_q4_k(const Byte* in, Byte* codes, float* scales, float* biases) {
  decode_scales_k(in, scales, biases);
  decode_nibbles_k(in + 16, codes);
}

void decode_q5_k(const Byte* in, Byte* codes, float* scales, float* biases) {
  const Byte* high = in + 16;  // [32], bit b of byte i: fifth bit of column 32 * b + i
  decode_scales_k(in, scales, biases);
  decode_nibbles_k(in + 48, codes);
  for (int c = 0; c < 256; ++c) codes[c] = static_cast<Byte>(codes[c] | (((high[c % 32] >> (c / 32)) & 1) << 4));
}

void decode_q6_k(const Byte* in, Byte* codes, float* scales, float* biases) {
  const Byte* low = in;         // [128]
  const Byte* high = in + 128;  // [64]
  const float scale = load_f16(in + 208);
  for (int g = 0; g < 16; ++g) {
    scales[g] = scale * static_cast<float>(static_cast<std::int8_t>(in[192 + g]));
    biases[g] = -32.0F * scales[g];
  }
  for (int half = 0; half < 2; ++half) {
    Byte* out = codes + 128 * half;
    for (int i = 0; i < 64; ++i) {
      out[i] = low_nibble(low[64 * half + i]);
      out[i + 64] = high_nibble(low[64 * half + i]);
    }
  }
  std::array<Byte, 256> top{};
  decode_pairs(high, top.data());
  for (int c = 0; c < 256; ++c) codes[c] = static_cast<Byte>(codes[c] | (top[c] << 4));
}

}  // namespace

BlockDecoder block_decoder(Encoding encoding) {
  switch (encoding) {
    case Encoding::kQ4_0:
      return decode_q4_0;
    case Encoding::kQ4_1:
      return decode_q4_1;
    case Encoding::kQ5_0:
      return decode_q5_0;
    case Encoding::kQ5_1:
      return decode_q5_1;
    case Encoding::kQ8_0:
      return decode_q8_0;
    case Encoding::kQ2K:
      return decode_q2_k;
    case Encoding::kQ3K:
      return decode_q3_k;
    case Encoding::kQ4K:
      return decode_q4_k;
    case Encoding::kQ5K:
      return decode_q5_k;
    case Encoding::kQ6K:
      return decode_q6_k;
    default:
      QUERN_CHECK(false);
      return nullptr;
  }
}

}  // namespace quern::tensor
