#!/usr/bin/env python3
"""Chat templates against Jinja2: whatever it renders, cortiq-inspect --render renders too, to the byte."""
import json
import os
import sys

import harness

TURNS = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Grüße, \"world\"\n<b>&'"}, {"role": "assistant", "content": " ok "}]
CHATML = ("{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
DEFAULT_SYSTEM = ("{% for m in messages %}{% if loop.first and messages[0]['role'] != 'system' %}<|im_start|>system\nHelpful.<|im_end|>\n{% endif %}"
                  "<|im_start|>{{ m['role'] }}\n{{ m['content'] | trim }}<|im_end|>\n{% endfor %}")
BLOCKS = """{%- set ns = namespace(found=false) -%}
{%- for m in messages if m.role != 'system' %}
    {%- if not ns.found %}[first]{% set ns.found = true %}{% endif %}
    {{- '[' ~ loop.index0 ~ '/' ~ loop.length ~ ']' }}
    {% if loop.last %}
        last: {{ m.content.strip().upper() }}
    {% else %}
        {{ m.content.split('\\n')[0] }}
    {% endif %}
{% endfor %}
end
"""
MACRO = "{% macro turn(role, text='') %}<{{ role }}>{{ text }}</{{ role }}>{% endmacro %}{% for m in messages %}{{ turn(m.role, m.content) }}{% endfor %}"
JSON = "{{ messages | tojson }}|{{ messages[0] | tojson(indent=2) }}"
EXPRESSIONS = ("{{ messages | length }} {{ messages[-1].role }} {{ messages[1:] | map(attribute='role') | join(',') }} "
               "{{ 'x' in 'xyz' }} {{ 7 // 2 }} {{ 7 % 4 }} {{ 2 ** 5 }} {{ none is none }} {{ missing is defined }} {{ missing | default('d') }} "
               "{{ 'a' if messages else 'b' }} {{ [1, 2] + [3] }} {{ {'k': True}.items() | list }}")
ROWS = {"chatml": CHATML, "default system": DEFAULT_SYSTEM, "blocks": BLOCKS, "macro": MACRO, "json": JSON, "expressions": EXPRESSIONS}


def python_json(value, indent=None, **options):
    """tojson as chat templates expect it: json.dumps without escaping beyond JSON's own."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def main():
    args = harness.arguments(__doc__)
    harness.need_tools(args, "cortiq-inspect")
    try:
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        harness.skip_all("the Python package jinja2 is missing: tools/setup installs it into build/venv")
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    environment.filters["tojson"] = python_json
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        template, variables = scratch.path("template.jinja"), scratch.path("variables.json")
        for name, source in ROWS.items():
            for prompt in (False, True):
                values = {"messages": TURNS[not prompt:], "add_generation_prompt": prompt, "bos_token": "<s>"}
                with open(template, "w", newline="") as out:
                    out.write(source)
                with open(variables, "w") as out:
                    json.dump(values, out)
                result = harness.run([os.path.join(args.bin, "cortiq-inspect"), "--render", template, "--input", variables])
                want = environment.from_string(source).render(**values)
                why_not = harness.why_not_success(result) or (None if result.stdout == want else f"{result.stdout!r}, expected {want!r}")
                tally.check(f"{name}, generation prompt {prompt}", why_not)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
