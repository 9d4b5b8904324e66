"""Docstrings are written to be read as they stand; here they become reStructuredText.

- An indented block in running text is shown as it stands: it is a formula.
- Lines "name : what it is" become a list.
- Bars, stars and a trailing underscore are themselves: ``|f|^2``, ``C_``.
"""

import re

# `code`, ``code``, or a character that reStructuredText would take for markup.
PIECES = re.compile(r"``.+?``|(?<!`):\w+:`[^`]+`|`[^`]+`|[|*]|\b\w+_\b(?!\w)")
NAMED = re.compile(r"([A-Za-z]\w*(?:, [A-Za-z]\w*)*) : (.*)")
LISTED = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns")
FREE = ("Notes", "References", "Examples", "See Also")


def escaped(line):
    """Markup outside code made plain text."""

    def plain(match):
        piece = match[0]
        if piece in "|*":
            return "\\" + piece
        return piece if "`" in piece else piece[:-1] + "\\_"

    return PIECES.sub(plain, line)


def sections(lines):
    """(line, name of its section) for every line; the text before is section ''."""
    name = ""
    for number, line in enumerate(lines):
        rule = lines[number + 1] if number + 1 < len(lines) else ""
        if line.strip() in (*LISTED, *FREE) and set(rule.strip()) == {"-"}:
            name = line.strip()
        yield line, name


def readable(lines):
    """The docstring with its indented blocks literal and all else escaped."""
    result = []
    literal = None  # indentation of the text around the literal block we are in
    item = False  # whether the last paragraph is a list's
    for line, section in sections(lines):
        indent = len(line) - len(line.lstrip())
        text = line.strip()
        if literal is not None and text and indent <= literal:
            literal = None
        if literal is not None or not text:
            result.append(line)
            continue
        free = section not in LISTED and section != "Examples"
        after_blank = result and not result[-1].strip()
        if free and after_blank and indent >= 4 and not item:
            literal = 0
            result += ["::", "", line]
            continue
        if after_blank or not result:
            item = text.startswith("- ")
        if text.startswith((">>>", "...")) or section == "Examples":
            result.append(line)
            continue
        if set(text) == {"-"} or text.startswith(".. "):
            result.append(line)
            continue
        result.append(_keep_names(line, section, indent))
        if text.endswith("::"):
            literal = indent
    return result


def _keep_names(line, section, indent):
    """A line "name : type" keeps its name: numpydoc looks after it."""
    if section in LISTED and indent == 0 and " : " in line:
        name, kind = line.split(" : ", 1)
        return f"{name} : {escaped(kind)}"
    return escaped(line)


def with_lists(lines):
    """Runs of lines "name : what it is", with what hangs below, as lists."""
    result = []
    hanging = False
    for line, section in sections(lines):
        match = NAMED.fullmatch(line) if section not in (*LISTED, "Examples") else None
        if match:
            if not hanging and result and result[-1].strip():
                result.append("")
            result.append(f"- ``{match[1]}``: {match[2]}")
            hanging = True
        elif hanging and line.startswith("    "):
            result.append("  " + line.lstrip())
        else:
            if hanging and line.strip():
                result.append("")
            hanging = False
            result.append(line)
    return result


def process(app, what, name, obj, options, lines):
    lines[:] = readable(with_lists(lines))


def setup(app):
    app.connect("autodoc-process-docstring", process, priority=100)
    return {"parallel_read_safe": True}
