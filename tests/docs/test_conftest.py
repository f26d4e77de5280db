"""Reading of pages and comparison of outputs."""

from __future__ import annotations

from typing import Any

import pytest

PAGE = """
```console
$ wisecrowd methods -k
$ echo two  # a remark
two
$ echo one \\
    two
one two
```

```python
x = 1
print(x)
```

```text
1
```

```python
print(x + 1)
```

Then:

```text
no output
```

```python
>>> print(2)
2
```
"""


def test_steps_have_code_and_output(machinery: Any) -> None:
    assert [tuple(step) for step in machinery.steps(PAGE)] == [
        ("command", "wisecrowd methods -k", ""),
        ("command", "echo two  # a remark", "two\n"),
        ("command", "echo one \\\n    two", "one two\n"),
        ("program", "x = 1\nprint(x)\n", "1\n"),
        ("program", "print(x + 1)\n", None),
    ]


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a 0.04 s, b", "a 1.23 s, b", True),
        ("x  seconds\na     0.10\n\nb  0.20", "x  seconds\na     0.23\n\nb  0.20", True),
        ("x  seconds\na     0.10\n\nb  0.20", "x  seconds\na     0.10\n\nb  0.30", False),
        ("a\n…\nb", "a\nx\ny\nb", True),
        ("a\n…\nb", "a\nb", True),
        ("a 9…\n…\nb", "a 98.1%\nb", True),
        ("a …\n…\nb", "a\nb", True),
        ("a 9…", "a 88.1%", False),
        ("a  b", "a b", True),
        ("a b", "a c", False),
        ("accuracy 85.6%", "accuracy 85.7%", False),
        ("", "something", False),
    ],
)
def test_outputs_match(machinery: Any, shown: str, printed: str, same: bool) -> None:
    assert machinery.outputs_match(shown, printed) is same


def test_wrong_output_fails(machinery: Any, follow: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(machinery, "DOCS", tmp_path)
    for name, output in (("true.md", "3"), ("false.md", "4")):
        (tmp_path / name).write_text(f"```python\nprint(1 + 2)\n```\n\n```text\n{output}\n```\n", encoding="utf-8")
    follow("true.md")
    with pytest.raises(AssertionError, match="print"):
        follow("false.md")
