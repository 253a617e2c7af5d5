"""Hostile programs, by name: kinds of attack beyond those of `data/hostile_programs.jsonl`.

A program that got what it must not get says BREACH. MARK, in names of files and of processes, is what the program
that follows must not find. `CPP` are sources that attack the compiler that reads them, or the machine with what it makes.
"""

MARK = "cascade-hostile-mark"

PYTHON = {
    "write_the_memory_of_others": """
import os
for pid in [p for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()]:
    for name, mode in (("mem", "r+b"), ("mem", "rb"), ("oom_score_adj", "w"), ("environ", "rb"), ("timerslack_ns", "w"), ("clear_refs", "w"), ("comm", "w")):
        try:
            with open(f"/proc/{pid}/{name}", mode) as file:
                if file.readable(): file.read(1)
                else: file.write("1"); file.flush()
                print("BREACH", pid, name, mode)
        except (OSError, ValueError) as error:
            print(pid, name, mode, error)
""",
    "write_its_own_memory": """
import ctypes
text = ctypes.create_string_buffer(b"before")
with open("/proc/self/mem", "r+b", buffering=0) as memory:
    memory.seek(ctypes.addressof(text)); memory.write(b"after!")
print(text.value)
""",
    "stop_and_continue_everybody": """
import os, signal
for number in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGCONT, signal.SIGTERM, signal.SIGUSR1, signal.SIGKILL, signal.SIGQUIT, 0):
    for pid in [int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()]:
        try: os.kill(pid, number); print("BREACH", pid, number)
        except OSError as error: print(pid, number, error)
        try: os.killpg(pid, number); print("BREACH group", pid, number)
        except OSError as error: print(pid, number, error)
""",
    "limits_and_priority_of_others": """
import os, resource
for pid in [int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()]:
    for kind in (resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_NOFILE):
        try: resource.prlimit(pid, kind, (1, 1)); print("BREACH", pid, kind)
        except OSError as error: print(pid, kind, error)
    for call in (lambda: os.setpriority(os.PRIO_PROCESS, pid, 19), lambda: os.sched_setaffinity(pid, {0}),
                 lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))):
        try: call(); print("BREACH", pid)
        except OSError as error: print(pid, error)
""",
    "raise_its_own_limits": """
import os, resource
for name in [n for n in dir(resource) if n.startswith("RLIMIT_")]:
    kind = getattr(resource, name); soft, hard = resource.getrlimit(kind)
    if name in ("RLIMIT_NICE", "RLIMIT_RTPRIO", "RLIMIT_CORE", "RLIMIT_MSGQUEUE", "RLIMIT_CPU", "RLIMIT_AS", "RLIMIT_FSIZE", "RLIMIT_NOFILE") and hard == resource.RLIM_INFINITY: print("BREACH unlimited", name)
    if hard != resource.RLIM_INFINITY:
        try: resource.setrlimit(kind, (hard + 1, hard + 1)); print("BREACH", name)
        except (OSError, ValueError) as error: print(name, error)
for call in (lambda: os.nice(-1), lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)), lambda: os.setpriority(os.PRIO_PROCESS, 0, -5)):
    try: call(); print("BREACH priority")
    except OSError as error: print(error)
""",
    "ignore_every_signal": """
import signal, time
for number in range(1, signal.NSIG):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, signal.NSIG))
while 1: pass
""",
    "children_eat_the_time": """
import os, time
for i in range(8):
    if os.fork() == 0:
        while 1: pass
time.sleep(1000)
""",
    "chain_of_short_lived_children": """
import os
while os.fork() == 0:
    os.setsid()
""",
    "threads_without_end": """
import threading, time
count = 0
try:
    while count < 100000:
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start(); count += 1
except (RuntimeError, MemoryError) as error:
    print("stopped at", count, error)
if count > 1000: print("BREACH", count)
""",
    "descriptors_without_end": """
import os, socket
held = []
for what in (lambda: os.open("/dev/null", 0), lambda: os.pipe(), lambda: socket.socketpair(), lambda: os.memfd_create("x"), lambda: __import__("select").epoll()):
    count = 0
    try:
        while count < 5000: held.append(what()); count += 1
        print("BREACH", count)
    except OSError as error:
        print(count, error)
    for one in held:
        for fd in one if isinstance(one, tuple) else (one,):
            os.close(fd) if isinstance(fd, int) else fd.close()
    held.clear()
""",
    "memory_that_no_process_has": """
import os, time
open("/proc/self/oom_score_adj", "w").write("0")
def hold():
    held = []
    try:
        for i in range(200):
            fd = os.memfd_create("x"); held.append(fd)
            for j in range(31): os.write(fd, bytes(8 << 20))
    except OSError: pass
    time.sleep(1000)
for i in range(20):
    try:
        if os.fork() == 0: hold()
    except OSError: pass
time.sleep(1000)
""",
    "memory_that_was_shared_and_forgotten": """
import mmap, os, time
open("/proc/self/oom_score_adj", "w").write("0")
def hold():
    held = []
    try:
        while 1:
            pages = mmap.mmap(-1, 64 << 20); held.append(pages)
            for i in range(0, 64 << 20, 4096): pages[i] = 1
            pages.madvise(mmap.MADV_DONTNEED)
    except (OSError, ValueError): pass
    time.sleep(1000)
for i in range(20):
    if os.fork() == 0: hold()
time.sleep(1000)
""",
    "memory_in_sockets": """
import os, socket, time
open("/proc/self/oom_score_adj", "w").write("0")
def hold():
    held = []
    try:
        while 1:
            pair = socket.socketpair(); held.append(pair)
            for end in pair:
                end.setblocking(False); end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 30)
                try:
                    while 1: end.send(bytes(1 << 16))
                except OSError: pass
    except OSError: pass
    time.sleep(1000)
for i in range(30):
    try:
        if os.fork() == 0: hold()
    except OSError: pass
time.sleep(1000)
""",
    "files_by_the_hundred_thousand": """
import os
made = 0
try:
    while made < 200000: open(f"MARK{made}", "w").close(); made += 1
    print("BREACH", made)
except OSError as error:
    print(made, error)
""",
    "names_of_all_kinds": """
import os, socket
for name in (b"n" * 255, b"\\xff\\xfe\\n\\r", b"-rf", b"* ?", b" ", b"\\\\", b"$(touch x)", "\\u202e\\u0301".encode(), b"...", b"\\x01\\x7f"):
    os.mkdir(name); os.chdir(name); open(name, "w").close(); os.chdir(b"..")
os.mkfifo("fifo"); os.symlink("/", "root"); os.symlink("..", "up"); os.symlink("loop", "loop"); os.symlink("/proc/self/cwd", "here")
s = socket.socket(socket.AF_UNIX); s.bind("socket"); s.listen()
os.link("fifo", "fifo2"); os.mkdir("locked"); open("locked/x", "w").close(); os.chmod("locked", 0)
os.mkdir("sticky"); os.chmod("sticky", 0o7777); os.chmod(".", 0)
print("made")
""",
    "wide_and_deep_folders": """
import os
for i in range(40):
    os.mkdir("w%d" % i)
    for j in range(40): os.mkdir("w%d/%d" % (i, j))
name = "d" * 255
try:
    for i in range(9000): os.mkdir(name); os.chdir(name)
except OSError as error: print(i, error)
print("deep")
""",
    "folder_swapped_for_a_link": """
import os
here = os.getcwd()
for target in ("/inside", "/socket", "/", "/w"):
    try: os.rename(here, here + "x"); print("BREACH renamed")
    except OSError as error: print(error)
    try: os.rmdir(here); print("BREACH removed")
    except OSError as error: print(error)
    try: os.symlink(target, here + "/link")
    except OSError as error: print(error)
""",
    "look_around": """
import os
for folder in ("/inside", "/socket", "/w", "/root", "/proc/1/root", "/proc/1/cwd", "/proc/1/fd", "/proc/1/fdinfo", "/proc/1/task/1/fd", "/proc/1/map_files", "/sys/fs/cgroup", "/sys/kernel/debug", "/sys/kernel/security", "/dev", "/dev/shm", "/dev/mqueue", "/proc/1/ns"):
    try: names = os.listdir(folder); print(folder, len(names))
    except OSError as error: print(folder, error); continue
    if folder in ("/socket", "/w", "/root", "/proc/1/root", "/proc/1/cwd", "/proc/1/fd", "/proc/1/fdinfo", "/proc/1/task/1/fd", "/proc/1/map_files") and names: print("BREACH", folder, names[:5])
import socket
for path in ("/socket/s", "/socket/k", "/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock"):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        s = socket.socket(socket.AF_UNIX, kind)
        try: s.connect(path); print("BREACH", path)
        except OSError as error: print(path, error)
""",
    "write_where_it_may_not": """
import os
for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger", "/proc/sys/vm/drop_caches", "/proc/sys/vm/overcommit_memory", "/proc/sys/net/ipv4/ip_forward",
             "/sys/kernel/mm/ksm/run", "/sys/power/state", "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/pids/pids.max", "/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/cpu/tasks",
             "/inside/supervisor.py", "/inside/x", "/etc/passwd", "/etc/x", "/usr/bin/x", "/dev/x", "/dev/kmsg", "/dev/mem", "/dev/sda", "/dev/console", "/dev/tty", "/dev/fuse", "/dev/net/tun", "/x", "/tmp/x", "/var/tmp/x", "/run/x", "/w/x", "/dev/shm/x", "/dev/mqueue/x"):
    try: fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
    except OSError as error: print(path, error); continue
    print("BREACH", path)
""",
    "uses_every_call_that_is_refused": """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
calls = dict(chroot=161, mount=165, umount=166, pivot_root=155, setns=308, unshare=272, ptrace=101, kcmp=312, pidfd_getfd=438, process_vm_writev=311, swapon=167, reboot=169, sethostname=170,
             iopl=172, ioperm=173, init_module=175, delete_module=176, quotactl=179, settimeofday=164, syslog=103, acct=163, keyctl=250, add_key=248, request_key=249, mbind=237, migrate_pages=256, move_pages=279,
             perf_event_open=298, fanotify_init=300, open_by_handle_at=304, bpf=321, userfaultfd=323, io_uring_setup=425, io_uring_enter=426, io_uring_register=427, open_tree=428, move_mount=429, fsopen=430, fsmount=432,
             clone3=435, personality=135, modify_ldt=154, shmget=29, semget=64, msgget=68, mq_open=240, lookup_dcookie=212, memfd_secret=447, vhangup=153, kexec_load=246, kexec_file_load=320, finit_module=313)
for name, number in calls.items():
    ctypes.set_errno(0)
    result = libc.syscall(number, 0, 0, 0, 0, 0, 0)
    error = ctypes.get_errno()
    print(name, result, os.strerror(error))
    if result >= 0 or error not in (1, 38): print("BREACH", name, result, error)
for number in (101, 161, 272, 425):
    result = libc.syscall(0x40000000 | number, 0x10000000, 0, 0, 0, 0, 0)
    if result >= 0: print("BREACH x32", number)
""",
    "new_namespaces_by_clone": """
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
    pid = libc.syscall(56, flag | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0: os._exit(0)
    if pid > 0: print("BREACH", hex(flag))
    else: print(hex(flag), os.strerror(ctypes.get_errno()))
""",
    "becomes_somebody_else": """
import os
for call in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setreuid(0, 0), lambda: os.setresuid(0, 0, 0), lambda: os.setresgid(0, 0, 0), lambda: os.setgroups([0]), lambda: os.seteuid(os.getuid() - 1),
             lambda: os.chown(".", 0, 0), lambda: os.chroot("."), lambda: os.mknod("MARK", 0o660 | 0o020000, os.makedev(1, 3)), lambda: os.mknod("MARK2", 0o660 | 0o060000, os.makedev(8, 0))):
    try: call(); print("BREACH")
    except OSError as error: print(error)
import glob, stat
for folder in ("/bin", "/usr/bin", "/usr/sbin", "/usr/local/bin"):
    for name in glob.glob(folder + "/*"):
        try: mode = os.stat(name).st_mode
        except OSError: continue
        if mode & (stat.S_ISUID | stat.S_ISGID): print("set-id", name)
import shutil
shutil.copy("/bin/sh", "sh"); os.chmod("sh", 0o6755); print(os.popen("./sh -c 'id -u 2>/dev/null'").read())
""",
    "sockets_of_all_families": """
import socket
for family in range(0, 46):
    for kind in (1, 2, 3, 5, 10):
        try: s = socket.socket(family, kind)
        except OSError: continue
        if family not in (1, 2, 10): print("BREACH", family, kind)
        if kind in (3, 10): print("BREACH raw", family) if family != 1 else None
        s.close()
for address in (("8.8.8.8", 53), ("172.17.0.1", 22), ("169.254.169.254", 80), ("10.0.0.1", 80), ("192.168.0.1", 80)):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        s = socket.socket(socket.AF_INET, kind); s.settimeout(1)
        try: s.connect(address); s.send(b"x"); print("BREACH", address)
        except OSError as error: print(address, error)
for name in ("localhost.example", "example.com"):
    try: print("BREACH", socket.getaddrinfo(name, 80))
    except OSError as error: print(error)
names = [line.split(":")[0].strip() for line in open("/proc/net/dev").readlines()[2:]]
if names != ["lo"]: print("BREACH", names)
""",
    "abstract_socket_stays": """
import os, socket, time
s = socket.socket(socket.AF_UNIX); s.bind("\\0MARK"); s.listen()
t = socket.socket(socket.AF_INET); t.bind(("127.0.0.1", 18099)); t.listen()
if os.fork() == 0:
    os.setsid(); time.sleep(1000)
print("left")
""",
    "daemons_of_all_kinds": """
import ctypes, os, signal, sys, time
def live():
    for number in range(1, 65):
        try: signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError): pass
    os.execv(sys.executable, ["MARK", "-c", "import time; time.sleep(1000)"])
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: live()
    os._exit(0)
if os.fork() == 0: os.setpgid(0, 0); live()
if os.fork() == 0: ctypes.CDLL(None).prctl(36, 1, 0, 0, 0); os.fork() or live(); live()
if os.fork() == 0: os.kill(os.getpid(), signal.SIGSTOP)
pid = os.fork()
if pid == 0: live()
time.sleep(0.3); os.kill(pid, signal.SIGSTOP)
print("left")
""",
    "vfork_that_never_ends": """
import ctypes, os
libc = ctypes.CDLL(None)
os.fork()
if libc.syscall(56, 0x4000 | 0x100 | 17, 0, 0, 0, 0) == 0:
    while 1: pass
""",
    "timers_and_alarms": """
import os, signal, time
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01); signal.setitimer(signal.ITIMER_PROF, 0.01, 0.01)
signal.signal(signal.SIGALRM, lambda *a: None); signal.signal(signal.SIGPROF, lambda *a: None); signal.signal(signal.SIGXCPU, signal.SIG_IGN)
while 1: pass
""",
    "preloaded_libraries": """
import os, subprocess, sys
open("MARK.py", "w").write("x"); open("sitecustomize.py", "w").write("print('BREACH')"); open("usercustomize.py", "w").write("print('BREACH')")
os.environ.update(LD_PRELOAD=os.getcwd() + "/MARK.so", PYTHONSTARTUP=os.getcwd() + "/MARK.py", PYTHONPATH=os.getcwd())
os.makedirs(".local/lib/python3/site-packages", exist_ok=True); open(".bashrc", "w").write("echo BREACH"); open(".profile", "w").write("echo BREACH")
print("planted")
""",
    "changes_its_own_source": """
import os, sys
folder = os.path.dirname(os.path.abspath(sys.argv[0]))
for call in (lambda: open(sys.argv[0], "w"), lambda: os.unlink(sys.argv[0]), lambda: os.rename(sys.argv[0], "MARK"), lambda: open(folder + "/MARK", "w"), lambda: os.chmod(sys.argv[0], 0o777), lambda: os.makedirs(folder + "/__pycache__"),
             lambda: os.link(sys.argv[0], "linked") or open("linked", "w")):
    try: call(); print("BREACH")
    except OSError as error: print(error)
""",
    "plays_with_its_descriptors": """
import fcntl, os, sys
for fd in (0, 1, 2):
    fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK)
    try: fcntl.fcntl(fd, 1031, 1 << 20)
    except OSError: pass
    try: fcntl.fcntl(fd, fcntl.F_SETOWN, 1); fcntl.fcntl(fd, fcntl.F_SETSIG, 9); fcntl.fcntl(fd, fcntl.F_SETFL, os.O_ASYNC)
    except OSError: pass
try: os.write(os.open("/proc/self/fd/0", os.O_WRONLY), b"x"); print("BREACH input written")
except OSError as error: print(error)
try: os.ftruncate(0, 0); print("BREACH input cut")
except OSError as error: print(error)
for fd in range(3, 256):
    try: os.fstat(fd); print("BREACH", fd, os.readlink(f"/proc/self/fd/{fd}"))
    except OSError: pass
os.dup2(1, 0); os.dup2(0, 2); os.close(1); os.write(2, b"end\\n")
""",
    "reads_its_own_output_back": """
import os, threading
fd = os.open("/proc/self/fd/1", os.O_RDONLY)
for i in range(200):
    os.write(1, b"x" * 1000)
    try: os.set_blocking(fd, False); os.read(fd, 500)
    except OSError: pass
""",
    "forged_frames": """
import sys, json
header = json.dumps({"op": "result", "verdict": "ok", "exit_code": 0, "cpu_seconds": 0, "wall_seconds": 0, "peak_bytes": 0, "blobs": [2, 0]}).encode()
for stream in (sys.stdout.buffer, sys.stderr.buffer):
    for i in range(50): stream.write(len(header).to_bytes(4, "big") + header + b"2\\n")
    stream.flush()
sys.exit(3)
""",
    "errors_without_end": """
import os
while 1: os.write(2, b"x" * 65536)
""",
    "core_dumps": """
import ctypes, resource
try: resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20)); print("BREACH")
except ValueError as error: print(error, flush=True)
ctypes.string_at(0)
""",
    "deep_recursion": """
import sys, threading
sys.setrecursionlimit(1 << 30)
def f(n): return f(n + 1) + 1
f(0)
""",
    "traces_its_siblings": """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for pid in [int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()]:
    for request in (16, 0x4206):
        if libc.ptrace(request, pid, 0, 0) == 0: print("BREACH", pid)
child = os.fork()
if child == 0:
    if libc.ptrace(0, 0, 0, 0) == 0: print("BREACH traceme", flush=True)
    os._exit(0)
os.waitpid(child, 0)
""",
    "asks_for_the_files_of_others": """
import os
uid = os.getuid()
for number in range(0, 2000):
    for other in (0, *range(uid - 3, uid + 4)):
        path = f"/w/{number}-{other}"
        if os.path.realpath(path) in (os.getcwd(), os.path.dirname(os.path.abspath(__file__))): continue
        try: print("BREACH", path, os.listdir(path))
        except OSError: pass
        try: open(path + "/MARK", "w"); print("BREACH wrote", path)
        except OSError: pass
""",
    "exhausts_the_user_watches": """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
count = 0
for i in range(200):
    fd = libc.inotify_init()
    if fd < 0: break
    for j in range(2000):
        if libc.inotify_add_watch(fd, b".", 2) < 0: break
        count += 1
print(count)
""",
    "locks_its_memory": """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
if libc.mlockall(7) == 0: print("BREACH mlockall")
""",
    "sparse_files": """
import os
try:
    for i in range(100):
        fd = os.open("MARK%d" % i, os.O_RDWR | os.O_CREAT)
        os.truncate(fd, 200 << 20)
        os.posix_fallocate(fd, 0, 200 << 20)
    print("BREACH")
except OSError as error: print(i, error)
""",
    "ends_oddly": """
import os, signal
os.kill(os.getpid(), signal.SIGSTOP)
""",
    "exec_of_an_endless_kind": """
import os, sys
os.execv(sys.executable, [sys.executable, *sys.argv])
""",
    "output_of_a_gigabyte": """
import os
block = b"x" * (1 << 20)
for i in range(1024): os.write(1, block)
""",
}

CPP = {
    "include_of_a_device": '#include "/dev/zero"\n',
    "include_of_its_input": '#include "/dev/stdin"\nint main() {}\n',
    "include_of_itself": "#include __FILE__\nint main() {}\n",
    "include_of_what_is_secret": '#include "/proc/1/environ"\n#include "/socket/s"\nint main() {}\n',
    "templates_without_end": "template<int n> struct A { static const int v = A<n + 1>::v + A<n + 2>::v; };\nint main() { return A<0>::v; }\n",
    "computed_while_compiling": "constexpr long f(long n) { long s = 0; for (long i = 0; i < n; i++) s += i; return s; }\nconstexpr long a = f(1L << 60);\nint main() {}\n",
    "array_of_a_gigabyte": "int a[1 << 28] = {1};\nint main() { return a[5]; }\n",
    "assembly_of_a_gigabyte": 'asm(".rept 2000000000\\n.quad 0\\n.endr");\nint main() {}\n',
    "assembly_that_includes": 'asm(".incbin \\"/proc/1/environ\\"\\n.incbin \\"/dev/zero\\"");\nint main() {}\n',
    "macros_that_explode": "#define A x,x,x,x,x,x,x,x\n#define B A,A,A,A,A,A,A,A\n#define C B,B,B,B,B,B,B,B\n#define D C,C,C,C,C,C,C,C\n#define E D,D,D,D,D,D,D,D\n#define F E,E,E,E,E,E,E,E\n#define G F,F,F,F,F,F,F,F\n#define H G,G,G,G,G,G,G,G\n#define I H,H,H,H,H,H,H,H\n#define J I,I,I,I,I,I,I,I\nint x; int a[] = {J};\nint main() {}\n",
    "errors_without_end": "template<int n> struct A { typename A<n - 1>::x y; };\nA<800> a;\n" + "int 1x;\n" * 20000,
    "fork_bomb": "#include <unistd.h>\nint main() { for (;;) fork(); }\n",
    "no_main": "int f() { return 1; }\n",
}
