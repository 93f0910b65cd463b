// Chat templates of our own writing, for models that bring none and for --chat-template.
#include <array>

#include "quern/text/chat_template.h"

namespace quern::text {
namespace {

struct Builtin {
  std::string_view name;
  std::string_view source;
};

constexpr std::array<Builtin, 6> kBuiltins = {{
    {"chatml", R"({%- for message in messages %}
{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\n' }}
{%- endif %})"},

    {"llama3", R"({{- bos_token | default('<|begin_of_text|>') }}
{%- for message in messages %}
{{- '<|start_header_id|>' + message.role + '<|end_header_id|>\n\n' + message.content | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %})"},

    {"mistral", R"({{- bos_token | default('<s>') }}
{%- set pending = namespace(system='') %}
{%- for message in messages %}
{%- if message.role == 'system' %}
{%- set pending.system = message.content + '\n\n' %}
{%- elif message.role == 'user' %}
{{- '[INST] ' + pending.system + message.content + ' [/INST]' }}
{%- set pending.system = '' %}
{%- elif message.role == 'assistant' %}
{{- ' ' + message.content | trim + eos_token | default('</s>') }}
{%- else %}
{{- raise_exception('this chat template knows the roles system, user and assistant only') }}
{%- endif %}
{%- endfor %})"},

    {"zephyr", R"({%- for message in messages %}
{{- '<|' + message.role + '|>\n' + message.content + eos_token | default('</s>') + '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|assistant|>\n' }}
{%- endif %})"},

    {"gemma", R"({{- bos_token | default('<bos>') }}
{%- set pending = namespace(system='') %}
{%- for message in messages %}
{%- if message.role == 'system' %}
{%- set pending.system = message.content | trim + '\n\n' %}
{%- else %}
{%- set role = 'model' if message.role == 'assistant' else message.role %}
{{- '<start_of_turn>' + role + '\n' + pending.system + message.content | trim + '<end_of_turn>\n' }}
{%- set pending.system = '' %}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<start_of_turn>model\n' }}
{%- endif %})"},

    {"phi3", R"({%- for message in messages %}
{{- '<|' + message.role + '|>\n' + message.content + '<|end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|assistant|>\n' }}
{%- endif %})"},
}};

}  // namespace

std::optional<std::string_view> builtin_chat_template(std::string_view name) {
  for (const Builtin& builtin : kBuiltins) {
    if (builtin.name == name) return builtin.source;
  }
  return std::nullopt;
}

}  // namespace quern::text
