"""The page itself: templates that escape whatever they are given, and a policy that lets nothing out."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from typing import TYPE_CHECKING, Any

from wisecrowd.errors import MissingExtra
from wisecrowd.report.classes import STEPS
from wisecrowd.utils.text import format_number, format_percent

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def _templates() -> Environment:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise MissingExtra("report", "reports") from None
    made = Environment(
        loader=PackageLoader("wisecrowd.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": format_number, "percent": format_percent}
    made.globals["steps"] = STEPS
    return made


def check_extra() -> None:
    """Refuse before the work begins rather than after it, where templates cannot be read."""
    _templates()


def page(content: dict[str, Any], data: dict[str, Any]) -> str:
    """The whole page, in one file that asks for nothing else; images, if it has any, are within it."""
    from markupsafe import Markup

    pixels = "img-src data:; " if content["tasks"]["with_image"] else ""
    script = rendered("script.js")
    return styled(
        "page.html",
        **content,
        # Both are ours, whole files without data, and allowed by their digest: whatever else got in would not run.
        script=Markup(script),
        policy=f"default-src 'none'; script-src {digest(script)}; style-src {digest(style())}; {pixels}"
        "base-uri 'none'; form-action 'none'",
        data=Markup(_json(data)),
    )


def style() -> str:
    """The style sheet, which pages carry within them."""
    return rendered("style.css")


def rendered(template: str, **content: Any) -> str:
    """A template with its content, all of which is escaped."""
    return _templates().get_template(template).render(**content)


def styled(template: str, **content: Any) -> str:
    """The same for a page that has the style sheet within it."""
    from markupsafe import Markup

    return rendered(template, style=Markup(style()), **content)


def digest(text: str) -> str:
    """By which a policy lets a script or a style of ours in, and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _json(data: Any) -> str:
    """JSON that cannot end the element it stands in, nor be taken for anything but ASCII."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
