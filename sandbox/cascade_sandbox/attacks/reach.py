"""Programs that reach beyond themselves."""

from __future__ import annotations

from cascade_sandbox.attacks.attack import TRY, Attack

ATTACKS = (
    Attack(
        "supervisor",
        "signals",
        TRY
        + """
import signal
for n in (0, signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL):
  for p in others: attempt(f'signal {n} to {p}', lambda: os.kill(p, n))
try: os.kill(-1, signal.SIGKILL)
except OSError: pass
""",
        harmful=True,
    ),
    Attack(
        "supervisor",
        "memory",
        TRY
        + """
import ctypes
libc = ctypes.CDLL(None)
for p in others:
  for name in ('mem', 'environ', 'maps', 'fd/0', 'auxv', 'stack'): attempt(f'read {p} {name}', lambda: open(f'/proc/{p}/{name}', 'rb').read(1))
  attempt(f'descriptors of {p}', lambda: os.listdir(f'/proc/{p}/fd'))
  if libc.ptrace(16, p, 0, 0) == 0 or libc.ptrace(0x4206, p, 0, 0) == 0: print('BREACH traced', p)
""",
        harmful=True,
    ),
    Attack(
        "supervisor",
        "limits",
        TRY
        + """
import resource
for p in others:
  attempt(f'limit {p}', lambda: resource.prlimit(p, resource.RLIMIT_NOFILE, (3, 3)))
  attempt(f'priority {p}', lambda: os.setpriority(os.PRIO_PROCESS, p, 19))
  attempt(f'cores {p}', lambda: os.sched_setaffinity(p, {0}))
  attempt(f'oom {p}', lambda: open(f'/proc/{p}/oom_score_adj', 'w').write('1000'))
""",
        harmful=True,
    ),
    Attack(
        "supervisor",
        "sockets",
        TRY
        + r"""
import socket
for line in open('/proc/net/unix').read().splitlines()[1:] + ['/socket/s', '/socket/k', '/run/docker.sock', '/var/run/docker.sock']:
  path = line.split()[-1]
  if path[0] in '/@':
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
      attempt(path, lambda: socket.socket(socket.AF_UNIX, kind).connect(path.replace('@', '\0', 1)))
""",
        harmful=True,
    ),
    Attack(
        "network",
        "addresses",
        TRY
        + """
import socket
for address in ('1.1.1.1', '10.0.0.1', '172.17.0.1', '192.168.0.1', '169.254.169.254'): attempt(address, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect((address, 53)))
attempt('ipv6', lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).connect(('2606:4700::1', 53)))
for line in open('/proc/net/dev').read().splitlines()[2:]:
  if line.split(':')[0].strip() != 'lo': print('BREACH', line.split(':')[0].strip())
""",
        ("ok",),
    ),
    Attack(
        "privileges",
        "who",
        """
import os
status = dict(line.split(':', 1) for line in open('/proc/self/status').read().splitlines())
if 0 in (*os.getresuid(), *os.getresgid(), *os.getgroups()): print('BREACH root')
if any(int(status[name], 16) for name in ('CapEff', 'CapPrm', 'CapInh', 'CapAmb')): print('BREACH capabilities')
if status['NoNewPrivs'].strip() != '1': print('BREACH may gain privileges')
""",
        ("ok",),
    ),
    Attack(
        "privileges",
        "become",
        TRY
        + """
uid = os.getuid()
if uid:
  for other in (0, uid - 1, uid + 1):
    attempt('uid', lambda: os.setresuid(other, other, other)); attempt('gid', lambda: os.setresgid(other, other, other))
  attempt('groups', lambda: os.setgroups([0])); attempt('device', lambda: os.mknod('MARK', 0o20660, os.makedev(1, 3)))
""",
        ("ok",),
    ),
    Attack(
        "kernel",
        "system calls",
        """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
if os.uname().machine == 'x86_64':
  for name, number in dict(ptrace=101, unshare=272, mount=165, chroot=161, pivot_root=155, setns=308, add_key=248, keyctl=250, bpf=321, perf_event_open=298, userfaultfd=323, io_uring_setup=425, process_vm_readv=310, process_vm_writev=311, kexec_load=246, init_module=175, open_by_handle_at=304, clone3=435, personality=135, shmget=29, mq_open=240, move_mount=429, fsopen=430, pidfd_getfd=438).items():
    ctypes.set_errno(0)
    if libc.syscall(number, 0, 0, 0, 0, 0, 0) >= 0 or ctypes.get_errno() not in (1, 38): print('BREACH', name)
""",
        ("ok",),
    ),
    Attack(
        "kernel",
        "namespaces",
        """
import ctypes, os
libc = ctypes.CDLL(None)
for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
  if libc.unshare(flag) == 0: print('BREACH', hex(flag))
""",
        ("ok",),
    ),
)
