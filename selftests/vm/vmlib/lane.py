# SPDX-License-Identifier: GPL-2.0
"""What a lane consists of, and the initramfs that boots it."""

import gzip
import hashlib
import lzma
import os
import shlex
import stat
import struct
import subprocess
import tempfile
import zlib
from pathlib import Path

from . import Trouble

VM_DIR = Path(__file__).resolve().parent.parent
REPO = VM_DIR.parent.parent

# In load order; what the kernel has built in is not in its modules.dep.
GUEST_MODULES = ("virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay")

PT_NOTE = 4
PVH_NOTE = 18


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

    def brumm_ko(self, quota=True):
        """The module under test, with accounting or without."""
        folder = self.release if quota else self.release + "-noquota"
        path = REPO / "build" / folder / "brumm.ko"
        if not path.is_file():
            variant = "" if quota else "QUOTA=0 "
            raise Trouble(f"{path} is missing; run: make LANE={self.name} "
                          f"{variant}module")
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

    def kernel(self):
        """The kernel for QEMU: the ELF file out of vmlinuz, which boots through
        its PVH entry in half of the time, because nothing has to be unpacked
        under emulation; vmlinuz itself where that does not work."""
        packed = self.vmlinuz.read_bytes()
        target = self._cached("kernel", hashlib.sha256(packed), ".elf")
        if not target.is_file():
            elf = unpack_kernel(packed)
            if not has_pvh_entry(elf):
                return self.vmlinuz
            self._keep(target, elf)
        return target

    def _cached(self, kind, digest, suffix):
        return cache_dir() / "vm" / f"{self.name}-{kind}-{digest.hexdigest()[:16]}{suffix}"

    def _keep(self, target, data):
        """Store, and drop what an earlier kernel or init left."""
        store(target, data)
        head, _, tail = target.name.rpartition("-")
        pattern = f"{head}-{'?' * 16}{Path(tail).suffix}"
        for old in target.parent.glob(pattern):
            if old != target:
                old.unlink(missing_ok=True)

    def initramfs(self):
        """(bytes of the per-lane archive, paths in it to load in order)."""
        files = self._module_files()
        init_src = VM_DIR / "init.c"
        digest = hashlib.sha256(Path(__file__).read_bytes())
        for path in [init_src, *files]:
            digest.update(path.read_bytes())
        load = [f"/brumm/{p.name.split('.ko')[0]}.ko" for p in files]
        target = self._cached("initramfs", digest, ".cpio")
        try:
            return target.read_bytes(), load
        except FileNotFoundError:
            pass
        entries = [("/dev/console", stat.S_IFCHR | 0o600, b"", (5, 1)),
                   ("/init", stat.S_IFREG | 0o755, compile_init(init_src), None)]
        entries += [(to, stat.S_IFREG | 0o644, expand(path), None)
                    for to, path in zip(load, files)]
        data = cpio(entries)
        self._keep(target, data)
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


def unpack_kernel(image):
    """The payload of a bzImage (Documentation/arch/x86/boot.rst), b"" if unknown."""
    if image[0x202:0x206] != b"HdrS":
        return b""
    setup_sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    data = image[(setup_sectors + 1) * 512 + offset:][:length]
    try:
        if data.startswith(b"\xfd7zXZ"):
            return lzma.LZMADecompressor().decompress(data)
        if data.startswith(b"\x1f\x8b"):
            return zlib.decompressobj(31).decompress(data)
        for magic, tool in ((b"\x28\xb5\x2f\xfd", "zstd"), (b"\x02\x21\x4c\x18", "lz4")):
            if data.startswith(magic):
                # The last four bytes are the size, which is not of the format.
                return subprocess.run([tool, "-dcq"], input=data[:-4], check=False,
                                      stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL).stdout
    except (lzma.LZMAError, zlib.error, FileNotFoundError):
        pass
    return b""


def has_pvh_entry(elf):
    """Whether a note tells QEMU where to enter (XEN_ELFNOTE_PHYS32_ENTRY)."""
    if not elf.startswith(b"\x7fELF\x02"):
        return False
    phoff, = struct.unpack_from("<Q", elf, 32)
    phsize, count = struct.unpack_from("<HH", elf, 54)
    for at in range(phoff, phoff + count * phsize, phsize):
        kind, _, offset, _, _, size = struct.unpack_from("<IIQQQQ", elf, at)
        end = offset + size
        while kind == PT_NOTE and offset + 12 <= end:
            namesz, descsz, note = struct.unpack_from("<III", elf, offset)
            if note == PVH_NOTE and elf[offset + 12:offset + 15] == b"Xen":
                return True
            offset += 12 + (namesz + 3 & ~3) + (descsz + 3 & ~3)
    return False


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
