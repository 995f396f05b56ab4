"""Guards judging what an agent with root left: its programs, settings and disk must not reach whoever examines it."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from deskfork.core.errors import GuestFileError, SandboxError
from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.base import GUEST_DESKTOP, GUEST_HOME, Sandbox
from deskfork.sandbox.provider import VmProvider

pytestmark = pytest.mark.vm

SOON_S = 120.0
EVALUATION = b"""
source /home/user/anaconda3/etc/profile.d/conda.sh
conda activate jupyter
jupyter kernelspec list
"""
KERNEL = '{"argv": ["true"], "display_name": "x", "language": "python"}'
LIES = r"""
set -e
env=/home/user/anaconda3/envs/jupyter
printf '#!/bin/sh\necho LIE\n' > /tmp/liar
chmod 755 /tmp/liar
mkdir -p ~/.local/bin ~/.jupyter ~/.ssh ~/notes "$env/share/jupyter/kernels/shared" ~/.local/share/jupyter/kernels/own
for place in ~/.local/bin "$env/bin" ~/anaconda3/bin /usr/local/bin; do
    for name in jupyter jupyter-kernelspec python python3; do
        sudo cp --remove-destination /tmp/liar "$place/$name"
    done
done
echo 'export PATH=~/.local/bin:$PATH; echo LIE' | tee -a ~/.bashrc ~/.profile > ~/.bash_profile
echo "alias jupyter='echo LIE'; jupyter() { echo LIE; }" >> ~/anaconda3/etc/profile.d/conda.sh
echo 'c.KernelSpecManager.allowed_kernelspecs = {"none"}' > ~/.jupyter/jupyter_config.py
echo 'print("LIE")' > ~/jupyter_core.py
printf '%s' 'KERNEL' > ~/.local/share/jupyter/kernels/own/kernel.json
cp ~/.local/share/jupyter/kernels/own/kernel.json "$env/share/jupyter/kernels/shared"
rm -rf "$env/share/jupyter/kernels/python3"
echo 'touch /tmp/ran' > ~/.ssh/rc
: > ~/.ssh/authorized_keys
echo noted > ~/notes/note.txt
ln -s /home/user/notes ~/Desktop/notes
ln -s /etc ~/Desktop/system
echo owned | sudo tee /etc/hostname > /dev/null
sudo mknod -m 666 ~/Desktop/device c 1 3
mkfifo ~/eval.sh
sudo rm -rf /tmp/.X11-unix
ln -s / /tmp/.X11-unix
sudo chattr +i ~/Desktop
""".replace("KERNEL", KERNEL)
BREAK_PROGRAMS = "cp --remove-destination /tmp/liar /bin/sync; cp --remove-destination /tmp/liar /usr/bin/bash"


def text(sandbox: Sandbox, path: PurePosixPath, folder: Path) -> str:
    target = folder / f"got-{path.name}"
    sandbox.get(path, target, timeout_s=SOON_S)
    return target.read_text()


def run(sandbox: Sandbox, script: str, *, as_root: bool = False) -> None:
    done = sandbox.exec(["bash", "-c", script], as_root=as_root, timeout_s=SOON_S)
    assert done.exit_code == 0, done.stderr


@pytest.fixture(scope="module")
def judged(provider: VmProvider) -> Iterator[Sandbox]:
    """What a liar left."""
    with provider.fork("desktop") as sandbox:
        run(sandbox, LIES)
        # The shell that was asked to do it is the last one that works.
        sandbox.exec(["bash", "-c", f"echo done > /home/user/last; {BREAK_PROGRAMS}"], as_root=True, timeout_s=SOON_S)
        state = sandbox.seal(timeout_s=SOON_S)
        assert state.flushed_by == "kernel"
        with provider.examine(state) as examined:
            yield examined


def test_what_is_asked_of_jupyter_is_answered_by_jupyter(judged: Sandbox) -> None:
    judged.put(EVALUATION, GUEST_HOME / "eval.sh", timeout_s=SOON_S)
    done = judged.exec(["/bin/bash", "/home/user/eval.sh"], timeout_s=SOON_S)
    assert (done.exit_code, done.stderr) == (0, "")
    listed = [line.split()[0] for line in done.stdout.splitlines()[1:]]
    # Where no kernel of that name is registered, Jupyter lists the one that it brings.
    assert sorted(listed) == ["own", "python3", "shared"], done.stdout
    assert "ipykernel/resources" in done.stdout


@pytest.mark.parametrize("as_root", [False, True])
def test_programs_are_the_examiners(judged: Sandbox, as_root: bool) -> None:
    script = "python3 -c 'print(1)'; sync; hostname; cat /etc/hostname; ls /tmp/ran; xdotool getmouselocation"
    done = judged.exec(["bash", "-c", script], as_root=as_root, timeout_s=SOON_S)
    assert done.stdout.split()[:2] == ["1", f"desktop-{judged.facts.id}"]
    assert "LIE" not in done.stdout
    assert "owned" not in done.stdout
    assert "cannot access '/tmp/ran'" in done.stderr
    assert done.stdout.splitlines()[-1].startswith("x:")


def test_links_lead_to_the_agents_home_and_the_examiners_system(judged: Sandbox, tmp_path: Path) -> None:
    assert text(judged, GUEST_DESKTOP / "notes" / "note.txt", tmp_path) == "noted\n"
    assert "owned" not in text(judged, GUEST_DESKTOP / "system" / "hostname", tmp_path)
    assert text(judged, GUEST_HOME / "last", tmp_path) == "done\n", "what was written last was not flushed"
    assert "LIE" in text(judged, GUEST_HOME / "anaconda3/envs/jupyter/bin/jupyter", tmp_path)
    with pytest.raises(GuestFileError, match="neither"):
        judged.get(GUEST_DESKTOP / "device", tmp_path / "device")


@pytest.mark.parametrize(("sysrq", "flushed_by"), [("438", "kernel"), ("0", "nothing")])
def test_a_guest_whose_sshd_is_dead_is_sealed(qemu: VmProvider, tmp_path: Path, sysrq: str, flushed_by: str) -> None:
    script = f"echo early > /home/user/early; sync; echo {sysrq} > /proc/sys/kernel/sysrq; "
    script += "(systemctl stop ssh; pkill -KILL sshd) > /dev/null 2>&1 &"
    with qemu.fork("desktop") as sandbox:
        run(sandbox, script, as_root=True)
        sandbox.run_cell("open('/home/user/late', 'w').write('late')", timeout_s=SOON_S)
        state = sandbox.seal(timeout_s=SOON_S)
        assert state.flushed_by == flushed_by
        with qemu.examine(state) as examined:
            assert text(examined, GUEST_HOME / "early", tmp_path) == "early\n"
            if flushed_by == "kernel":
                assert text(examined, GUEST_HOME / "late", tmp_path) == "late"


def test_a_full_disk_can_be_examined(qemu: VmProvider, tmp_path: Path) -> None:
    # Most blocks are given to a file that is not written: the host's disk does not fill up with it.
    fill = """
    echo kept > ~/answer
    fallocate -l $(($(df --output=avail -B1 / | tail -1) - 30000000)) ~/fill
    ! head -c 60000000 /dev/zero > ~/more
    """
    with qemu.fork("desktop") as sandbox:
        run(sandbox, fill)
        state = sandbox.seal(timeout_s=SOON_S)
        with qemu.examine(state) as examined:
            examined.put(EVALUATION, GUEST_HOME / "eval.sh")
            assert text(examined, GUEST_HOME / "eval.sh", tmp_path) == EVALUATION.decode()
            assert text(examined, GUEST_HOME / "answer", tmp_path) == "kept\n"


def test_a_home_that_is_a_link_is_empty(qemu: VmProvider, tmp_path: Path) -> None:
    with qemu.fork("desktop") as sandbox:
        run(sandbox, "mkdir -p /opt/user/Desktop; echo x > /opt/user/Desktop/answer", as_root=True)
        run(sandbox, "mv /home/user /home/old && ln -s /opt/user /home/user", as_root=True)
        state = sandbox.seal(timeout_s=SOON_S)
        with qemu.examine(state) as examined:
            with pytest.raises(GuestFileError):
                text(examined, GUEST_DESKTOP / "answer", tmp_path)
            examined.put(EVALUATION, GUEST_HOME / "eval.sh")


def test_a_disk_without_a_file_system_is_the_agents_doing(qemu: VmProvider) -> None:
    with qemu.fork("desktop") as sandbox:
        run(sandbox, "dd if=/dev/urandom of=/dev/vda bs=1M count=2 oflag=direct status=none", as_root=True)
        state = sandbox.seal(timeout_s=SOON_S)
        with pytest.raises(GuestFileError, match="no file system that can be mounted"):
            qemu.examine(state)


def test_a_dead_machine_cannot_be_sealed(qemu: VmProvider) -> None:
    with qemu.fork("desktop") as sandbox:
        os.kill(sandbox.qemu_pid, signal.SIGKILL)
        assert wait_until(lambda: not sandbox.is_alive(), Deadline.after(20))
        with pytest.raises(SandboxError, match="gone"):
            sandbox.seal(timeout_s=SOON_S)
