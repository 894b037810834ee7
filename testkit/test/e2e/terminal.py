"""Drives a command on a pseudo terminal as a person does: `terminal.py COMMAND...` must open a shell in a sandbox."""

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time

PATIENCE = 240
seen = ""


def resize(rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def until(pattern):
    """Reads until the output since the last match has the pattern."""
    global seen
    limit = time.monotonic() + PATIENCE
    while not re.search(pattern, seen):
        assert time.monotonic() < limit, f"no {pattern!r} in {seen!r}"
        if select.select([terminal], [], [], 1)[0]:
            seen += os.read(terminal, 65536).decode(errors="replace")
    seen = seen[re.search(pattern, seen).end() :]


def type_in(text):
    os.write(terminal, text.encode())


child, terminal = pty.fork()
if child == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
resize(33, 101)
until(r"as it was after turn 3")
until(r"testbed[#$] ")
type_in("cat made.txt; stty size\r")
until(r"from turn 1\r\n33 101\r\n")
resize(50, 132)
type_in("until [ \"$(stty size)\" = '50 132' ]; do sleep 0.1; done; echo so\\ wide\r")
until(r"so wide\r\n")
# Ctrl-C reaches the command in the sandbox, and neither the shell nor the command outside.
type_in("echo wa\\it; sleep 1000; echo not reached\r")
until(r"wait\r\n")
type_in("\x03")
until(r"\^C[^$#]*[#$] ")
# An editor draws on the screen and reads single keys.
type_in("python3 -c \"import curses; curses.wrapper(lambda s: (s.addstr(3, 5, 'drawn'), s.refresh(), s.getch()))\"; echo left\\ it\r")
until(r"drawn")
type_in("q")
until(r"left it\r\n")
type_in("exit\r")
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
# The terminal is as it was: it echoes, and makes signals of keys.
modes = termios.tcgetattr(terminal)[3]
assert modes & termios.ECHO and modes & termios.ISIG, modes
print("terminal works")
