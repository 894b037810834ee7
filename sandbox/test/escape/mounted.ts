/** Attempts to change a folder of this machine that is mounted into the sandbox, or to reach the port of another sandbox. */
import { type Attempt, python } from './attempt.ts';
import { MOUNTED_AT } from './host.ts';

const CHANGE = `os.chdir("${MOUNTED_AT}")
here = b"${MOUNTED_AT}"
read_only = os.open("file", os.O_RDONLY)
for name in ("file", "new", f"/proc/self/fd/{read_only}", "/proc/self/cwd/file"):
    for flags in (os.O_RDWR, os.O_WRONLY | os.O_CREAT, os.O_RDWR | os.O_TMPFILE):
        attempt(f"open {name}", lambda: os.open(name, flags))
for name, work in (
    ("unlink", lambda: os.unlink("file")), ("rename", lambda: os.rename("file", "moved")), ("link", lambda: os.link("file", "hard")),
    ("link out", lambda: os.link("file", "/tmp/hard")), ("symlink", lambda: os.symlink("file", "soft")), ("mkdir", lambda: os.mkdir("made")),
    ("chmod", lambda: os.chmod("file", 0o777)), ("fchmod", lambda: os.fchmod(read_only, 0o777)), ("chown", lambda: os.chown("file", 1, 1)),
    ("utime", lambda: os.utime("file", (0, 0))), ("truncate", lambda: os.truncate("file", 0)), ("mknod", lambda: os.mknod("node")),
    ("setxattr", lambda: os.setxattr("file", "user.x", b"x")), ("rmdir", lambda: os.rmdir(here)), ("move", lambda: os.rename(here, "/tmp/away")),
): attempt(name, work)
for flags in (32, 32 | 4096, 4096, 1 << 18, 1 << 20): call("mount", here, here, None, flags, None)
call("umount2", here, 2)
call("mount", b"tmpfs", here, b"tmpfs", 0, None)
libc.syscall.restype = ctypes.c_long
attributes = (ctypes.c_uint64 * 4)(0, 1, 0, 0)
for number in (442, 428, 429): # mount_setattr, open_tree, move_mount
    if libc.syscall(number, -100, here, 1, attributes, 32) != -1: got(number)
call("fallocate", read_only, 0, 0, 100)
call("ioctl", read_only, 0x40086602, attributes)
if os.fork() == 0:
    os.chmod("/tmp", 0o777)
    os.setgid(4321); os.setuid(4321)
    os.execv("${MOUNTED_AT}/touch", ["touch", "/tmp/by-set-id"])
os.wait()
if os.stat("/tmp/by-set-id").st_uid != 4321: got("the owner of a set-user-id program")`;

export const MOUNTED: readonly Attempt[] = [
  { name: 'changing a mounted folder', run: ({ container }) => python(container, CHANGE) },
  {
    name: 'the port of another sandbox',
    run: ({ container, neighbourPort }) =>
      python(
        container,
        `for address in ("127.0.0.1", "127.0.0.2", "::1"):
    attempt(address, lambda: socket.create_connection((address, ${neighbourPort}), 2))`,
      ),
  },
];
