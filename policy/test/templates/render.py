"""Renders chats as transformers does: one JSON line in ({template, messages, tools, open}), one out ({text} or {error})."""

import datetime
import json
import sys

from jinja2.exceptions import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment


def raise_exception(message):
    raise TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
environment.filters["tojson"] = tojson
environment.globals["raise_exception"] = raise_exception
environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
templates = {}

for line in sys.stdin:
    asked = json.loads(line)
    try:
        source = asked["template"]
        if source not in templates:
            templates[source] = environment.from_string(source)
        text = templates[source].render(
            messages=asked["messages"],
            tools=asked["tools"] or None,
            documents=None,
            add_generation_prompt=asked["open"],
            bos_token="<s>",
            eos_token="</s>",
        )
        answer = {"text": text}
    except Exception as error:  # every error of a template is an answer
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
