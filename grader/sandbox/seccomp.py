"""A seccomp filter for system calls that no job needs and that could reach outside of a sandbox.

It needs the optional package ``pyseccomp``. Without it, the back-ends say that system calls are not filtered.
"""

from __future__ import annotations

import errno
import functools
import importlib
import json
import socket
import tempfile

_DENIED = (
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "process_madvise",
    "pidfd_getfd",
    "kcmp",
    "keyctl",
    "add_key",
    "request_key",
    "bpf",
    "perf_event_open",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "userfaultfd",
    "unshare",
    "setns",
    "mount",
    "umount2",
    "move_mount",
    "open_tree",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "pivot_root",
    "chroot",
    "open_by_handle_at",
    "name_to_handle_at",
    "kexec_load",
    "kexec_file_load",
    "init_module",
    "finit_module",
    "delete_module",
    "reboot",
    "swapon",
    "swapoff",
    "quotactl",
    "iopl",
    "ioperm",
    "personality",
    "acct",
    "settimeofday",
    "clock_settime",
    "sethostname",
    "setdomainname",
    "syslog",
    "clock_adjtime",
    "lookup_dcookie",
    "nfsservctl",
    "create_module",
    "get_kernel_syms",
    "query_module",
    "sysfs",
    "uselib",
    "ustat",
    "_sysctl",
)
_FAMILIES = ("AF_INET", "AF_INET6", "AF_PACKET", "AF_VSOCK", "AF_ALG", "AF_NETLINK")
_NEW_NAMESPACE = (
    0x00020000,
    0x02000000,
    0x04000000,
    0x08000000,
    0x10000000,
    0x20000000,
    0x40000000,
    0x00000080,
)


def available() -> bool:
    """Whether the filter can be built here."""
    try:
        importlib.import_module("pyseccomp")
    except (ImportError, RuntimeError):  # RuntimeError: the C library is missing
        return False
    return True


@functools.cache
def profile() -> str:
    """The filter as JSON, for a container engine."""
    denied = {"action": "SCMP_ACT_ERRNO", "errnoRet": errno.EPERM}
    rules: list[dict[str, object]] = [
        {"names": list(_DENIED), **denied},
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": errno.ENOSYS},
    ]
    for flag in _NEW_NAMESPACE:
        masked = {"index": 0, "value": flag, "valueTwo": flag, "op": "SCMP_CMP_MASKED_EQ"}
        rules.append({"names": ["clone"], "args": [masked], **denied})
    for family in _FAMILIES:
        equal = {"index": 0, "value": int(getattr(socket, family)), "op": "SCMP_CMP_EQ"}
        rules.append({"names": ["socket"], "args": [equal], **denied})
    return json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": rules})


@functools.cache
def program() -> bytes:
    """The filter as a BPF program, for the kernel."""
    seccomp = importlib.import_module("pyseccomp")
    denied = seccomp.ERRNO(errno.EPERM)
    rules = seccomp.SyscallFilter(seccomp.ALLOW)
    for name in _DENIED:
        try:
            rules.add_rule(denied, name)
        except OSError:  # this machine's library does not know the call
            continue
    # The flags of clone3 are in memory, which a filter cannot read; the C library falls back to clone.
    rules.add_rule(seccomp.ERRNO(errno.ENOSYS), "clone3")
    for flag in _NEW_NAMESPACE:
        rules.add_rule(denied, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, flag, flag))
    for family in _FAMILIES:
        rules.add_rule(denied, "socket", seccomp.Arg(0, seccomp.EQ, getattr(socket, family)))
    with tempfile.TemporaryFile() as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read()
