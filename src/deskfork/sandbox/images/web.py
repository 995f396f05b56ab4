"""What the guest's replay of the web (deskfork_guest/web.py) has recorded: NLTK's index and its list of stop words.

`nltk.download('stopwords')` fetches both at run time, and tasks of early 2024 expect the list of that time. It comes
from a Python package that carries it as it was, pinned by its hash. The lists are PostgreSQL's, which is free software.
"""

import hashlib
import io
import zipfile
from pathlib import Path
from xml.etree import ElementTree

from deskfork.core.errors import InfraError

NLTK_DATA = "raw.githubusercontent.com/nltk/nltk_data/gh-pages"
"""Below this address nltk's downloader finds its index and its packages."""
_CARRIED = "llama_index/core/_static/nltk_cache/corpora/stopwords/"
_TIME = (2024, 2, 1, 0, 0, 0)


def record_nltk(wheel: Path, root: Path) -> None:
    """Write what nltk's downloader finds on the web, as far as stop words go, below `root`.

    Args:
        wheel: The package that carries the lists.
        root: A folder with one folder for each host.

    Raises:
        InfraError: The wheel does not carry them.
    """
    try:
        with zipfile.ZipFile(wheel) as carrier:
            names = sorted(name for name in carrier.namelist() if name.startswith(_CARRIED) and not name.endswith("/"))
            lists = {name.removeprefix(_CARRIED): carrier.read(name) for name in names}
    except (OSError, zipfile.BadZipFile) as exc:
        raise InfraError(f"{wheel}: {exc}") from exc
    if "english" not in lists:
        raise InfraError(f"{wheel}: there is no {_CARRIED}english in it")
    archive = _zipped(lists)
    packages = root / NLTK_DATA / "packages/corpora"
    packages.mkdir(parents=True)
    (packages / "stopwords.zip").write_bytes(archive)
    (root / NLTK_DATA / "index.xml").write_bytes(_index(archive, sum(map(len, lists.values()))))


def _zipped(lists: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("", *lists):
            entry = zipfile.ZipInfo(f"stopwords/{name}", _TIME)
            entry.external_attr = (0o40755 << 16 | 0x10) if not name else 0o100644 << 16
            archive.writestr(entry, lists.get(name, b""), zipfile.ZIP_DEFLATED if name else zipfile.ZIP_STORED)
    return packed.getvalue()


def _index(archive: bytes, unzipped_bytes: int) -> bytes:
    index = ElementTree.Element("nltk_data")
    packages = ElementTree.SubElement(index, "packages")
    ElementTree.SubElement(
        packages,
        "package",
        id="stopwords",
        name="Stopwords Corpus",
        subdir="corpora",
        unzip="1",
        size=str(len(archive)),
        unzipped_size=str(unzipped_bytes),
        checksum=hashlib.md5(archive, usedforsecurity=False).hexdigest(),
        sha256_checksum=hashlib.sha256(archive).hexdigest(),
        url=f"https://{NLTK_DATA}/packages/corpora/stopwords.zip",
    )
    ElementTree.SubElement(index, "collections")
    content: bytes = ElementTree.tostring(index, encoding="utf-8", xml_declaration=True)
    return content
