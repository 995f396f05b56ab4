"""Text that came from models, scripts and guests, made fit for files and conversations."""


def clip(text: str, limit: int) -> str:
    """Shorten `text` to about `limit` characters, keeping its head and its tail."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def encodable(text: str) -> str:
    """Replace lone surrogates, which JSON may hold but UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode()


def one_line(text: str, limit: int) -> str:
    """Make one line of a guest's text: white space and control characters are blanks, and it ends after `limit`."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * limit]).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
