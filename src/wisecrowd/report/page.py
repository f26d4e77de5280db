"""Rendering of self-contained HTML pages. Templates escape all data, and a content security policy blocks the rest.

The service builds its status page with `render_page` and `style_policy`.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from typing import TYPE_CHECKING, Any

from wisecrowd.errors import MissingExtra
from wisecrowd.report.heat_maps import COLOUR_STEPS
from wisecrowd.utils.text import format_number, format_percent

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def load_templates() -> Environment:
    """Load the templates.

    Returns
    -------
    jinja2.Environment
        Environment that escapes all values and refuses undefined ones.

    Raises
    ------
    MissingExtra
        If Jinja is not installed.
    """
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise MissingExtra("report", "reports") from None
    environment = Environment(
        loader=PackageLoader("wisecrowd.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": format_number, "percent": format_percent}
    environment.globals["steps"] = COLOUR_STEPS
    return environment


def render_report(content: dict[str, Any], data: dict[str, Any], template: str = "page.html") -> str:
    """Render the report as one file that loads nothing else.

    Parameters
    ----------
    content : dict
        Variables of the template.
    data : dict
        JSON data of the script.
    template : str, default="page.html"
        File name of the template.

    Returns
    -------
    str
        HTML page.
    """
    from markupsafe import Markup

    has_images = content.get("has_images") or content.get("tasks", {}).get("with_image")
    image_policy = "img-src data:; " if has_images else ""
    script = _render("script.js")
    return render_page(
        template,
        **content,
        # The script contains no data and is allowed by its hash; an injected script would not run.
        script=Markup(script),
        policy=f"default-src 'none'; script-src {_hash_source(script)}; {style_policy()}; {image_policy}"
        "base-uri 'none'; form-action 'none'",
        data=Markup(_dump_json(data)),
    )


def render_page(template: str, **content: Any) -> str:
    """Render a page that contains the style sheet.

    Parameters
    ----------
    template : str
        File name of the template.
    **content : Any
        Variables of the template; all of them are escaped.

    Returns
    -------
    str
        HTML page.
    """
    from markupsafe import Markup

    return _render(template, style=Markup(_render("style.css")), **content)


def render_review(**content: Any) -> tuple[str, str]:
    """Render the page on which a person reviews tasks, and the content security policy that goes with it.

    Parameters
    ----------
    **content : Any
        Variables of the template; all of them are escaped. The variable ``data`` becomes JSON for the script.

    Returns
    -------
    html : str
        Page.
    policy : str
        Policy that allows the script and the style sheets of the page, and requests to its own server.
    """
    from markupsafe import Markup

    script, review_style = _render("review.js"), _render("review.css")
    html = render_page(
        "review.html",
        **content | {"data": Markup(_dump_json(content["data"]))},
        script=Markup(script),
        review_style=Markup(review_style),
    )
    policy = (
        f"default-src 'none'; script-src {_hash_source(script)}; {style_policy()} {_hash_source(review_style)}; "
        "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return html, policy


def style_policy() -> str:
    """Return the rule of a content security policy that allows the style sheet and no other.

    Returns
    -------
    str
        Rule.
    """
    return f"style-src {_hash_source(_render('style.css'))}"


def _render(template: str, **content: Any) -> str:
    return load_templates().get_template(template).render(**content)


def _hash_source(text: str) -> str:
    """Return the expression by which a content security policy allows a script or a style sheet."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _dump_json(data: Any) -> str:
    """Return ASCII JSON that cannot end the script element around it."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
