"""The results as JSON: the contract that scripts rely on, published as docs/results.schema.json."""

from typing import Any, ClassVar

import msgspec

from kduel.core.results import SCHEMA, Results
from kduel.core.text import escape_json
from kduel.report import DEFAULTS, Format, ReportOptions


class JsonFormat(Format):
    """Every field of `Results`; missing is null. Decoding gives the same results back."""

    name: ClassVar[str] = "json"
    summary: ClassVar[str] = "everything, for scripts"
    suffix: ClassVar[str] = ".json"

    def render(self, results: Results, options: ReportOptions = DEFAULTS) -> str:
        return escape_json(msgspec.json.format(msgspec.json.encode(results), indent=1).decode()) + "\n"


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
