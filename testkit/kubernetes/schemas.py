#!/usr/bin/env python3
"""
Makes a JSON schema for each kind of Kubernetes resource, strict about unknown fields, from the API's own description (OpenAPI 2). usage:
schemas.py SWAGGER.json FOLDER. A field may be null, because the API server accepts null. A field of the type int-or-string is an integer
or a string.
"""

import json
import os
import sys


class Forms:
    """The definitions of one API description, with references resolved; a form that contains itself ends in `anything`."""

    def __init__(self, definitions):
        self.definitions = definitions

    def of(self, form, inside=()):
        reference = form.get("$ref")
        if reference:
            name = reference.rsplit("/", 1)[-1]
            return {} if name in inside else self.of(self.definitions[name], (*inside, name))
        if form.get("format") == "int-or-string" or form.get("x-kubernetes-int-or-string"):
            return {"type": ["string", "integer", "null"]}
        result = {key: form[key] for key in ("type", "enum", "required", "minimum", "maximum", "pattern") if key in form}
        if "items" in form:
            result["items"] = self.of(form["items"], inside)
        rest = form.get("additionalProperties")
        if isinstance(rest, dict):
            result["additionalProperties"] = self.of(rest, inside)
        if "properties" in form:
            required = set(form.get("required", ()))
            result["properties"] = {key: nullable(self.of(one, inside), key in required) for key, one in form["properties"].items()}
            result.setdefault("additionalProperties", False)
        return result


def nullable(form, is_required):
    kind = form.get("type")
    return form if is_required or not isinstance(kind, str) else {**form, "type": [kind, "null"]}


def main(source, folder):
    with open(source, encoding="utf-8") as file:
        definitions = json.load(file)["definitions"]
    forms = Forms(definitions)
    os.makedirs(folder, exist_ok=True)
    for name, definition in definitions.items():
        kinds = definition.get("x-kubernetes-group-version-kind", [])
        if len(kinds) != 1 or "properties" not in definition:
            continue
        group, version, kind = (kinds[0][key] for key in ("group", "version", "kind"))
        form = forms.of(definition, (name,))
        form["required"] = sorted({*form.get("required", ()), "apiVersion", "kind"})
        form["properties"]["kind"] = {"enum": [kind]}
        form["properties"]["apiVersion"] = {"enum": [f"{group}/{version}" if group else version]}
        file_name = "-".join(part for part in (kind.lower(), group.split(".")[0], version) if part)
        with open(os.path.join(folder, f"{file_name}.json"), "w", encoding="utf-8") as file:
            json.dump(form, file)


main(*sys.argv[1:])
