"""Guards what `run view` says of what cannot be had; that it serves and ends is tested in a browser."""

import socket
from pathlib import Path

import pytest

from deskfork.cli.main import main
from viewed_runs import make_run


def exit_code(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["run", "view", *map(str, arguments)])
    return int(ended.value.code or 0)


def test_a_folder_that_is_no_run_is_a_wrong_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(tmp_path) == 2
    assert "is no run directory" in capsys.readouterr().err


def test_a_taken_port_is_a_wrong_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "run")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert exit_code(run.root, "--port", str(port)) == 2
    said = capsys.readouterr()
    assert f"port {port} of 127.0.0.1 cannot be had" in said.err
    assert said.out == ""


def test_a_port_that_is_none_is_a_wrong_request(tmp_path: Path) -> None:
    assert exit_code(make_run(tmp_path / "run").root, "--port", "70000") == 2
