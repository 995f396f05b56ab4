"""A person's way into a sandbox."""

import shutil
from pathlib import Path

from deskfork.core.atomic import write_atomic
from deskfork.core.errors import ConfigError
from deskfork.sandbox.live import SandboxRecord, sandboxes_dir


def shell_command(cache_dir: Path, record: SandboxRecord) -> list[str]:
    """Return the ssh command that opens a shell in a sandbox; its host key is checked.

    Raises:
        ConfigError: There is no ssh client, or the sandbox is still starting.
    """
    if shutil.which("ssh") is None:
        raise ConfigError("ssh is not installed (Debian package: openssh-client)")
    address = record.endpoints.get("ssh")
    if address is None or record.private_key is None:
        raise ConfigError(f"sandbox {record.id} is still starting: try again in a second")
    known = sandboxes_dir(cache_dir) / record.id / "known-hosts"
    write_atomic(known, f"[{address.host}]:{address.port} {record.ssh_host_key}\n", mode=0o600)
    options = [f"UserKnownHostsFile={known}", "StrictHostKeyChecking=yes", "IdentitiesOnly=yes", "LogLevel=ERROR"]
    flags = [word for option in options for word in ("-o", option)]
    return ["ssh", "-F", "none", *flags, "-i", str(record.private_key), "-p", str(address.port), f"user@{address.host}"]
