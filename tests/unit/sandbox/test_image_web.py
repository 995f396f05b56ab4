"""Guards what nltk's downloader finds in the guest: an index whose sums are those of the file it names."""

import hashlib
import io
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from deskfork.core.errors import InfraError
from deskfork.sandbox.images.web import NLTK_DATA, record_nltk

PREFIX = "llama_index/core/_static/nltk_cache/corpora/stopwords/"


def wheel(folder: Path, *names: str) -> Path:
    path = folder / "carrier.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, f"{name}\n")
    return path


def test_index_and_archive_belong_together_and_are_the_same_each_time(tmp_path: Path) -> None:
    carrier = wheel(tmp_path, f"{PREFIX}english", f"{PREFIX}README", "llama_index/other.py")
    archives = []
    for root in (tmp_path / "one", tmp_path / "two"):
        record_nltk(carrier, root)
        archives.append((root / NLTK_DATA / "packages/corpora/stopwords.zip").read_bytes())
    assert archives[0] == archives[1]
    [package] = ElementTree.parse(tmp_path / "one" / NLTK_DATA / "index.xml").iter("package")
    assert package.get("sha256_checksum") == hashlib.sha256(archives[0]).hexdigest()
    assert package.get("size") == str(len(archives[0]))
    assert package.get("url") == f"https://{NLTK_DATA}/packages/corpora/stopwords.zip"
    with zipfile.ZipFile(io.BytesIO(archives[0])) as archive:
        assert archive.namelist() == ["stopwords/", "stopwords/README", "stopwords/english"]


def test_a_package_without_the_lists_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match=r"there is no .*english"):
        record_nltk(wheel(tmp_path, "other"), tmp_path / "root")
    (tmp_path / "broken.whl").write_bytes(b"no archive")
    with pytest.raises(InfraError, match=r"broken\.whl"):
        record_nltk(tmp_path / "broken.whl", tmp_path / "root")
