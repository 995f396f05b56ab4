"""A page as a browser takes it in, for tests of what pages hold."""

from html.parser import HTMLParser

_VOID = {"meta", "br", "link", "img", "input", "use", "path", "hr"}


class PageReader(HTMLParser):
    """Reads a page: elements, links, text, and what is fetched to show it; fails when elements do not close in order.

    Attributes:
        elements: Names, in order.
        attributes: Of all elements, in order.
        fetched: What a browser fetches to show the page; references inside of it are none.
        text: All that is not markup.
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.fetched: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == [], "elements are left open"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag != "a":
            sources = [value for name, value in attrs if name in ("src", "href", "xlink:href") and value]
            self.fetched += [value for value in sources if not value.startswith("#")]

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def links(self) -> list[str]:
        return [value for name, value in self.attributes if name == "href"]
