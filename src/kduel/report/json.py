"""The results as JSON: the contract that scripts rely on, published as docs/results.schema.json."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import msgspec

from kduel.core.results import SCHEMA, Results
from kduel.report import DEFAULTS, Format, ReportOptions

HIDDEN = re.compile("[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


class JsonFormat(Format):
    """Every field of `Results`; missing is null. Decoding gives the same results back."""

    name: ClassVar[str] = "json"
    summary: ClassVar[str] = "everything, for scripts"
    suffix: ClassVar[str] = ".json"

    def render(self, results: Results, options: ReportOptions = DEFAULTS) -> str:
        text = msgspec.json.format(msgspec.json.encode(results), indent=1).decode()
        # Such characters can only stand inside strings, where the escape means the same and hides nothing.
        return HIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


PLUGIN = JsonFormat()


def schema() -> dict[str, Any]:
    """The JSON schema (2020-12) of what `render` writes."""
    found = msgspec.json.schema(Results)
    found["$defs"]["Results"]["properties"]["schema"] = {
        "const": SCHEMA,
        "description": "The version of this contract.",
    }
    found["$defs"]["Results"]["required"] = sorted({"schema", *found["$defs"]["Results"]["required"]})
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Results of a KDuel run", **found}


def schema_text() -> str:
    """The schema as the file docs/results.schema.json has it."""
    return msgspec.json.format(msgspec.json.encode(schema(), order="sorted"), indent=1).decode() + "\n"
