"""The commands of a shell script, as far as they can be told without running it."""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_HEREDOC = re.compile(r"<<-?[ \t]*(?P<quote>['\"]?)(?P<end>[\w.-]+)(?P=quote)")
_ASSIGNMENT = re.compile(r"(\w+)\+?=")
_EXPORTS = frozenset({"export", "declare", "typeset", "readonly", "local"})
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ash", "ksh"})
_KEYWORDS = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "{", "}", "coproc"})
# What runs the command that follows: its options that take a word, and how many words of its own come after them.
_WRAPPERS = {
    "sudo": ("-u -g -h -p -C", 0), "env": ("-u -C", 0), "nice": ("-n", 0), "ionice": ("-c -n -p", 0),
    "timeout": ("-k -s", 1), "stdbuf": ("-i -o -e", 0), "xargs": ("-n -I -P -L -s -d -a -E", 0), "exec": ("-a", 0),
    "xvfb-run": ("-n -s -f -e -p -w", 0), "strace": ("-o -e -p -s", 0), "watch": ("-n", 0), "nohup": ("", 0),
    "setsid": ("", 0), "command": ("", 0), "builtin": ("", 0), "dbus-run-session": ("", 0), "time": ("-f -o", 0),
}  # fmt: skip
_DEPTH = 4


@dataclass
class Command:
    """One simple command."""

    words: list[str] = field(default_factory=list)
    """Assignments before it included; quotes removed, variables as they are written."""
    document: str = ""
    """What a here-document gives it to read."""

    def assigned(self) -> list[str]:
        """Return the names of the variables that are set, for it alone or by `export`."""
        argv = self.argv()
        before = self.words[: len(self.words) - len(argv)]
        after = argv[1:] if argv[:1] and argv[0] in _EXPORTS else []
        return [match[1] for word in [*before, *after] if (match := _ASSIGNMENT.match(word))]

    def argv(self) -> list[str]:
        """Return what is run in the end, without assignments, shell keywords, `sudo`, `timeout 5` and the like."""
        words = list(self.words)
        while words:
            name = words[0].rpartition("/")[2]
            if words[0] in _KEYWORDS or _ASSIGNMENT.match(words[0]):
                del words[0]
            elif name in _WRAPPERS and not (name == "command" and words[1:2] and words[1] in ("-v", "-V")):
                del words[0]
                _drop_options(words, *_WRAPPERS[name])
            else:
                break
        return words


def commands(script: str, depth: int = _DEPTH) -> Iterator[Command]:
    """Yield the simple commands of a script, those in `$(...)` and backticks included."""
    reader = _Reader(script)
    reader.read()
    yield from reader.found
    if depth:
        for inner in reader.inner:
            yield from commands(inner, depth - 1)


def runs(command: Command, depth: int = _DEPTH) -> Iterator[Command]:
    """Yield a command, and those of the scripts that it hands to a shell, `eval` or `find`."""
    yield command
    argv = command.argv()
    if not argv or depth <= 0:
        return
    program, arguments = argv[0].rpartition("/")[2], argv[1:]
    scripts: list[str] = []
    if program in _SHELLS:
        scripts = [command.document, *after_option(arguments, "c")]
    elif program == "eval":
        scripts = [" ".join(arguments)]
    elif program == "find":
        for place, word in enumerate(arguments):
            if word in ("-exec", "-execdir", "-ok", "-okdir"):
                yield from runs(Command(arguments[place + 1 :]), depth - 1)
    for script in scripts:
        for inner in commands(script):
            yield from runs(inner, depth - 1)


def after_option(arguments: list[str], letter: str) -> list[str]:
    """Return the word after the first short option that ends in a letter, as in `-c` and `-lc`."""
    for word, following in itertools.pairwise(arguments):
        if not word.startswith("-"):
            break
        if not word.startswith("--") and word.endswith(letter):
            return [following]
    return []


def _drop_options(words: list[str], with_word: str, count: int) -> None:
    while words and words[0].startswith("-") and words[0] != "-":
        if words.pop(0) in with_word.split() and words:
            del words[0]
    del words[:count]


class _Reader:
    """Splits a script at operators and words at spaces, as POSIX shells do."""

    def __init__(self, script: str) -> None:
        self.found: list[Command] = []
        self.inner: list[str] = []
        """Scripts of which the output is put in."""
        self._text = script
        self._at = 0
        self._word: str | None = None
        self._command = Command()
        self._due: list[tuple[Command, str]] = []
        self._skips_word = False

    def read(self) -> None:
        text = self._text
        while self._at < len(text):
            character = text[self._at]
            if character in " \t\r":
                self._end_word()
            elif character in "\n;&|()":
                self._end_command()
                if character == "\n":
                    self._read_documents()
            elif character == "#" and self._word is None:
                self._at = (text + "\n").index("\n", self._at) - 1
            elif character in "<>":
                self._redirect()
            else:
                self._read_quoted(character)
            self._at += 1
        self._end_command()

    def _read_quoted(self, character: str) -> None:
        text = self._text
        if character == "\\":
            self._at += 1
            self._add(text[self._at : self._at + 1].replace("\n", ""))
        elif character == "'":
            self._add(self._until("'"))
        elif character == '"':
            self._add(self._double_quoted())
        elif character == "`":
            self.inner.append(self._until("`"))
            self._add("`")
        elif text.startswith("$(", self._at):
            self.inner.append(self._parenthesised())
            self._add("$()")
        else:
            self._add(character)

    def _add(self, text: str) -> None:
        self._word = (self._word or "") + text

    def _until(self, end: str) -> str:
        start = self._at + 1
        self._at = found if (found := self._text.find(end, start)) >= 0 else len(self._text)
        return self._text[start : self._at]

    def _double_quoted(self) -> str:
        parts = ""
        self._at += 1
        while self._at < len(self._text) and self._text[self._at] != '"':
            if self._text[self._at] == "\\":
                self._at += 1
                parts += self._text[self._at : self._at + 1]
            elif self._text[self._at] == "`":
                self.inner.append(self._until("`"))
            elif self._text.startswith("$(", self._at):
                self.inner.append(self._parenthesised())
            else:
                parts += self._text[self._at]
            self._at += 1
        return parts

    def _parenthesised(self) -> str:
        start, open_ones = self._at + 2, 1
        self._at = start
        while self._at < len(self._text):
            open_ones += {"(": 1, ")": -1}.get(self._text[self._at], 0)
            if not open_ones:
                break
            self._at += 1
        return self._text[start : self._at]

    def _redirect(self) -> None:
        if self._word is not None and self._word.isdigit():
            self._word = None
        self._end_word()
        heredoc = _HEREDOC.match(self._text, self._at)
        if heredoc and not self._text.startswith("<<<", self._at):
            self._due.append((self._command, heredoc["end"]))
            self._at = heredoc.end() - 1
            return
        while self._text[self._at + 1 : self._at + 2] in ("<", ">", "&"):
            self._at += 1
        self._skips_word = True

    def _read_documents(self) -> None:
        for command, end in self._due:
            rows = []
            while self._at < len(self._text):
                start = self._at + 1
                self._at = (self._text + "\n").index("\n", start) if start <= len(self._text) else len(self._text)
                row = self._text[start : self._at]
                if row.strip("\t") == end:
                    break
                rows.append(row)
            command.document = "\n".join(rows)
        self._due.clear()

    def _end_word(self) -> None:
        if self._word is not None and not self._skips_word:
            self._command.words.append(self._word)
        self._skips_word &= self._word is None
        self._word = None

    def _end_command(self) -> None:
        self._end_word()
        self._skips_word = False
        if self._command.words:
            self.found.append(self._command)
        self._command = Command()
