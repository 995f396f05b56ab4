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
