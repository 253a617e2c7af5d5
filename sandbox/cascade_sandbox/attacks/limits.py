"""Programs that use up more than they may."""

from __future__ import annotations

from cascade_sandbox.attacks.attack import Attack

ATTACKS = (
    Attack(
        "cpu",
        "loop",
        """
import signal
for n in range(1, 65):
  try: signal.signal(n, signal.SIG_IGN)
  except (OSError, ValueError): pass
while 1: pass
""",
        ("timeout",),
    ),
    Attack(
        "cpu",
        "threads",
        """
import threading
def f():
  while 1: pass
for i in range(4): threading.Thread(target=f).start()
""",
        ("timeout",),
    ),
    Attack(
        "cpu",
        "children in turn",
        """
import os, time
for i in range(6):
  p = os.fork()
  if p == 0:
    while time.process_time() < 0.4: pass
    os._exit(0)
  os.waitpid(p, 0)
""",
        ("timeout",),
    ),
    Attack(
        "wall",
        "sleep",
        """
import time
time.sleep(1e6)
""",
        ("timeout",),
    ),
    Attack(
        "wall",
        "stopped",
        """
import os, signal
os.kill(os.getpid(), signal.SIGSTOP)
""",
        ("timeout",),
    ),
    Attack(
        "memory",
        "one process",
        """
x = []
while len(x) < 100: x.append(bytearray(20 << 20))
print('BREACH 2 GB')
""",
        ("memory", "failed"),
    ),
    Attack(
        "memory-of-all",
        "many processes",
        """
import os, time
for i in range(20):
  if os.fork() == 0:
    x = bytearray(200 << 20)
    time.sleep(1000)
time.sleep(1000)
""",
        harmful=True,
    ),
    Attack(
        "memory-of-all",
        "of no process",
        """
import mmap, os, time
try: open('/proc/self/oom_score_adj', 'w').write('0')
except OSError: pass
for i in range(20):
  if os.fork() == 0:
    held = []
    try:
      while 1:
        held.append(mmap.mmap(-1, 16 << 20)); held[-1].write(bytes(16 << 20)); held[-1].madvise(4)
    except OSError: time.sleep(1000)
time.sleep(1000)
""",
        harmful=True,
    ),
    Attack(
        "output",
        "stdout",
        """
while 1: print('x' * 1000)
""",
        ("output",),
    ),
    Attack(
        "output",
        "stderr",
        """
import os
while 1: os.write(2, b'x' * 65536)
""",
        ("timeout", "output"),
    ),
    Attack(
        "pipes",
        "closed",
        """
import os, time
os.close(1); os.close(2)
time.sleep(1e6)
""",
        ("timeout",),
    ),
    Attack(
        "pipes",
        "held",
        """
import os, time
if os.fork() == 0: time.sleep(1e6)
""",
        ("ok",),
    ),
)
