"""Python functions made from the tools' JSON Schemas, for frameworks that read signatures and docstrings."""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from provegym.errors import BadInputError

__all__ = ["tool_functions"]

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
_TYPES: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool, "object": dict}

Call = Callable[[Any, str, dict[str, Any]], str]


def tool_functions(tools: Sequence[Mapping[str, Any]], call: Call, taken: Sequence[str] = ()) -> dict[str, Callable[..., str]]:
    """Returns a method for each tool, by name: real parameters with types, a docstring of the Google style.

    A function takes any keyword, so that an argument that the tool does not have reaches the environment and gets its typed
    error there. Nothing is compiled from text: names and documentation only become attributes.

    Args:
        tools: The tools as JSON Schema functions.
        call: What a method does: it gets the instance, the tool's name and the arguments, and returns the result.
        taken: Names that no tool may have.

    Raises:
        BadInputError: If a tool's name is taken or no identifier.
    """
    made = {}
    for tool in tools:
        f = tool["function"]
        name = f["name"]
        if not _NAME.match(name) or keyword.iskeyword(name):
            raise BadInputError(
                f"tool {name!r} cannot be a Python method: its name must be an identifier; rename it in the pack"
            )
        if name in taken:
            raise BadInputError(f"tool {name!r} has a name that the framework uses itself; rename it in the pack")
        made[name] = _method(name, f.get("description", ""), f["parameters"], call)
    return made


def _method(name: str, description: str, schema: Mapping[str, Any], call: Call) -> Callable[..., str]:
    required = set(schema.get("required", ()))
    properties = sorted(schema["properties"].items(), key=lambda p: p[0] not in required)  # those with a default come last
    renamed = {_identifier(p): p for p, _ in properties}

    def method(self: Any, /, **arguments: Any) -> str:
        return call(self, name, {renamed.get(k, k): v for k, v in arguments.items()})

    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    lines = []
    for p, s in properties:
        kind = _annotation(s)
        default = inspect.Parameter.empty if p in required else None
        parameters.append(
            inspect.Parameter(_identifier(p), inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=kind)
        )
        lines.append(f"    {_identifier(p)}: {_describe(s)}")
    method.__name__ = name
    method.__qualname__ = f"Environment.{name}"
    method.__doc__ = description + ("\n\nArgs:\n" + "\n".join(lines) if lines else "")
    method.__annotations__ = {q.name: q.annotation for q in parameters[1:]} | {"return": str}
    method.__signature__ = inspect.Signature(parameters, return_annotation=str)  # type: ignore[attr-defined]
    return method


def _identifier(parameter: str) -> str:
    if not _NAME.match(parameter):
        raise BadInputError(f"parameter {parameter!r} of a tool cannot be a Python parameter: it must be an identifier")
    return parameter + "_" if keyword.iskeyword(parameter) else parameter


def _annotation(schema: Mapping[str, Any]) -> Any:
    if "enum" in schema:
        return Literal[tuple(schema["enum"])]
    kind = schema.get("type", "string")
    if kind == "array":
        return list[_annotation(schema.get("items", {}))]  # type: ignore[misc]
    return _TYPES.get(kind, str)


def _describe(schema: Mapping[str, Any]) -> str:
    """A parameter's description with what its annotation cannot say."""
    text = " ".join(str(schema.get("description") or "see the tool's description").split())
    bounds = [f"{word} {schema[key]}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in schema]
    if "maxItems" in schema:
        bounds.append(f"at most {schema['maxItems']} of them")
    return f"{text} ({', '.join(bounds)})" if bounds else text
