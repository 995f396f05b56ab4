"""All images that this machine's providers need, by one call."""

from collections.abc import Callable
from pathlib import Path

from deskfork.sandbox.images.image import ImageSummary, build_guest_image, build_qemu_rootfs, list_images
from deskfork.sandbox.images.recipes import recipe_dir
from deskfork.sandbox.images.workshop import Progress
from deskfork.sandbox.providers.docker import DockerLauncher
from deskfork.sandbox.providers.docker_daemon import is_docker_answering


def build_images(cache_dir: Path, on_progress: Callable[[Progress], None], *, mirror: str, is_forced: bool) -> None:
    """Build the guest image and, when Docker's daemon answers, the container image; skip what is there.

    Args:
        cache_dir: deskfork's cache.
        on_progress: Told about every line of output.
        mirror: URL of a Debian mirror.
        is_forced: Whether to build again what is there.

    Raises:
        ConfigError: Not run by root, or the host lacks programs or disk space.
        InfraError: A build failed; running it again goes on from the last stage that was finished.
    """
    build_guest_image(cache_dir, recipe_dir("guest"), on_progress, mirror=mirror, is_forced=is_forced)
    if is_docker_answering():
        build_qemu_rootfs(cache_dir, recipe_dir("qemu"), on_progress, mirror=mirror, is_forced=is_forced)
        on_progress(Progress("qemu", None, f"container image {DockerLauncher(cache_dir, recipe_dir('qemu')).image}"))


def images_in(cache_dir: Path) -> list[ImageSummary]:
    """Return all images in the cache, newest first."""
    return list_images(cache_dir, guest_recipe=recipe_dir("guest"), qemu_recipe=recipe_dir("qemu"))
