"""The two pages: the dashboard and the API documentation. Each is one self-contained document.

The content security policy allows scripts and styles by their hashes, and requests to the page's own service only.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from dataclasses import dataclass
from importlib import resources
from typing import Any

PAGE_HEADERS = [(b"referrer-policy", b"no-referrer"), (b"x-frame-options", b"DENY")]


@dataclass(frozen=True)
class Page:
    """A page and its content security policy."""

    html: str
    policy: str


def _asset(name: str) -> str:
    return (resources.files("gainful.serve") / "assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _page(title: str, body: str, script: str) -> Page:
    style = _asset("page.css")
    scripts = f"script-src {_hash(script)}; connect-src 'self'; " if script else ""
    policy = (
        f"default-src 'none'; {scripts}style-src {_hash(style)}; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    text = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="gainful">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
{body}{f"<script>{script}</script>" if script else ""}
</body>
</html>
"""
    return Page(text, policy)


def dashboard() -> Page:
    """The page at /."""
    return _page("gainful", _asset("dashboard.html"), _asset("dashboard.js"))


# ---------------------------------------------------------------------- the API documentation


def documentation(description: dict[str, Any]) -> Page:
    """The page at /docs: every operation, with its parameters, request bodies and responses."""
    schemas = description["components"]["schemas"]
    parts, links = [], []
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            name = operation["operationId"]
            links.append(f'<a href="#{name}">{_e(operation["summary"].split(".")[0].split(":")[0])}</a>')
            parts.append(_operation(path, method, operation, schemas))
    models = "".join(_model(name, schema) for name, schema in sorted(schemas.items()))
    body = f"""<div class="top"><nav aria-label="Pages"><a href="/">Dashboard</a>
<a href="/openapi.json">openapi.json</a></nav></div>
<main><header><h1>{_e(description["info"]["title"])} <small>{_e(description["info"]["version"])}</small></h1>
<p class="lead">{_prose(description["info"]["description"])}</p></header>
<nav class="list" aria-label="Operations">{"".join(links)}</nav>
{"".join(parts)}
<section><h2>Request and response bodies</h2>{models}</section></main>
"""
    return _page("gainful: API documentation", body, "")


def _e(text: Any) -> str:
    return html.escape(str(text), quote=True)


def _prose(text: Any) -> str:
    """Text whose `words in backticks` are code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", _e(text))


def _operation(path: str, method: str, operation: dict[str, Any], schemas: dict[str, Any]) -> str:
    rows = "".join(
        f'<tr><th class="word"><code>{_e(p["name"])}</code></th><td class="word">{_e(p["in"])}, '
        f'{_type(p["schema"])}</td><td class="word">{_prose(p["description"])}</td></tr>'
        for p in operation.get("parameters", [])
    )
    body = ""
    if "requestBody" in operation:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        options = schema.get("anyOf", [schema])
        body = f"<h3>Request body</h3><p>{' or '.join(_type(option) for option in options)}</p>"
        for option in options:
            for example in schemas[_name(option)].get("examples", []):
                body += f"<pre>{_e(json.dumps(example, indent=2))}</pre>"
    answers = ""
    for status, response in operation["responses"].items():
        for media, content in response["content"].items():
            answers += (
                f'<tr><th class="word">{_e(status)}</th><td class="word">{_type(content["schema"])} '
                f'<span class="soft">{_e(media)}</span></td>'
                f'<td class="word">{_prose(response["description"])}</td></tr>'
            )
    return (
        f'<section id="{_e(operation["operationId"])}"><h2><span class="method">{_e(method.upper())}</span> '
        f"<code>{_e(path)}</code></h2><p>{_prose(operation['summary'])}.</p>"
        + (f'<div class="box"><table><tbody>{rows}</tbody></table></div>' if rows else "")
        + body
        + f'<h3>Responses</h3><div class="box"><table><tbody>{answers}</tbody></table></div></section>'
    )


def _name(schema: dict[str, Any]) -> str:
    return str(schema.get("$ref", "")).rsplit("/", 1)[-1]


def _type(schema: dict[str, Any]) -> str:
    """The type that a schema describes, in a few words."""
    if "$ref" in schema:
        return f'<a href="#model-{_e(_name(schema))}">{_e(_name(schema))}</a>'
    if "anyOf" in schema:
        return " or ".join(_type(option) for option in schema["anyOf"])
    kind = str(schema.get("type", "anything"))
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    least, most = schema.get("minimum", schema.get("exclusiveMinimum")), schema.get("maximum")
    bounds = f" {least if least is not None else '…'} to {most if most is not None else '…'}"
    pattern = f" <code>{_e(schema['pattern'])}</code>" if "pattern" in schema else ""
    return _e(kind) + (_e(bounds) if least is not None or most is not None else "") + pattern


def _model(name: str, schema: dict[str, Any]) -> str:
    required = schema.get("required", [])
    rows = "".join(
        f'<tr><th class="word"><code>{_e(key)}</code></th><td class="word">{_type(value)}'
        f"{'' if key in required else ' (optional)'}</td>"
        f'<td class="word">{_prose(value.get("description", ""))}</td></tr>'
        for key, value in schema.get("properties", {}).items()
    )
    return (
        f'<h3 id="model-{_e(name)}">{_e(name)}</h3><p class="soft">{_prose(schema.get("description", ""))}</p>'
        f'<div class="box"><table><tbody>{rows}</tbody></table></div>'
    )
