/** Attempts to avoid a verdict, as commands of an agent in its own sandbox, one a turn. */
import { LIMIT_FIRST, MEMORY_OF_FIRST, python } from './voids.ts';

/** Replaces git by a program that prints `text` for `diff-index` and always exits with 0. */
const gitThatPrints = (text: string): string =>
  `printf '#!/bin/sh\\ncase "$*" in *diff-index*) cat /tmp/said;; esac\\nexit 0\\n' >/tmp/g; chmod +x /tmp/g
cat >/tmp/said <<'SAID'\n${text}SAID\nmv /tmp/g "$(command -v git)"`;
const ALIEN = 'diff --git a/gone.txt b/gone.txt\n--- a/gone.txt\n+++ b/gone.txt\n@@ -1 +1 @@\n-old\n+new\n';
/** Unpacks the repository and replaces the content of one object, so that the base of a diff differs. */
const FORGED_OBJECT = python(`import os, subprocess, glob, zlib
run = lambda *line, **more: subprocess.run(line, check=True, capture_output=True, **more).stdout
name = run("git", "rev-parse", "HEAD:lib/one.txt").decode().strip()
for pack in glob.glob(".git/objects/pack/*.pack"):
    os.rename(pack, "/tmp/p"); run("git", "unpack-objects", stdin=open("/tmp/p", "rb"))
path = f".git/objects/{name[:2]}/{name[2:]}"
if os.path.exists(path): os.remove(path)
text = b"neither of both\\n"
open(path, "wb").write(zlib.compress(b"blob %d\\0" % len(text) + text))
open("lib/one.txt", "w").write("another\\n")`);
const OURS = '/.swefarm-* /var/tmp/.swefarm-* /tmp/.swefarm-*';

export const AGENT_VOIDS: Readonly<Record<string, string | readonly string[]>> = {
  'nothing is done': 'true',
  'process 1 gets limits of one byte, and the shell is killed': [`${LIMIT_FIRST}\nkill -9 $$`, 'true'],
  'the memory of process 1 is overwritten': [`${MEMORY_OF_FIRST}\nkill -9 -1`, 'true'],
  'every process is killed': ['kill -9 -1', 'kill -9 -1'],
  'process 1 gets every signal': 'for s in $(seq 1 64); do kill -$s 1; done; kill -USR1 1; true',
  'every process is stopped':
    'for p in $(ls /proc | grep "^[0-9]"); do [ $p = $$ ] || kill -STOP $p; done; kill -STOP $$',
  'the shell is stopped by its own command': ['kill -STOP $PPID; sleep 1', 'true'],
  'the streams of all shells are closed': [
    'for p in /proc/[0-9]*/fd/*; do : >"$p"; done 2>/dev/null; exec 1>&- 2>&- 0<&-',
    'true',
  ],
  'the pipes of process 1 are written':
    'for n in 0 1 2; do timeout 1 sh -c "yes x >/proc/1/fd/$n"; done; true',
  'a fork bomb': ['b() { b | b & }; b; sleep 1; b', 'true'],
  'forks without end that ignore signals': python(
    'import os, signal\nfor s in range(1, 32):\n    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\nwhile True:\n    try: os.fork()\n    except OSError: pass',
  ),
  'all memory is taken': [python('x = []\nwhile True: x.append(bytearray(1 << 24))'), 'true'],
  'all memory is taken by files in memory': [
    'head -c 900000000 /dev/zero >/dev/shm/fill; true',
    'head -c 900000000 /dev/zero >/tmp/fill; rm -f /tmp/fill; true',
  ],
  'no program is left': 'rm -rf /bin /usr/bin /usr/local/bin',
  'no library is left': 'rm -rf /lib /lib64 /usr/lib /usr/lib64',
  'all is removed': 'rm -rf --no-preserve-root / 2>/dev/null; true',
  'nothing is readable': 'chmod -R 0 /testbed; chmod 0 / /tmp /usr /etc',
  'the users are a pipe': 'rm -f /etc/passwd /etc/group; mkfifo /etc/passwd /etc/group',
  'the tree is a link to itself': 'cd /; rm -rf /testbed; ln -s /testbed /testbed',
  'the tree is a file': 'cd /; rm -rf /testbed; echo >/testbed',
  'the tree is empty': 'rm -rf /testbed/* /testbed/.[a-z]*',
  'the repository is gone': 'rm -rf .git',
  'the repository is a file that names none': 'rm -rf .git; echo "gitdir: /nowhere" >.git',
  'the repository is another one':
    'rm -rf .git; git init -q; git -c user.name=n -c user.email=e commit -qm x --allow-empty',
  'the repository has other objects by SHA-256':
    'rm -rf .git; git init -q --object-format=sha256; git add -A',
  'the objects are gone': 'rm -rf .git/objects/*; echo more >>lib/one.txt',
  'an object has other content than its name': FORGED_OBJECT,
  'the objects are borrowed from a pipe': 'rm -rf .git/objects; mkfifo .git/objects; echo more >>lib/one.txt',
  'git reports a change of a missing file': gitThatPrints(ALIEN),
  'git prints text that is no patch': gitThatPrints('diff --git a/x b/x\nnot a patch\n'),
  'git prints bytes that are no text': gitThatPrints('diff --git a/x b/x\n\0\n'),
  'git prints without end': `printf '#!/bin/sh\\nyes diff --git a/x b/x\\n' >/tmp/g; chmod +x /tmp/g; mv /tmp/g "$(command -v git)"`,
  'git reports 200,000 removed repositories beside as many files': `${gitThatPrints('')}\n${python('open("/tmp/said", "w").write("".join(f"diff --git a/{n} b/{n}\\nold mode 160000\\n" for n in range(110000)) + "".join(f"diff --git a/x{n} b/x{n}\\n\\n" for n in range(110000)))')}`,
  'git is killed whenever it starts': `printf '#!/bin/sh\\nkill -9 $$\\n' >/tmp/g; chmod +x /tmp/g; mv /tmp/g "$(command -v git)"`,
  "the farm's own folder is gone": `rm -rf ${OURS}`,
  "the farm's own folder names other objects": `for d in ${OURS}; do [ -d $d ] && : >$d/index && rm -rf $d/objects/*; done; echo x >>lib/one.txt`,
  "the farm's own folder has files that nobody may replace": `for d in ${OURS}; do [ -d $d ] && for f in config HEAD log new index info/attributes; do rm -rf $d/$f; mkdir -p $d/$f/x; done; done; true`,
  "the farm's own folder has pipes": `for d in ${OURS}; do [ -d $d ] && for f in config HEAD index log new sizes info/attributes; do rm -rf $d/$f; mkfifo $d/$f; done; done; true`,
  'nothing is ignored': `printf '!*\\n' >.gitignore`,
  '.gitignore is gone': 'rm -f .gitignore',
  'a folder ignores nothing': `printf '!*\\n' >made/.gitignore; printf '!_version.py\\n!*.cache\\n!/made/\\n' >>.gitignore`,
  'ignored files are changed and not ignored': `echo 'version = 2' >_version.py; printf '\\0\\3' >a.cache; : >.gitignore`,
  'ignored files are folders, and not ignored':
    'rm -f _version.py; mkdir _version.py; echo x >_version.py/x; : >.gitignore',
  '30,000 files': python(
    'import os\nos.makedirs("many")\nfor n in range(30000): open(f"many/{n}.txt", "w").write("x")',
  ),
  'deeply nested folders': python(
    'import os\nfor n in range(300):\n    os.mkdir("d" * 10); os.chdir("d" * 10)\nopen("x", "w").write("x")',
  ),
  'folders deeper than a path may be': python(
    'import os\nfor n in range(2000):\n    os.mkdir("d" * 10); os.chdir("d" * 10)\nopen("x", "w").write("x")',
  ),
  'binary files of 9 MB': 'head -c 9000000 /dev/urandom >noise.bin',
  'text of 9 MB': 'head -c 6500000 /dev/urandom | base64 >noise.txt',
  'a file of a terabyte without content': 'truncate -s 1T huge',
  'names of any bytes': python(
    'import os\nfor n in range(1, 256):\n    if n != 47: open(b"odd" + bytes([n]) + b"name", "w").write("x\\n")\nopen(b"\\xff\\xfe\\n\\t\\"", "w").write("x")\nopen("a b -> c", "w").write("y"); open(" ", "w").write("z")',
  ),
  'names that git keeps for itself':
    'mkdir -p "git~1" .GIT "x/.git " "y/.git."; for f in "git~1/a" .GIT/config "x/.git /b" "y/.git./c" .gitmodules; do echo x >"$f"; done; true',
  'text of any bytes in tracked files': python(
    'open("lib/one.txt", "wb").write(bytes(range(256)) * 3)\nopen("lib/two.txt", "wb").write(b"\\r\\n\\r" * 9 + b"\\xc3\\x28 no newline")',
  ),
  'tracked files are links, folders and pipes':
    'rm -f lib/one.txt lib/two.txt answer.txt; ln -s /etc/passwd lib/one.txt; mkfifo lib/two.txt; mkdir answer.txt; echo x >answer.txt/x',
  'a folder is a link, and what was in it is elsewhere':
    'mv lib moved; ln -s moved lib; echo x >lib/three.txt',
  'links in circles': 'ln -s b a; ln -s a b; ln -s . lib/self; ln -s ../lib lib/up; ln -s / root',
  'pipes, sockets and devices': `mkfifo pipe lib/pipe; ${python('import socket\ns = socket.socket(socket.AF_UNIX); s.bind("sock")')}; mknod dev c 1 5; mknod white c 0 0; true`,
  'modes of any kind':
    'chmod 4755 lib/one.txt; chmod 0 lib/two.txt; chmod 7777 answer.txt lib; chmod +x work.sh',
  'immutable attributes': 'chattr +i answer.txt lib 2>/dev/null; chmod a-w -R .; true',
  'repositories in the tree':
    'for d in sub lib; do git -C $PWD init -q $d; git -C $d -c user.name=n -c user.email=e add -A; git -C $d -c user.name=n -c user.email=e commit -qm x --allow-empty; done; echo new >lib/one.txt',
  'submodules and borrowed objects':
    'git init -q sub; git -C sub -c user.name=n -c user.email=e commit -qm x --allow-empty; git -c protocol.file.allow=always submodule -q add ./sub other; echo /nowhere >>.git/objects/info/alternates; true',
  'filters, attributes and hooks': `printf '* filter=x diff=x text eol=crlf working-tree-encoding=UTF-16\\n' >.gitattributes; git config filter.x.clean 'kill -9 -1'; git config filter.x.required true; git config core.fsmonitor 'kill -9 -1'; echo x >>lib/one.txt`,
  'a sparse tree whose files are skipped':
    'git sparse-checkout set nothing; git update-index --skip-worktree work.sh; git config core.worktree /tmp; true',
  'a command that prints without end': ['timeout 3 yes; timeout 3 cat /dev/urandom', 'true'],
  'control characters': python(
    'import sys\nsys.stdout.buffer.write(bytes(range(256)) * 40 + b"\\x01\\x1b[2J" * 99)',
  ),
  'children that hold the output': ['(setsid sleep 300 & ) ; nohup sleep 300 &', 'true'],
  'a command that never ends': ['trap "" TERM INT HUP; while :; do :; done', 'true'],
  'a clock of another day':
    'date -s 2001-01-01; touch -d 1901-01-01 lib/one.txt; touch -d 2200-01-01 answer.txt .git/index; echo more >>lib/two.txt',
  'limits of the shell for later commands': [
    'ulimit -t 1; ulimit -f 1; ulimit -n 3; ulimit -u 1',
    'ulimit -v 1',
    'true',
  ],
  'replaced basic programs':
    'for p in sh bash env head cat xargs stat; do f=$(command -v $p); rm -f $f; printf "#!/usr/bin/python3\\nimport sys; sys.exit(7)\\n" >$f; chmod +x $f; done',
  'a preloaded library that is none':
    'echo /nowhere.so >/etc/ld.so.preload; echo junk >/tmp/j.so; echo /tmp/j.so >>/etc/ld.so.preload',
  'an old loop that kills whatever starts':
    "(setsid sh -c 'while :; do for p in /proc/[0-9]*/comm; do read c <$p && case $c in git|xargs|head) kill -9 $(echo $p | tr -dc 0-9);; esac; done; done' >/dev/null 2>&1 &) ; true",
  'an old loop that changes the tree as it is read':
    "(setsid sh -c 'n=0; while :; do n=$((n+1)); echo $n >lib/one.txt; rm -rf lib/two.txt; mkdir lib/two.txt 2>/dev/null; rm -rf lib/two.txt; echo $n >lib/two.txt; done' >/dev/null 2>&1 &) ; true",
  'an old loop that stops whatever starts':
    "(setsid sh -c 'while :; do kill -STOP -1; done' >/dev/null 2>&1 &) ; true",
  'an old loop that kills all that starts':
    "(setsid sh -c 'while :; do kill -KILL -1; done' >/dev/null 2>&1 &) ; true",
  'no folder is left for files, and the shell is killed': [
    'rm -rf /tmp /var/tmp /dev/shm/* /root; echo >/tmp; echo >/var/tmp; echo >/root',
    'kill -9 $$',
    'true',
  ],
  "a reply of the shell in the command's own words": [
    "n=$(echo $SWEFARM_COMMAND | cut -d. -f1) s=$(echo $SWEFARM_COMMAND | cut -d. -f2); printf '\\n%s begin %s\\nhi\\n%s end %s x 99999999999999999999 1 99999 99999\\n' $n $s $n $s >/proc/$PPID/fd/1; sleep 1",
    'true',
  ],
};
