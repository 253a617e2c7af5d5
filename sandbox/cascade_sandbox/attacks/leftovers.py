"""Programs that leave something for the next one."""

from __future__ import annotations

from cascade_sandbox.attacks.attack import TRY, Attack

ATTACKS = (
    Attack(
        "orphans",
        "daemons",
        """
import os, signal, sys, time
def live():
  for n in range(1, 65):
    try: signal.signal(n, signal.SIG_IGN)
    except (OSError, ValueError): pass
  os.execv(sys.executable, ['MARK', '-c', 'import time; time.sleep(600)'])
if os.fork() == 0:
  os.setsid()
  if os.fork() == 0: live()
  os._exit(0)
if os.fork() == 0: os.setpgid(0, 0); live()
p = os.fork()
if p == 0: live()
time.sleep(0.5); os.kill(p, signal.SIGSTOP)
""",
        ("ok",),
    ),
    Attack(
        "orphans",
        "zombies",
        """
import os
for i in range(300):
  try: p = os.fork()
  except OSError: continue
  if p == 0:
    try: os.fork()
    except OSError: pass
    os._exit(0)
  os.waitpid(p, 0)
""",
        ("ok",),
    ),
    Attack(
        "forks",
        "bomb",
        """
import os
while 1:
  try: os.fork()
  except OSError: pass
""",
        harmful=True,
    ),
    Attack(
        "forks",
        "threads",
        """
import threading, time
while 1:
  try: threading.Thread(target=time.sleep, args=(1000,)).start()
  except (RuntimeError, MemoryError): pass
""",
        harmful=True,
    ),
    Attack(
        "disk",
        "bytes",
        """
import os
total = 0
for folder in ('.', '/tmp', '/var/tmp', '/dev/shm', '/'):
  try:
    for i in range(500):
      open(f'{folder}/MARK{i}', 'wb').write(bytes(8 << 20)); total += 8
    print('BREACH', total, 'MB')
  except OSError: pass
""",
        harmful=True,
    ),
    Attack(
        "disk",
        "files",
        """
for i in range(100000): open(f'MARK{i}', 'w').close()
print('BREACH 100,000 files')
""",
        harmful=True,
    ),
    Attack(
        "files",
        "everywhere",
        """
import os
for folder in ('.', os.environ.get('TMPDIR', '.'), os.environ.get('HOME', '.'), '/tmp', '/var/tmp', '/dev/shm', '/run', '/w', '/'):
  try: open(folder + '/MARK', 'w').write('x')
  except OSError: pass
""",
        ("ok",),
    ),
    Attack(
        "folders",
        "deep",
        """
import os
for i in range(3000): os.mkdir('MARK'); os.chdir('MARK')
""",
        ("ok",),
    ),
    Attack(
        "folders",
        "odd",
        r"""
import os, socket
for name in (b'n' * 255, b'\xff\n', b'-rf', b' ', b'*', b'...'): os.mkdir(name); open(name + b'/x' , 'w').close()
os.mkfifo('fifo'); os.symlink('/', 'root'); os.symlink('loop', 'loop'); os.mkdir('shut'); open('shut/x', 'w').close(); os.chmod('shut', 0)
s = socket.socket(socket.AF_UNIX); s.bind('socket'); os.chmod('.', 0)
""",
        ("ok",),
    ),
    Attack(
        "ipc",
        "shared memory and queues",
        """
import ctypes, os
libc = ctypes.CDLL(None)
libc.shmget(KEY, 4096, 0o1600)
libc.msgget(KEY, 0o1600); libc.semget(KEY, 1, 0o1600)
try: open('/dev/shm/MARK', 'w').close()
except OSError: pass
if libc.mq_open(b'/MARK', 0o102, 0o600, None) >= 0: print('BREACH message queue'); libc.mq_unlink(b'/MARK')
""",
        ("ok", "failed"),
    ),
    Attack(
        "ipc",
        "sockets",
        r"""
import os, socket, time
s = socket.socket(socket.AF_UNIX); s.bind('\0MARK'); s.listen()
if os.fork() == 0: os.setsid(); time.sleep(1e6)
""",
        ("ok",),
    ),
    Attack(
        "program",
        "source",
        TRY
        + """
import sys
me = os.path.abspath(sys.argv[0])
attempt('write', lambda: open(me, 'w').write('print(0)'))
attempt('replace', lambda: (open('new', 'w').write('print(0)'), os.replace('new', me)))
attempt('module', lambda: open(os.path.join(os.path.dirname(me), 'MARK.py'), 'w').close())
""",
        ("ok",),
    ),
)

REMAINS = """
import os, signal
found = []
for p in [int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()]:
    try:
        if "MARK" in open(f"/proc/{p}/cmdline", errors="replace").read():
            found.append(f"a process, {p}")
            os.kill(p, signal.SIGKILL)
    except OSError: pass
for folder in {".", os.environ.get("TMPDIR", "."), os.environ.get("HOME", "."), "/tmp", "/var/tmp", "/dev/shm", "/run", "/w", "/", "/dev/mqueue"}:
    try:
        for name in os.listdir(folder):
            if "MARK" in name:
                found.append(f"a file in {folder}")
                os.unlink(os.path.join(folder, name))
    except OSError: pass
for name in ("/proc/sysvipc/shm", "/proc/sysvipc/msg", "/proc/sysvipc/sem", "/proc/net/unix"):
    try: text = open(name).read()
    except OSError: continue
    if "MARK" in text or str(KEY) in text: found.append(f"something in {name}")
with open("room", "wb") as file: file.write(bytes(32 << 20))
for i in range(100): open(f"room{i}", "w").close()
for i in range(8):
    child = os.fork()
    if child == 0: os._exit(0)
    os.waitpid(child, 0)
print("; ".join(found))
"""
"""Says what of a hostile program is still there, and removes it as far as it can; needs room on the disk and the right to fork."""
