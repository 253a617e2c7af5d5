"""Two programs that talk: a private one with a secret, and a judged one that looks for it."""

from __future__ import annotations

KEEPER = """
secret = 'cascade-secret-SALT'
print('begin', flush=True)
while input() != 'end': pass
"""
"""The private one."""

SEEKER = """
import glob, os, stat
secret = "-".join(("cascade-secret", "SALT")).encode()
input()
for path in [*glob.glob("/proc/[0-9]*/cmdline"), *glob.glob("/proc/[0-9]*/environ"), *glob.glob("/w/*/*"), *glob.glob("/tmp/cascade*/w/*/*"), *glob.glob("/inside/*")]:
    try:
        if path.startswith("/proc/") or stat.S_ISREG(os.stat(path).st_mode):
            with open(path, "rb") as file:
                if secret in file.read(1 << 20): print("BREACH", path, flush=True); break
    except OSError: pass
print("end", flush=True)
"""
"""The judged one; its own source has the secret in two pieces."""
