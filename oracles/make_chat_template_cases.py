#!/usr/bin/env python3
"""Makes fixtures/cases/chat_template: templates of our own with what Hugging Face's environment renders from them.

Each file is one kind of difference between Jinja implementations. A case has a template, its messages and options, and either
`expected`, or `refused` (raise_exception's message), or `fails` (any other error). strftime_now sees 2024-02-29 12:30:05.
"""

import datetime
import json
import pathlib

import jinja2
import transformers.utils.chat_template_utils as hf

FOLDER = pathlib.Path(__file__).parent.parent / "fixtures" / "cases" / "chat_template"


class FixedTime(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2024, 2, 29, 12, 30, 5)


hf.datetime = FixedTime

CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": " Hi there! "},
    {"role": "assistant", "content": "Hello.\n"},
    {"role": "user", "content": "It's \"1 < 2\" & 'so'?"},
]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Looks up <weather> & \"such\", at 20 °C\nor so",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "Zürich's 天气 😀"},
                    "days": {"type": "integer", "minimum": 1, "default": None},
                    "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
                    "scale": {"type": "number", "default": 1.0},
                    "exact": {"type": "boolean", "default": True},
                },
                "required": ["city"],
                "additionalProperties": False,
            },
        },
    },
    {"type": "function", "function": {"name": "noop", "parameters": {}}},
]
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Bern", "days": 2, "x": [1.5, None, True]}}}
    ],
}
VALUES = {
    "numbers": [0, -1, 12345678901234567, 1.0, 0.1, 1e16, 1.5e-7, 1e22, -0.0],
    "words": ["it's", 'say "x"', "both ' and \"", "tab\t\n\\ \x00\x7f\x85\xa0\u200b\u0301é天😀\ue000"],
    "nested": {"a": [1, {"b": None}], "c": {"d": [True, False]}, "e": {}, "f": []},
    "empty": "",
    "none": None,
    "yes": True,
}


def case(name, template, messages=CHAT, tools=None, variables=None, prompt=False, proceed=False):
    return dict(name=name, template=template, messages=messages, tools=tools, variables=variables, prompt=prompt, proceed=proceed)


def expressions(names_and_expressions, **options):
    return [case(name, "{{ " + text + " }}", **options) for name, text in names_and_expressions]


def tojson():
    forms = ["", "()", "(indent=2)", "(indent=4)", "(indent=0)", "(indent='\\t')", "(ensure_ascii=True)", "(ensure_ascii=False)",
             "(separators=(',', ':'))", "(separators=[' ; ', ' = '])", "(sort_keys=True)", "(indent=2, sort_keys=True)",
             "(indent=1, separators=(',', ':'))", "(indent=none)", "(indent=None, separators=None)"]
    cases = [case(f"tools {form}", "{{ tools | tojson" + form + " }}", tools=TOOLS) for form in forms]
    cases += expressions([(f"{name} {form}", f"{name} | tojson{form}") for name in VALUES for form in ("", "(ensure_ascii=True)")],
                         variables=VALUES)
    cases += expressions([
        ("literals", "{'b': [1, 'x', none], 'a': (true, 2.50)} | tojson"),
        ("odd keys", "{1: 'a', none: 'b', true: 'c', 2.5: 'd'} | tojson"),
        ("undefined", "nothing | tojson"),
        ("string", "'</script><b>&' | tojson"),
        ("joined", "'x: ' ~ {'a': 1} | tojson ~ '.'"),
        ("items", "{'a': 1}.items() | list | tojson"),
        ("mapped", "[{'a': 1}, {'b': 2}] | map('tojson') | join(' | ')"),
        ("message", "messages[0] | tojson"),
        ("range", "range(3) | list | tojson"),
        ("undefined inside", "[nothing] | tojson"),
        ("one line", "messages | tojson | length"),
        ("unknown option", "1 | tojson(colour=3)"),
    ])
    cases += [case("arguments of a call", "{% for m in messages %}{% for c in m.tool_calls %}{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}", messages=[CALL])]
    return cases


def printed():
    cases = expressions([(name, name) for name in VALUES], variables=VALUES)
    cases += [case(f"{name} joined to text", "{{ 'x=' ~ " + name + " ~ ';' }}", variables=VALUES) for name in VALUES]
    cases += [case(f"{name} | string", "{{ " + name + " | string }}", variables=VALUES) for name in VALUES]
    cases += [case("a tool", "{{ tools[0] }}", tools=TOOLS), case("tools", "{{ tools }}", tools=TOOLS), case("no tools", "{{ tools }}"),
              case("a call", "{{ messages }}", messages=[CALL])]
    cases += expressions([
        ("list literal", "[1, 'two', 3.0, none, true, [false]]"), ("tuple literal", "(1, 'two')"), ("one tuple", "(1,)"),
        ("dict literal", "{'type': 'function', \"it's\": 1}"), ("none", "none"), ("None", "None"), ("True", "True"),
        ("negated", "not true"), ("comparison", "1 < 2"), ("undefined", "nothing"), ("undefined in a list", "[nothing]"),
        ("arithmetic", "7 // 2 ~ ' ' ~ 7 / 2 ~ ' ' ~ -7 // 2 ~ ' ' ~ 2 ** 10 ~ ' ' ~ 7 % 3 ~ ' ' ~ -7 % 3 ~ ' ' ~ 7.5 % 2"),
        ("division", "4 / 2"), ("sum of floats", "0.1 + 0.2"), ("joined list", "[1, none, true, 'a', [1]] | join('-')"),
        ("list plus list", "[1] + ['a']"), ("string times", "'ab' * 3"), ("keys", "{'a': 1, 'b': 2}.keys() | list"),
        ("items", "{'a': 1}.items() | list"), ("values", "{'a': 1}.values() | list"), ("slice", "[1, 2, 3, 4][1:3]"),
        ("reversed", "[1, 2, 3][::-1]"), ("string slice", "'hello'[1:-1]"), ("last", "[1, 2][-1]"),
        ("format filter", "'%s-%d' | format('a', 3)"), ("split", "'a b  c'.split()"), ("split by", "'a,b,,c'.split(',')"),
        ("default of none", "none | default('x')"), ("default of none, true", "none | default('x', true)"),
        ("upper", "true | upper"), ("trim none", "none | trim"), ("replace", "[1] | replace('1', '2')"),
        ("capitalize", "'hELLO wORLD' | capitalize"), ("title", "'hello wORLD it\\'s' | title"),
    ])
    return cases


def length():
    return expressions([
        ("of undefined", "nothing | length"), ("of an undefined attribute", "messages[0].nothing | length"),
        ("count of undefined", "nothing | count"), ("of none", "none | length"), ("of a string", "'天😀é' | length"),
        ("of a dict", "messages[0] | length"), ("of a list", "messages | length"), ("compared", "nothing | length > 0"),
        ("of a number", "3 | length"), ("of tools that aren't there", "(tools or []) | length"),
    ]) + [case("loop over undefined", "{% for x in nothing %}x{% else %}none{% endfor %}"),
          case("attribute of undefined", "{{ nothing.attribute }}"),
          case("undefined is falsy", "{% if nothing %}a{% else %}b{% endif %}{{ nothing is defined }}{{ nothing == none }}"),
          case("missing item", "{{ messages[0]['x'] is defined }}|{{ messages[0].x }}|{{ messages[0].get('x') }}|{{ messages[0].get('x', 'd') }}"),
          case("missing item of missing", "{{ messages[0].x.y }}"),
          case("index out of range", "{{ messages[17] is defined }}")]


def whitespace():
    cases = []
    marks = ["", "-", "+"]
    for opening in marks:
        for closing in marks:
            for around in ["a\n  TAG\n  b\n", "a TAG b", "  TAG  \n\n b", "\n\n\tTAG\n\n", "x\n TAG TAG\n y"]:
                tag = "{%" + opening + " set v = 1 " + closing + "%}"
                cases.append(case(f"{opening}set{closing} {around!r}", around.replace("TAG", tag)))
                print_tag = "{{" + (opening if opening != "+" else "") + " 1 " + (closing if closing != "+" else "") + "}}"
                cases.append(case(f"{opening}print{closing} {around!r}", around.replace("TAG", print_tag)))
                comment = "{#" + opening + " c " + closing + "#}"
                cases.append(case(f"{opening}comment{closing} {around!r}", around.replace("TAG", comment)))
    cases += [
        case("loop", "{% for m in messages %}\n    {{ m.role }}\n  {% endfor %}\nend"),
        case("loop, kept", "{%+ for m in messages +%}\n    {{ m.role }}\n  {%+ endfor +%}\nend"),
        case("plus beside minus", "a\n   {%+ if true -%}\n   b\n   {%- endif +%}\n   c"),
        case("indented if", "  {% if true %}\n  x\n  {% endif %}\n  y\n\n"),
        case("one newline at the end goes", "x\n"), case("two newlines at the end", "x\n\n"), case("only a newline", "\n"),
        case("carriage returns", "a\r\n{% if true %}\r\nb\r\n{% endif %}\r\nc\r\n"),
        case("raw", "a\n{% raw %}\n {{ x }} {% y %}\n{% endraw %}\nb"),
        case("raw, trimmed", "a {%- raw -%}  {{ x }}  {%- endraw -%} b"),
        case("string with marks", "{{ '{% x %}' }}{{ \"{{ y }}\" }}"),
        case("newline in a string", "{{ 'a\nb' }}{{ 'c\\nd\\t\\'e\\'' }}"),
        case("comment over lines", "a\n  {# one\n two #}\n  b"),
        case("no break space", "a\n\u00a0{% if true %}x{% endif %}"),
        case("form feed", "a\n\f{% if true %}x{% endif %}\v"),
    ]
    return cases


def escape():
    text = "<a href=\"x\" title='y'>&amp;</a>"
    return expressions([
        ("escape", "text | escape"), ("e", "text | e"), ("forceescape", "text | forceescape"), ("twice", "text | e | e"),
        ("safe, then e", "text | safe | e"), ("of a number", "3 | e"), ("of a list", "[text] | e"), ("of none", "none | e"),
        ("joined", "(text | e) ~ '<'"), ("joined before", "'<' ~ (text | e)"), ("replaced", "text | e | replace('&', '<')"),
        ("upper", "text | e | upper"), ("of a message", "messages[3].content | e"), ("plain", "text"),
    ], variables={"text": text})


def generation():
    return [
        case("one", "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}"),
        case("trimmed", "a {%- generation -%}  x  {%- endgeneration -%} b"),
        case("on lines of its own", "a\n  {% generation %}\n  x\n  {% endgeneration %}\n  b"),
        case("kept", "a\n  {%+ generation +%}\n  x\n  {%+ endgeneration +%}\n  b"),
        case("what is set inside stays inside", "{% set x = 1 %}{% generation %}{% set x = 2 %}{{ x }}{% endgeneration %}{{ x }}"),
        case("a namespace reaches out", "{% set n = namespace(x=1) %}{% generation %}{% set n.x = 2 %}{% endgeneration %}{{ n.x }}"),
        case("in a comment", "a{# {% generation %} #}b"),
        case("in a string", "{{ '{% generation %}' }}"),
        case("loop variables inside", "{% for m in messages %}{% generation %}{{ loop.index }}{{ m.role }}{% endgeneration %}{% endfor %}"),
        case("never closed", "{% generation %}x"),
    ]


def formats():
    return expressions([
        ("%s", "'a %s b' % 'x'"), ("%s of a number", "'%s' % 3"), ("%d", "'%d items' % 3"), ("tuple", "'%s and %s' % ('a', 2)"),
        ("%05.1f", "'%05.1f|' % 3.14159"), ("%x", "'%x %X %o' % (255, 255, 8)"), ("%%", "'100%% %s' % 'x'"), 
        ("dict", "'%(a)s-%(b)d' % {'a': 'x', 'b': 2}"), ("list", "'%s' % [1, 'a']"), ("none", "'%s' % none"), ("true", "'%s' % true"),
        ("padded", "'%5s|%-5s|' % ('a', 'b')"), ("too few", "'%s %s' % 'a'"), ("wrong type", "'%d' % 'a'"), ("undefined", "'%s|' % nothing"),
        ("content", "'%s!' % messages[0].content"), ("float", "'%s' % 1.0"), ("%.2f", "'%.2f' % 2"), ("%c", "'%c' % 'z'"),
        ("numbers", "17 % 5"), ("negative", "-17 % 5"), ("negative divisor", "17 % -5"), ("floats", "7.5 % -2"), ("by zero", "1 % 0"),
        (".format", "'{} and {}'.format('a', 2)"), (".format by number", "'{1}{0}'.format('a', 'b')"),
        (".format by name", "'{x}-{y}'.format(x=1, y='z')"), (".format spec", "'{:>5}|{:<5}|{:^5}|{:05d}|{:.2f}'.format('a', 'b', 'c', 42, 3.14159)"),
        (".format braces", "'{{}}{}'.format(1)"), (".format item", "'{0[a]}'.format({'a': 5})"), (".format commas", "'{:,}'.format(1234567)"),
        ("in a loop", "messages | map(attribute='role') | join(', ')"),
        ("precedence", "'%s' % 1 + 2 | string"), ("chained", "'%s' % ('%s' % 'x')"),
    ])


def times():
    patterns = ["%d %b %Y", "%Y-%m-%d", "%B %d, %Y", "%A, %d %B %Y %H:%M:%S", "%-d/%-m/%y", "%I:%M %p", "%j %U %W %w %u", "%a %e %h",
                "%F %T %R %D", "%c|%x|%X", "100%%", "plain", "", "%H%n%M%t%S", "%C %G %V", "%z%Z|"]
    return [case(f"{pattern}", "{{ strftime_now('" + pattern + "') }}") for pattern in patterns] + [
        case("in a condition", "{% if strftime_now is defined %}{{ strftime_now(\"%d\") }}{% else %}unknown{% endif %}"),
        case("a set default", "{% if not date_string is defined %}{% set date_string = strftime_now('%d %b %Y') %}{% endif %}Today: {{ date_string }}"),
    ]


def refusals():
    return [
        case("plain", "{{ raise_exception('Roles must alternate') }}"),
        case("in a condition", "{% if messages[0].role != 'user' %}{{ raise_exception('First role was ' ~ messages[0].role + '!') }}{% endif %}"),
        case("in a macro", "{% macro f(x) %}{{ raise_exception('no ' ~ x) }}{% endmacro %}a{{ f('good') }}"),
        case("in a loop", "{% for m in messages %}{% if loop.index0 == 2 %}{{ raise_exception('at ' ~ loop.index0 ~ ': it\\'s \"wrong\"') }}{% endif %}{% endfor %}"),
        case("not reached", "{% if false %}{{ raise_exception('x') }}{% endif %}fine"),
        case("with a number", "{{ raise_exception(3) }}"),
        case("in a filter block", "{% filter upper %}{{ raise_exception('inside') }}{% endfilter %}"),
        case("unknown filter", "{{ 1 | nothing_like_it }}"),
        case("unknown function", "{{ nothing_like_it() }}"),
        case("broken", "{% if %}"),
        case("never closed", "{% for m in messages %}"),
        case("wrong types", "{{ 1 + 'a' }}"),
        case("concatenation with none", "{{ 'a' + none }}"),
    ]


def variables():
    tokens = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    return [
        case("tokens", "{{ bos_token }}{{ eos_token }}{{ pad_token }}|{{ unk_token }}", variables=tokens),
        case("a variable of one's own", "{{ enable_thinking is defined and enable_thinking is false }}", variables={"enable_thinking": False}),
        case("documents", "{{ documents is none }}{{ tools is none }}"),
        case("documents given", "{% for d in documents %}{{ d.title }}: {{ d.text }};{% endfor %}", variables={"documents": [{"title": "T", "text": "x"}]}),
        case("prompt", "{{ add_generation_prompt }}{% if add_generation_prompt %}<a>{% endif %}", prompt=True),
        case("no prompt", "{{ add_generation_prompt }}"),
        case("order of keys", "{% for k, v in messages[0].items() %}{{ k }}={{ v }};{% endfor %}", messages=[{"z": 1, "role": "user", "a": [1], "content": "x"}]),
        case("reasoning_content", "{{ messages[0].reasoning_content }}|{{ messages[0].thinking }}|{{ messages[0] }}", messages=[{"role": "assistant", "content": "x", "reasoning_content": "r"}]),
        case("thinking", "{{ messages[0].reasoning_content }}|{{ messages[0].thinking }}|{{ messages[0] }}", messages=[{"role": "assistant", "content": "x", "thinking": "t"}]),
        case("reasoning", "{{ messages[0].reasoning_content }}|{{ messages[0] }}", messages=[{"role": "assistant", "reasoning": "t", "content": "x", "reasoning_content": None}]),
        case("empty conversation", "{{ messages | length }}{{ messages }}", messages=[]),
    ]


def continued():
    chat = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</{{ m.role }}>\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
    trimmed = chat.replace("{{ m.content }}", "{{ m.content | trim }}")
    cases = []
    for text in ["Sure, ", "Sure", "  Sure \n", "Hi", "a\n\nb  "]:
        messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": text}]
        cases += [case(f"kept {text!r}", chat, messages, proceed=True), case(f"trimmed {text!r}", trimmed, messages, proceed=True),
                  case(f"closed {text!r}", chat, messages, prompt=True)]
    cases += [
        case("empty", chat, [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": ""}], proceed=True),
        case("empty, trimmed", trimmed, [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": ""}], proceed=True),
        case("no content", chat, [{"role": "assistant"}], proceed=True),
        case("none", chat, [], proceed=True),
        case("text is dropped", "{{ messages[0].content }}", [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "x"}], proceed=True),
        case("a part", "{% for p in messages[0].content %}[{{ p.text }}]{% endfor %}", [{"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b "}]}], proceed=True),
        case("content split", "{{ messages[0].content.split('</think>')[-1].lstrip('\\n') }}<end>", [{"role": "assistant", "content": "t</think>\n\nSo "}], proceed=True),
    ]
    return cases


def python():
    return expressions([
        ("strip", "'  a '.strip() ~ '|' ~ '  a '.lstrip() ~ '|' ~ '  a '.rstrip() ~ '|'"), ("strip characters", "'xxaxx'.strip('x')"),
        ("strip separators", "'\\x1c\\x1da\\x1f'.strip() | length"), ("removeprefix", "'abc'.removeprefix('a') ~ 'abc'.removesuffix('c')"),
        ("startswith", "'abc'.startswith('ab') ~ 'abc'.endswith(('x', 'c'))"), ("find", "'a天b'.find('b') ~ 'aba'.rfind('a') ~ 'a'.find('z')"),
        ("count", "'banana'.count('an')"), ("replace", "'aaa'.replace('a', 'b', 2)"), ("case", "'aB'.upper() ~ 'aB'.lower() ~ 'aB c'.title() ~ 'aB'.capitalize()"),
        ("splitlines", "'a\\nb\\r\\nc'.splitlines()"), ("split with a limit", "'a b c d'.split(' ', 2)"), ("rsplit", "'a/b/c'.rsplit('/', 1)"),
        ("rsplit by spaces", "' a  b c '.rsplit(none, 1)"), ("partition", "'a=b=c'.partition('=')"), ("rpartition", "'a=b=c'.rpartition('=')"),
        ("isdigit", "'12'.isdigit() ~ 'a1'.isalnum() ~ 'a'.isalpha() ~ ' '.isspace()"), ("join", "', '.join(['a', 'b'])"),
        ("a method of a dict, not called", "{'items': 1}['items']"), ("called though a key has its name", "{'items': 1}.items() | list"),
        ("attribute that is a method", "'m' if {'items': []}.items else 'n'"), ("attribute that is no method", "{'item': []}.item"),
        ("get", "{'a': 1}.get('a') ~ {'a': 1}.get('b', 2)"), ("in", "'a' in 'abc' and 'k' in {'k': 1} and 1 in [1]"),
        ("tests", "(1 is number) ~ ('a' is string) ~ ([] is sequence) ~ ({} is mapping) ~ ('a' is iterable) ~ (none is none) ~ (1 is integer) ~ (1.0 is float) ~ (true is boolean)"),
        ("filters", "[3, 1, 2] | sort | join(',') ~ ([1, 2] | first) ~ ([1, 2] | last) ~ ([1, 1] | unique | list | length) ~ ([1, 2] | sum)"),
        ("selectattr", "messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | list"),
        ("rejectattr", "messages | rejectattr('role', 'eq', 'user') | list | length"), ("dictsort", "{'b': 1, 'a': 2} | dictsort"),
        ("indent", "'a\\nb\\n\\nc' | indent(2)"), ("indent first", "'a\\nb' | indent(2, true)"), 
        ("reverse", "'abc' | reverse"), ("round", "2.567 | round(1)"), ("int", "'12' | int + 1"), ("float", "'1.5' | float"), ("abs", "-3 | abs"),
        ("batch", "[1, 2, 3] | batch(2) | list"), ("groupby", "messages | groupby('role') | map(attribute='grouper') | list"),
        ("ternary", "'a' if false"), ("chained comparison", "1 < 2 < 3"), ("concatenated literals", "'a' 'b'"),
        ("items filter", "{'a': 1} | items | list"), ("max", "[1, 3, 2] | max"), ("namespace", "namespace(a=1).a"),
        ("dict function", "dict(a=1, b=2)"), ("range", "range(1, 10, 3) | list"), 
        ("string test", "'abc' is upper"), ("divisibleby", "4 is divisibleby 2"), ("sameas", "none is sameas none"),
        ("list of a string", "'abc' | list"), ("in a tuple", "'user' in ('user', 'tool')"), ("not in", "'x' not in ['a']"), ("map upper", "['a'] | map('upper') | list"),
        ("tojson of a slice", "messages[1:] | map(attribute='role') | list | tojson"), ("negative step", "messages[::-1] | map(attribute='role') | list"),
        ("append is refused", "[1].append(2)"),
    ]) + [
        case("loop variables", "{% for m in messages %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}"),
        case("loop neighbours", "{% for m in messages %}{{ loop.previtem.role if not loop.first }}>{{ loop.nextitem.role }} {% endfor %}"),
        case("break and continue", "{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{% if loop.index > 2 %}{% break %}{% endif %}{{ m.role }}{% endfor %}"),
        case("filtered loop", "{% for m in messages if m.role == 'user' %}{{ loop.index }}{{ m.role }}{% endfor %}"),
        case("loop over a dict", "{% for k in {'a': 1, 'b': 2} %}{{ k }}{% endfor %}"),
        case("scopes", "{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}{% if true %}{% set x = 9 %}{% endif %}{{ x }}"),
        case("macro", "{% macro say(role, text='?', last=false) %}<{{ role }}>{{ text }}{{ last }}{% endmacro %}{{ say('a') }}{{ say('b', last=true) }}{{ say('c', text='t') }}"),
        case("macro with caller", "{% macro box() %}[{{ caller() }}]{% endmacro %}{% call box() %}x{% endcall %}"),
        case("set block", "{% set x %}a{{ 1 }}{% endset %}{{ x }}{{ x | length }}"),
        case("set block through a filter", "{% set x | upper %}a{% endset %}{{ x }}"),
        case("filter block", "{% filter upper %}abc{% endfilter %}"),
        case("several targets", "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% for k, v in [('x', 1)] %}{{ k }}{{ v }}{% endfor %}"),
        case("with", "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}"),
        case("elif", "{% if false %}a{% elif 1 %}b{% else %}c{% endif %}"),
        case("recursive loop", "{% for x in [[1, [2]], 3] recursive %}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}{% endif %}{% endfor %}"),
        case("recursive macro", "{% macro show(v) %}{% if v is mapping %}{% for k, w in v.items() %}{{ k }}:{{ show(w) }};{% endfor %}{% else %}{{ v }}{% endif %}{% endmacro %}{{ show({'a': {'b': 1}}) }}"),
        case("schema walk", "{% for n, p in tools[0].function.parameters.properties.items() %}{{ n }}: {{ p.type }}{% if p['items'] is defined %}[{{ p['items'].type }}]{% endif %}{% if n not in tools[0].function.parameters.required %}?{% endif %}; {% endfor %}", tools=TOOLS),
    ]


FAMILY = """{{- bos_token }}
{%- if messages[0]['role'] == 'system' %}
    {%- set system = messages[0]['content'] | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system = 'Be helpful.' %}
{%- endif %}
{#- the system's turn, with the tools #}
<|system|>
{{ system }}
{%- if tools is not none %}

Tools, one a line:
{% for tool in tools %}
{{ tool | tojson }}
{% endfor %}
{%- endif %}
<|end|>
{% for message in messages %}
{% if message.role == 'tool' %}
  {%- if loop.previtem and loop.previtem.role != 'tool' %}
<|user|>
  {%- endif %}
<tool_response>{{ message.content }}</tool_response>
  {%- if loop.last or loop.nextitem.role != 'tool' %}
<|end|>
  {%- endif %}
{% elif message.tool_calls is defined and message.tool_calls %}
<|assistant|>
{% for call in message.tool_calls %}
{%- if call.function is defined %}{% set call = call.function %}{% endif %}
<tool_call>{"name": "{{ call.name }}", "arguments": {{ call.arguments if call.arguments is string else call.arguments | tojson(indent=2) }}}</tool_call>
{% endfor %}
<|end|>
{% elif message.role in ['user', 'assistant'] %}
{{ '<|' + message.role + '|>\\n' + message.content + '<|end|>' }}
{% else %}
{{- raise_exception('Unknown role: ' + message.role) }}
{% endif %}
{% endfor %}
{%- if add_generation_prompt %}
<|assistant|>
{% endif %}
"""


def conversations():
    tokens = {"bos_token": "<s>"}
    tool_chat = [{"role": "user", "content": "Weather?"}, CALL, {"role": "tool", "content": "{\"t\": 20}"}, {"role": "tool", "content": "ok"}, {"role": "assistant", "content": "20 °C"}]
    text_call = [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{\"a\": 1}"}}]}]
    cases = []
    for prompt in (False, True):
        for name, messages in [("chat", CHAT), ("tool chat", tool_chat), ("call with text arguments", text_call), ("no system", CHAT[1:]), ("unknown role", [{"role": "other", "content": "x"}])]:
            for tools in (None, TOOLS):
                cases.append(case(f"{name}, {'tools' if tools else 'no tools'}, {'prompt' if prompt else 'no prompt'}", FAMILY, messages, tools, tokens, prompt))
    return cases


def answer(entry):
    out = {"name": entry["name"], "template": entry["template"], "messages": entry["messages"]}
    for key in ("tools", "variables"):
        if entry[key] is not None:
            out[key] = entry[key]
    if entry["prompt"]:
        out["add_generation_prompt"] = True
    if entry["proceed"]:
        out["continue_final_message"] = True
    try:
        rendered, _ = hf.render_jinja_template(
            conversations=[json.loads(json.dumps(entry["messages"]))], tools=entry["tools"], chat_template=entry["template"],
            add_generation_prompt=entry["prompt"], continue_final_message=entry["proceed"], **(entry["variables"] or {}))
        out["expected"] = rendered[0]
    except jinja2.exceptions.TemplateSyntaxError:
        out["fails"] = True
    except jinja2.exceptions.TemplateError as error:
        plain = type(error) is jinja2.exceptions.TemplateError
        out.update({"refused": str(error)} if plain else {"fails": True})
    except Exception:
        out["fails"] = True
    return out


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    kinds = [tojson, printed, length, whitespace, escape, generation, formats, times, refusals, variables, continued, python, conversations]
    total = 0
    for kind in kinds:
        answers = [answer(entry) for entry in kind()]
        total += len(answers)
        lines = ",\n".join("  " + json.dumps(entry, ensure_ascii=False) for entry in answers)
        (FOLDER / f"{kind.__name__}.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    print(f"{total} cases in {len(kinds)} files")


if __name__ == "__main__":
    main()
