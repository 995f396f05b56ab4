"""Which files the steps of a trial read and wrote, as far as their code names them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from deskfork.records.trajectory import StepRecord
from deskfork.report.failures.deeds import structured_acts

_TEXT = r"[rbfuRBFU]{0,2}(?:'[^'\n]*'|\"[^\"\n]*\")"
_WORD = r"(?<!\w)[A-Za-z_][\w.]*(?:\[[^\]\n]*\])?"
# A pair of brackets with one empty pair in it at most; written so that nothing can be matched in two ways.
_BRACKETS = r"\([^()\n]*(?:\(\)[^()\n]*)?\)"
_JOINED = (
    rf"(?:(?:Path{_BRACKETS}|Path\.(?:home|cwd)\(\)|{_BRACKETS}|(?<!\w)[A-Za-z_]\w*)(?:\s*/\s*{_TEXT})+"
    rf"|(?:Path)?{_BRACKETS})"
)
_ARG = rf"(?:{_JOINED}|{_TEXT}|{_WORD})"
_MODE = r"(?:mode\s*=\s*)?['\"]([rwaxbt+]+)['\"]"
_ASSIGNED = re.compile(r"^[ \t]*([A-Za-z_]\w*)[ \t]*=[ \t]*([^=\n'\"]*['\"][^\n]*)$", re.MULTILINE)
_OPEN = re.compile(rf"(?:(?<![\w.])|(?<=io\.)|(?<=codecs\.)|(?<=gzip\.))open\(\s*({_ARG})(?:\s*,\s*{_MODE})?")
_METHOD = re.compile(
    rf"({_JOINED}|(?<!\w)[A-Za-z_]\w*)\.(read_text|read_bytes|write_text|write_bytes|open)\(\s*(?:{_MODE})?"
)
_READ = re.compile(
    r"(?:read_(?:csv|json|excel|parquet|pickle|table|feather|hdf|fwf)|loadtxt|genfromtxt|imread|nbformat\.read"
    rf"|Image\.open|np\.load|joblib\.load)\(\s*({_ARG})"
)
_WRITE = re.compile(
    r"\.(?:to_(?:csv|json|excel|parquet|pickle|feather|hdf|stata)|savefig|savetxt|savez|save|imsave|imwrite)"
    rf"\(\s*({_ARG})"
)
_WRITE_SECOND = re.compile(rf"(?:nbformat\.write|joblib\.dump)\(\s*[^,()\n]+,\s*({_ARG})")
_COPY = re.compile(rf"(?:shutil\.(?:copy|copy2|copyfile|move)|os\.(?:rename|replace))\(\s*({_ARG})\s*,\s*({_ARG})")
_WRITEFILE = re.compile(r"^%%(?:writefile|file)[ \t]+(?:-a[ \t]+)?(\S+)[ \t]*\n(.*)\Z", re.DOTALL | re.MULTILINE)
_LITERAL = re.compile(r"'([^'\n]*)'|\"([^\"\n]*)\"")
_LONG = re.compile(r"(\"\"\"|''')(.*?)\1", re.DOTALL)
_SHELL_CELL = re.compile(r"\A\s*%%(?:bash|sh|script\s+\S+)[^\n]*\n(.*)\Z", re.DOTALL)
_SHELL_ROW = re.compile(r"^[ \t]*!(.*)$", re.MULTILINE)
_SHELL_CALL = re.compile(r"^.*\b(?:os\.(?:system|popen)|subprocess\.\w+|Popen|check_output|run)\(.*$", re.MULTILINE)
_PLACE = r"([\w./~+-]+)"
_SHELL_READ = re.compile(rf"\b(?:cat|head|tail|less|more|nl)\s+(?:-\S+\s+(?:\d+\s+)?)*{_PLACE}")
_SHELL_WRITE = re.compile(rf"(?<![0-9&<>=-])>>?\s*(?!&|/dev/){_PLACE}|\btee\s+(?:-a\s+)?{_PLACE}")
_HEREDOC = re.compile(r"<<-?[ \t]*['\"]?(\w+)['\"]?[^\n]*\n(.*?)^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
_COMMAND_ENDS = re.compile(r"[|;&\n]+")
_CHARS = 20_000
"""Of a step's code that is looked at; patterns take longer than the text grows, and a model may write any."""
_WRITING = frozenset("wax+")
_HOMES = ("/home/user/Desktop/", "~/Desktop/", "$HOME/Desktop/", "./")


@dataclass(frozen=True)
class Touched:
    """The files of one step."""

    read: tuple[str, ...] = ()
    """Paths, without the Desktop's; an expression where the code does not say which file it is."""
    written: tuple[str, ...] = ()
    lines: int = 0
    """Of the longest text that was written, as far as it stands in the code."""


class FileWatch:
    """Follows the steps of one trial, in order: a path that one cell names may be used in the next."""

    def __init__(self) -> None:
        self._named: dict[str, str] = {}

    def touched(self, step: StepRecord) -> Touched:
        """Return the files of the next step."""
        if acts := structured_acts(step.code):
            return _merged([self._of_act(act) for act in acts])
        code = (step.code or "")[:_CHARS]
        self._named |= {name: path for name, value in _ASSIGNED.findall(code) if (path := _last_text(value))}
        if not (step.lines.get("file") or step.lines.get("shell")):
            return Touched()
        scripts = _scripts(code) if step.lines.get("shell") else ()
        return _merged([self._of_python(code), *map(_of_shell, scripts)])

    def _of_act(self, act: object) -> Touched:
        given = act if isinstance(act, dict) else {}
        path, name = str(given.get("path", "")), given.get("act")
        if name == "bash":
            return _of_shell(str(given.get("command", ""))[:_CHARS])
        if name == "view":
            return Touched(read=(_plain(path),))
        if name in ("create", "str_replace", "insert"):
            text = str(given.get("new" if name == "str_replace" else "text", ""))
            return Touched(written=(_plain(path),), lines=_rows(text))
        return Touched()

    def _of_python(self, code: str) -> Touched:
        read = [self._path(arg) for arg in _READ.findall(code)]
        written = [self._path(arg) for arg in _WRITE.findall(code)]
        # What is in most cells not there is looked for only where its name is: patterns are slow, and steps many.
        if "nbformat" in code or "joblib" in code:
            written += map(self._path, _WRITE_SECOND.findall(code))
        if "open(" in code:
            for arg, mode in _OPEN.findall(code):
                (written if _writes(mode) else read).append(self._path(arg))
        if "_text(" in code or "_bytes(" in code or ".open(" in code:
            for receiver, method, mode in _METHOD.findall(code):
                (written if method.startswith("write") or _writes(mode) else read).append(self._path(receiver))
        if "shutil." in code or "os." in code:
            for source, target in _COPY.findall(code):
                read.append(self._path(source))
                written.append(self._path(target))
        lines = max((_rows(text) for _, text in _LONG.findall(code)), default=1) if written else 0
        if "%%" in code and (magic := _WRITEFILE.search(code)):
            written.append(_plain(magic[1]))
            lines = max(lines, _rows(magic[2]))
        return Touched(tuple(read), tuple(written), lines)

    def _path(self, expression: str) -> str:
        text = _last_text(expression)
        return _plain(text or self._named.get(expression, "") or expression.strip())


def _scripts(code: str) -> Iterator[str]:
    if cell := _SHELL_CELL.match(code):
        yield cell[1]
    yield from _SHELL_ROW.findall(code)
    for row in _SHELL_CALL.findall(code):
        yield " ".join(one or other for one, other in _LITERAL.findall(row))


def _of_shell(script: str) -> Touched:
    bare = _HEREDOC.sub("", script) if "<<" in script else script
    # What follows the mark on its line, such as the redirection, was cut off with the text.
    heads = "\n".join(row for row in script.split("\n") if "<<" in row)
    written = [path for found in _SHELL_WRITE.findall(f"{bare}\n{heads}") for path in found if path]
    written += _changed(bare)
    lines = max((_rows(text) for _, text in _HEREDOC.findall(script)), default=1) if written else 0
    return Touched(tuple(map(_plain, _SHELL_READ.findall(bare))), tuple(map(_plain, written)), lines)


def _changed(script: str) -> Iterator[str]:
    """Yield what cp, mv and sed -i leave changed: the last word of their commands."""
    for command in _COMMAND_ENDS.split(script):
        words = [word for word in command.split() if ">" not in word]
        if len(words) < 3:
            continue
        in_place = words[0] == "sed" and any(word.startswith("-") and "i" in word for word in words[1:])
        if in_place or words[0] in ("cp", "mv"):
            yield words[-1]


def _merged(parts: list[Touched]) -> Touched:
    return Touched(
        tuple(dict.fromkeys(path for part in parts for path in part.read)),
        tuple(dict.fromkeys(path for part in parts for path in part.written)),
        max((part.lines for part in parts), default=0),
    )


def _last_text(expression: str) -> str:
    """Return the last text of an expression, the file's name where a path is joined; empty when it has none."""
    found = _LITERAL.findall(expression)
    return (found[-1][0] or found[-1][1]) if found else ""


def _writes(mode: str) -> bool:
    return not _WRITING.isdisjoint(mode)


def _plain(path: str) -> str:
    for home in _HOMES:
        path = path.removeprefix(home)
    return path


def _rows(text: str) -> int:
    return text.strip("\n").count("\n") + 1
