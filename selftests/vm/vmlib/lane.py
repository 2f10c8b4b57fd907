# SPDX-License-Identifier: GPL-2.0
"""What a lane consists of, and the initramfs that boots it."""

import gzip
import hashlib
import lzma
import os
import shlex
import stat
import subprocess
import tempfile
from pathlib import Path

from . import Trouble

VM_DIR = Path(__file__).resolve().parent.parent
REPO = VM_DIR.parent.parent

# In load order; what the kernel has built in is not in its modules.dep.
GUEST_MODULES = ("virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay")


def cache_dir():
    """The project's cache, shared with the kernel build."""
    env = os.environ
    if env.get("BRUMM_CACHE"):
        return Path(env["BRUMM_CACHE"])
    base = env.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "brumm"


class Lane:
    """One kernel of the cache and our module for it."""

    def __init__(self, name):
        self.name = name
        self.dir = cache_dir() / "lanes" / name
        self.vmlinuz = self.dir / "vmlinuz"
        self.modules = self.dir / "modules"
        remedy = f"run: make kernels LANE={shlex.quote(name)}"
        if "/" in name or not self.dir.is_dir():
            have = sorted(p.name for p in self.dir.parent.glob("*") if p.is_dir())
            raise Trouble(f"no lane '{name}' in {self.dir.parent} "
                          f"(there: {' '.join(have) or 'none'}); {remedy}")
        for path in (self.vmlinuz, self.dir / "release"):
            if not path.is_file():
                raise Trouble(f"{path} is missing; {remedy}")
        self.release = (self.dir / "release").read_text().strip()

    @property
    def debug(self):
        """Built by us with every checker on, nothing modular."""
        return self.name.startswith("debug")

    def brumm_ko(self):
        """The module under test."""
        path = REPO / "build" / self.release / "brumm.ko"
        if not path.is_file():
            raise Trouble(f"{path} is missing; run: make LANE={self.name} module")
        return path

    def _module_files(self):
        """Files of GUEST_MODULES and what they need, in load order."""
        dep_file = self.modules / "modules.dep"
        if not dep_file.is_file():
            if self.debug:
                return []
            raise Trouble(f"{dep_file} is missing; run: make kernels "
                          f"LANE={self.name}")
        deps, by_name = {}, {}
        for line in dep_file.read_text().splitlines():
            path, _, rest = line.partition(":")
            deps[path] = rest.split()
            by_name[path.rsplit("/", 1)[-1].split(".ko")[0].replace("-", "_")] = path
        order = []
        for name in GUEST_MODULES:
            path = by_name.get(name)
            if path:
                # modules.dep names the deepest need last.
                for need in [*reversed(deps[path]), path]:
                    if need not in order:
                        order.append(need)
        return [self.modules / path for path in order]

    def initramfs(self):
        """(bytes of the per-lane archive, paths in it to load in order)."""
        files = self._module_files()
        init_src = VM_DIR / "init.c"
        digest = hashlib.sha256(Path(__file__).read_bytes())
        for path in [init_src, *files]:
            digest.update(path.read_bytes())
        load = [f"/brumm/{p.name.split('.ko')[0]}.ko" for p in files]
        folder = cache_dir() / "initramfs"
        target = folder / f"{self.name}-{digest.hexdigest()[:16]}.cpio"
        try:
            return target.read_bytes(), load
        except FileNotFoundError:
            pass
        entries = [("/dev/console", stat.S_IFCHR | 0o600, b"", (5, 1)),
                   ("/init", stat.S_IFREG | 0o755, compile_init(init_src), None)]
        entries += [(to, stat.S_IFREG | 0o644, expand(path), None)
                    for to, path in zip(load, files)]
        data = cpio(entries)
        store(target, data)
        for old in folder.glob(f"{self.name}-{'?' * 16}.cpio"):
            if old != target:
                old.unlink(missing_ok=True)
        return data, load


def store(target, data):
    """Write as a whole or not at all: several runs may do it at once."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        part.write_bytes(data)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def compile_init(source):
    """The guest's PID 1, static: it runs before there is any library."""
    with tempfile.TemporaryDirectory(prefix="brumm-vm.") as folder:
        binary = Path(folder) / "init"
        cmd = [*shlex.split(os.environ.get("HOSTCC", "gcc")), "-std=gnu11", "-Os",
               "-static", "-s", "-Wall", "-Wextra", str(source), "-o", str(binary)]
        try:
            subprocess.run(cmd, check=True, text=True, stderr=subprocess.PIPE)
        except FileNotFoundError as err:
            raise Trouble(f"cannot compile {source}: {err}; install gcc") from err
        except subprocess.CalledProcessError as err:
            raise Trouble(f"cannot compile {source} (it needs a C compiler and "
                          f"the static libc, libc6-dev):\n{err.stderr}") from err
        return binary.read_bytes()


def expand(path):
    """A kernel module without its compression."""
    data = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(data)
    if path.suffix == ".gz":
        return gzip.decompress(data)
    if path.suffix == ".zst":
        return subprocess.run(["zstd", "-dcq"], input=data, check=True,
                              stdout=subprocess.PIPE).stdout
    return data


def cpio(entries):
    """A newc archive of (absolute path, mode, data, device)."""
    out = bytearray()
    folders = sorted({str(parent) for path, *_ in entries
                      for parent in Path(path).parents if str(parent) != "/"})
    full = [(path, stat.S_IFDIR | 0o755, b"", None) for path in folders]
    full += entries
    for ino, (path, mode, data, dev) in enumerate(
            [*full, ("/TRAILER!!!", 0, b"", None)], 1):
        name = path[1:].encode() + b"\0"
        major, minor = dev or (0, 0)
        fields = (ino, mode, 0, 0, 1, 0, len(data), 0, 0, major, minor,
                  len(name), 0)
        out += b"070701" + b"".join(b"%08x" % f for f in fields) + name
        out += bytes(-len(out) % 4)
        out += data
        out += bytes(-len(out) % 4)
    return bytes(out)
