"""What Jinja2 makes of small templates, for the tests of Lapwing's chat templates.

usage: python3 jinja.py > jinja.json     (needs Jinja2 3.1)

The environment is that of the Python package transformers, which renders chat templates: a sandbox without changes
of values, `trim_blocks`, `lstrip_blocks`, loop controls, `raise_exception`, `strftime_now` and its own `tojson`.
"""

import copy
import datetime
import json
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox
from jinja_cases import CASES

# A time of one digit each, so that padding shows.
NOW = datetime.datetime(2025, 3, 4, 5, 6, 7)

VARIABLES = {
    "text": "Hello, World",
    "lines": "one\n  two\n\nthree\n",
    "words": ["b", "a", "C", "a"],
    "numbers": [3, 1, 2],
    "mixed": [1, 2.5, "x", True, None, [1, "y"], {"k": "v"}],
    "people": [
        {"name": "Ann", "age": 30, "city": {"name": "Oslo"}},
        {"name": "bob", "age": 25, "city": {"name": "Rome"}},
        {"name": "Cid", "age": 30, "city": {"name": "Oslo"}},
        {"name": "dan", "city": {"name": "Bonn"}},
    ],
    "tree": [{"n": "a", "c": [{"n": "b", "c": []}, {"n": "c", "c": [{"n": "d", "c": []}]}]}],
    "table": {"b": 2, "A": 1, "c": 3},
    "html": "<a href=\"x\">it's & so</a>",
    "wide": "naïve façade — 東京 🙂 ß ﬁ",
    "nothing": None,
    "empty": "",
    "schema": {"type": "object", "properties": {"x": {"type": "number", "description": "é <&> '\""}}, "required": ["x"]},
}


class Generation(jinja2.ext.Extension):
    """The tags around the model's own text, which change nothing here."""

    tags = {"generation"}

    def parse(self, parser: jinja2.parser.Parser) -> list[jinja2.nodes.Node]:
        """The body."""
        next(parser.stream)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)


def environment() -> jinja2.Environment:
    """As `transformers.utils.chat_template_utils` makes it."""

    def raise_exception(message: str) -> None:
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):  # noqa: ANN001, FBT002
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    made = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = NOW.strftime
    return made


def main() -> None:
    """Writes each template with its text, or null where Jinja2 fails on it."""
    made = environment()
    found, failed = [], []
    for template in CASES:
        try:
            text = made.from_string(template).render(messages=[], add_generation_prompt=False, tools=None,
                                                     documents=None, bos_token="<s>", eos_token="</s>",
                                                     **copy.deepcopy(VARIABLES))
        except Exception as error:  # noqa: BLE001
            failed.append(f"{template!r}: {type(error).__name__}: {error}")
            text = None
        found.append([template, text])
    if "--failed" in sys.argv:
        print("\n".join(failed))
        return
    head = {"now": NOW.isoformat(), "variables": VARIABLES}
    body = ",\n".join(json.dumps(case) for case in found)
    print(json.dumps(head)[:-1] + ', "cases": [\n' + body + "\n]}")


if __name__ == "__main__":
    main()
