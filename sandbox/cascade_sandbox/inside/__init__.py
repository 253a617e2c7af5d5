"""What runs inside a sandbox: the resident supervisor, which runs programs under limits and says what they did.

The folder is mounted into a container as it is and started with `python3 -I -S -E /inside/supervisor.py /socket/s`; the process
sandbox starts the same file on this machine. So: only the standard library, syntax of Python 3.9, relative imports, Linux.
"""
