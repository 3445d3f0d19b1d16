"""The profile as a JSON schema, for editors that check and complete YAML."""

from __future__ import annotations

from typing import Any

from ddconsole.core.profile import Profile

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def profile_schema() -> dict[str, Any]:
    """The schema of a profile file. Text may be typed without quotes, so plain numbers and flags pass for it too."""
    schema = Profile.model_json_schema(by_alias=True)
    return {"$schema": DIALECT, **_loosened(schema), "title": "ddconsole profile"}


def _loosened(part: Any) -> Any:
    """The schema with every free text also accepting what YAML would read as a number or a flag."""
    if isinstance(part, list):
        return [_loosened(item) for item in part]
    if not isinstance(part, dict):
        return part
    loosened = {key: _loosened(value) for key, value in part.items()}
    if loosened.get("type") == "string" and not loosened.keys() & {"enum", "const"}:
        loosened["type"] = ["string", "number", "boolean"]
    return loosened
