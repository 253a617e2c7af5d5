"""System calls that no judged program needs and that reach beyond it: names and their numbers, as data.

The first number is x86_64's, the second aarch64's (the generic table); None where the machine has no such call. Numbers are
from the kernel's `arch/x86/entry/syscalls/syscall_64.tbl` and `include/uapi/asm-generic/unistd.h`.
"""

from __future__ import annotations

from typing import Optional

Numbers = tuple[Optional[int], Optional[int]]

OTHER_PROCESSES: dict[str, Numbers] = {
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
}
"""Reading, writing and tracing what other processes hold."""

NAMESPACES_AND_MOUNTS: dict[str, Numbers] = {
    "chroot": (161, 51),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "listmount": (458, 458),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "pivot_root": (155, 41),
    "setns": (308, 268),
    "statmount": (457, 457),
    "umount2": (166, 39),
    "unshare": (272, 97),
}
"""Leaving the place that the program was put into."""

LASTING: dict[str, Numbers] = {
    "add_key": (248, 217),
    "keyctl": (250, 219),
    "mq_getsetattr": (245, 185),
    "mq_notify": (244, 184),
    "mq_open": (240, 180),
    "mq_timedreceive": (243, 183),
    "mq_timedsend": (242, 182),
    "mq_unlink": (241, 181),
    "msgctl": (71, 187),
    "msgget": (68, 186),
    "msgrcv": (70, 188),
    "msgsnd": (69, 189),
    "request_key": (249, 218),
    "semctl": (66, 191),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmdt": (67, 197),
    "shmget": (29, 194),
}
"""Objects of the kernel that outlive the process that made them."""

KERNEL: dict[str, Numbers] = {
    "_sysctl": (156, None),
    "acct": (163, 89),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "create_module": (174, None),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "finit_module": (313, 273),
    "get_kernel_syms": (177, None),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "lookup_dcookie": (212, 18),
    "lsm_set_self_attr": (460, 460),
    "mbind": (237, 235),
    "memfd_secret": (447, 447),
    "migrate_pages": (256, 238),
    "modify_ldt": (154, None),
    "move_pages": (279, 239),
    "nfsservctl": (180, 42),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "query_module": (178, None),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "set_mempolicy": (238, 237),
    "set_mempolicy_home_node": (450, 450),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "sysfs": (139, None),
    "syslog": (103, 116),
    "uselib": (134, None),
    "userfaultfd": (323, 282),
    "ustat": (136, None),
    "vhangup": (153, 58),
}
"""Parts of the kernel with a long history of holes, or that set up the machine."""

DENIED: dict[str, Numbers] = {**OTHER_PROCESSES, **NAMESPACES_AND_MOUNTS, **LASTING, **KERNEL}

CLONE: Numbers = (56, 220)
"""Refused with flags that make a namespace."""

CLONE3: Numbers = (435, 435)
"""Its flags lie in memory, where a filter cannot look: answered as if the kernel were older, and libc takes `clone`."""

SOCKET: Numbers = (41, 198)
"""Refused for all families but unix, inet and inet6: vsock, netlink, packet, and the kernel's ciphers are nobody's."""

SOCKETPAIR: Numbers = (53, 199)

NEWEST = 462
"""`mseal`: what was added later is answered as if the kernel were older."""
