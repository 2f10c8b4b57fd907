# SPDX-License-Identifier: GPL-2.0
"""Starting QEMU: which accelerator, which devices, which channels."""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from . import Trouble
from .lane import cache_dir, store

QEMU = os.environ.get("QEMU", "qemu-system-x86_64")
PR_SET_PDEATHSIG = 1
TCG_SINGLE, TCG_MULTI = "tcg,thread=single", "tcg,thread=multi"

# Kernel arguments of every run.
#  panic=-1           with -no-reboot a panic ends QEMU at once
#  oops=panic         nothing that follows an oops can be trusted
#  panic_on_warn=0    let a report come out whole; the scan catches it
#  log_buf_len        the whole log must still be there at the end
KERNEL_ARGS = ("console=ttyS0,115200", "panic=-1", "oops=panic", "panic_on_warn=0",
               "softlockup_panic=1", "hung_task_panic=1", "log_buf_len=8M",
               "random.trust_cpu=on", "rdinit=/init")


def die_with_parent():
    """Runs in the child: a killed runner must not leave its QEMU behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # Ctrl-C is the runner's to handle.
    os.setpgid(0, 0)


def find_qemu():
    if not shutil.which(QEMU):
        raise Trouble(f"{QEMU} is not installed; install qemu-system-x86")


def probe_rom():
    """A 64 KiB BIOS that leaves through isa-debug-exit with code 0x21."""
    code = bytes((0xB0, 0x10, 0xE6, 0xF4, 0xF4))    # mov al,0x10; out 0xf4,al; hlt
    return bytes(0xFFF0) + code.ljust(16, b"\x90")


def runs_a_guest(accel):
    """Whether QEMU with this accelerator really executes instructions."""
    rom = memfd("probe-rom", probe_rom())
    cmd = [QEMU, "-accel", accel, "-machine", "pc", "-m", "16M",
           "-nodefaults", "-no-user-config", "-display", "none",
           "-bios", f"/dev/fd/{rom}",
           "-device", "isa-debug-exit,iobase=0xf4,iosize=0x4"]
    try:
        done = subprocess.run(cmd, pass_fds=(rom,), timeout=10, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
        return done.returncode == (0x10 << 1 | 1)
    except subprocess.TimeoutExpired:
        return False
    finally:
        os.close(rom)


def cpu_virtualises():
    """Whether the CPU has what KVM needs to run an unmodified kernel."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            return not {"vmx", "svm"}.isdisjoint(line.split())
    return False


def kvm_works():
    """Try it, once a boot of the host: /dev/kvm may open and yet be of no use.
    A KVM without vmx or svm passes even the trial, for it emulates real mode, and
    then hangs in the kernel proper; so the CPU has a say too."""
    if not (os.access("/dev/kvm", os.R_OK | os.W_OK) and cpu_virtualises()):
        return False
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    note = cache_dir() / "kvm-probe"
    try:
        seen, verdict = note.read_text().split()
        if seen == boot:
            return verdict == "yes"
    except (FileNotFoundError, ValueError):
        pass
    works = runs_a_guest("kvm")
    store(note, f"{boot} {'yes' if works else 'no'}\n".encode())
    return works


def memfd(name, data=b""):
    """An unnamed file for QEMU to read from or write to: nothing to clean up."""
    fd = os.memfd_create(name, 0)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view):]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


class Channel:
    """An output of the guest, read by position. A file never makes QEMU wait:
    a port that does would make the guest spin with interrupts off."""

    def __init__(self, name, path=None):
        if path:
            self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        else:
            self.fd = memfd(name)
        self.name = name
        self.pos = 0

    def new(self):
        """What came since the last call."""
        parts = []
        while chunk := os.pread(self.fd, 1 << 20, self.pos):
            self.pos += len(chunk)
            parts.append(chunk)
        return b"".join(parts)

    def all(self):
        """Everything so far, as text."""
        size = os.fstat(self.fd).st_size
        return os.pread(self.fd, size, 0).decode(errors="replace")

    def chardev(self):
        """The option that connects it."""
        return ["-chardev", f"file,id={self.name},path=/dev/fd/{self.fd},append=on"]


class Machine:
    """One QEMU process."""

    def __init__(self, lane, opts, initrd):
        find_qemu()
        self.accel = self._choose_accel(opts)
        self.channels = {name: Channel(name) for name in
                         ("result", "stdout", "stderr", "log")}
        self.channels["console"] = Channel("console", opts.console)
        self.messages = Channel("qemu-messages")
        self.control, self.control_end = socket.socketpair()
        self.initrd = memfd("initrd", initrd)
        self.cmd = self._command(lane, opts)
        self.proc = None

    @staticmethod
    def _choose_accel(opts):
        if opts.icount:
            return TCG_SINGLE
        if opts.accel == "kvm" and not kvm_works():
            raise Trouble("KVM does not run a guest here; leave out --accel kvm")
        if opts.accel == "kvm" or (opts.accel == "auto" and kvm_works()):
            return "kvm"
        return TCG_SINGLE if opts.accel == "tcg-single" else TCG_MULTI

    def _command(self, lane, opts):
        cmd = [QEMU, "-no-user-config", "-nodefaults", "-display", "none",
               "-no-reboot", "-machine", "q35", "-accel", self.accel,
               "-cpu", opts.cpu, "-smp", str(opts.smp), "-m", opts.mem,
               "-kernel", str(lane.kernel()), "-initrd", f"/dev/fd/{self.initrd}",
               "-append", " ".join(kernel_args(lane, opts, self.accel))]
        if opts.icount:
            cmd += ["-icount", "shift=0,sleep=off"]
        for channel in self.channels.values():
            cmd += channel.chardev()
        # ioeventfd=off: the host takes output before the guest goes on, so that
        # the guest never spins waiting for it (and --icount counts the same).
        cmd += ["-serial", "chardev:console", "-serial", "chardev:result",
                "-device", "virtio-serial-pci,ioeventfd=off"]
        for name in ("stdout", "stderr", "log"):
            cmd += ["-device", f"virtserialport,chardev={name},name=brumm.{name}"]
        cmd += ["-chardev", f"socket,id=control,fd={self.control_end.fileno()}",
                "-device", "virtserialport,chardev=control,name=brumm.control"]
        cmd += self._share("root", "/", "passthrough,readonly=on")
        cmd += self._share("out", opts.out, "none")
        return cmd

    @staticmethod
    def _share(name, path, model):
        path = str(path).replace(",", ",,")
        return ["-fsdev", f"local,id={name},path={path},security_model={model},"
                          "multidevs=remap",
                "-device", f"virtio-9p-pci,fsdev={name},mount_tag=brumm-{name}"]

    def start(self):
        fds = [c.fd for c in self.channels.values()] + [self.initrd]
        fds.append(self.control_end.fileno())
        self.proc = subprocess.Popen(
            self.cmd, stdin=subprocess.DEVNULL, stdout=self.messages.fd,
            stderr=self.messages.fd, pass_fds=fds, preexec_fn=die_with_parent)

    def ask_for_dump(self, seconds):
        """Have a guest that is late log what it is stuck in."""
        try:
            self.control.send(b"!")
        except OSError:
            return
        end = time.monotonic() + seconds
        while ("dumped" not in self.channels["result"].all()
               and time.monotonic() < end and not self.wait(0.1)):
            pass

    def wait(self, seconds):
        """True when QEMU has gone within that time."""
        try:
            self.proc.wait(seconds)
            return True
        except subprocess.TimeoutExpired:
            return False

    def stop(self):
        """End the process we started, and only that."""
        if self.proc and self.proc.poll() is None:
            self.proc.terminate()
            if not self.wait(2):
                self.proc.kill()
                self.proc.wait()


def kernel_args(lane, opts, accel):
    """The kernel command line of a run."""
    args = list(KERNEL_ARGS)
    if not opts.verbose:
        args.append("quiet")
    if lane.debug:
        # It costs half of the boot and 15 s a scan under emulation.
        args.append("kmemleak=on" if opts.kmemleak else "kmemleak=off")
    if accel.startswith("tcg"):
        # All emulated CPUs read one counter; the kernel cannot know, and would
        # take the HPET, a device access a look at the clock.
        args.append("tsc=reliable")
        # On a busy host no tick may come while the kernel waits for one to prove
        # the timer's wiring, and it panics.
        args.append("no_timer_check")
        # There a CPU may also get nothing done for as long as the kernel's stall
        # detectors wait by default (20 s).
        args += ["watchdog_thresh=30", "rcupdate.rcu_cpu_stall_timeout=60"]
    if accel == TCG_MULTI:
        # Booting patches the kernel's text in many places. A QEMU before 8.1 may
        # keep a translation of the breakpoint that stands there meanwhile, if
        # another CPU is translating the page just then, and that CPU then dies
        # of "Oops: int3". So init brings up the others, after the boot.
        args.append("maxcpus=1")
    if opts.append:
        args.append(opts.append)
    return args
