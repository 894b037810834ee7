"""Counts the processes that a process and its descendants start, by program, as the kernel tells them (process events connector).

Argument: a process id. Needs root and the first process namespace. Prints `ready`, then one line of JSON for
each line on stdin: what was started since the line before. `programs`: for each process the last program that it ran; one that
only forked has its parent's name with `+fork`. `lost`: the kernel could not tell everything, so the counts are too small.
"""
import json
import os
import select
import socket
import struct
import sys

NETLINK_CONNECTOR, CN_IDX_PROC, NLMSG_DONE = 11, 1, 3
FORK, EXEC, EXIT = 0x00000001, 0x00000002, 0x80000000
SO_RCVBUFFORCE, BYTES = 33, 64 << 20

kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, NETLINK_CONNECTOR)
kernel.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BYTES)
kernel.bind((0, CN_IDX_PROC))
listen = struct.pack("=IIIIHHI", CN_IDX_PROC, 1, 0, 0, 4, 0, 1)
kernel.send(struct.pack("=IHHII", 16 + len(listen), NLMSG_DONE, 0, 0, os.getpid()) + listen)

programs, lost = {}, False


def living():
    """The process and all that descend from it."""
    children, found = {}, [int(sys.argv[1])]
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                children.setdefault(int(file.read().rsplit(")", 1)[1].split()[1]), []).append(int(pid))
        except OSError:
            pass
    for pid in found:
        found.extend(children.get(pid, []))
    return found


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().strip()
    except OSError:
        return "?"


def add(name, count):
    programs[name] = programs.get(name, 0) + count


def take(data):
    what = struct.unpack_from("=I", data, 36)[0]
    if what == FORK:
        parent, child, child_group = struct.unpack_from("=4xI2I", data, 52)
        if child != child_group or parent not in followed:
            return
        followed[child] = followed[parent].removesuffix("+fork") + "+fork"
        add(followed[child], 1)
    elif what == EXEC:
        group = struct.unpack_from("=4xI", data, 52)[0]
        if group in followed and group not in first:
            add(followed[group], -1)
            followed[group] = name_of(group)
            add(followed[group], 1)
    elif what == EXIT:
        pid, group = struct.unpack_from("=2I", data, 52)
        if pid == group and group not in first:
            followed.pop(group, None)


followed = {pid: name_of(pid) for pid in living()}
first = set(followed)
print("ready", flush=True)
while True:
    ready = select.select([kernel, sys.stdin], [], [])[0]
    # Events that came before the question are counted before the answer.
    if kernel in ready:
        try:
            take(kernel.recv(4096))
        except OSError:
            lost = True
    elif not sys.stdin.readline():
        break
    else:
        counted = {name: count for name, count in programs.items() if count}
        print(json.dumps({"programs": counted, "lost": lost}), flush=True)
        programs, lost = {}, False
