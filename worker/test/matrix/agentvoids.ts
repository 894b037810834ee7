/** Attempts to avoid a verdict, as commands of an agent in its own sandbox. */
import { LIMIT_FIRST, MEMORY_OF_FIRST, python, type Void } from './voids.ts';

/** Replaces git by a program that prints `text` and exits with 0. */
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

export const AGENT_VOIDS: readonly Void[] = [
  { name: 'nothing is done', code: ['true'] },
  {
    name: 'process 1 gets limits of one byte, and the shell is killed',
    code: [`${LIMIT_FIRST}\nkill -9 $$`, 'true'],
  },
  { name: 'the memory of process 1 is overwritten', code: [`${MEMORY_OF_FIRST}\nkill -9 -1`, 'true'] },
  { name: 'every process is killed', code: ['kill -9 -1', 'kill -9 -1'] },
  {
    name: 'process 1 gets every signal',
    code: ['for s in $(seq 1 64); do kill -$s 1; done; kill -USR1 1; true'],
  },
  {
    name: 'every process is stopped',
    code: ['for p in $(ls /proc | grep "^[0-9]"); do [ $p = $$ ] || kill -STOP $p; done; kill -STOP $$'],
  },
  { name: 'the shell is stopped by its own command', code: ['kill -STOP $PPID; sleep 1', 'true'] },
  {
    name: 'the streams of all shells are closed',
    code: ['for p in /proc/[0-9]*/fd/*; do : >"$p"; done 2>/dev/null; exec 1>&- 2>&- 0<&-', 'true'],
  },
  {
    name: 'the pipes of process 1 are written',
    code: ['for n in 0 1 2; do timeout 1 sh -c "yes x >/proc/1/fd/$n"; done; true'],
  },
  { name: 'a fork bomb', code: ['b() { b | b & }; b; sleep 1; b', 'true'] },
  {
    name: 'forks without end that ignore signals',
    code: [
      python(
        'import os, signal\nfor s in range(1, 32):\n    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\nwhile True:\n    try: os.fork()\n    except OSError: pass',
      ),
    ],
  },
  { name: 'all memory is taken', code: [python('x = []\nwhile True: x.append(bytearray(1 << 24))'), 'true'] },
  {
    name: 'all memory is taken by files in memory',
    code: [
      'head -c 900000000 /dev/zero >/dev/shm/fill; true',
      'head -c 900000000 /dev/zero >/tmp/fill; rm -f /tmp/fill; true',
    ],
  },
  { name: 'no program is left', code: ['rm -rf /bin /usr/bin /usr/local/bin'] },
  { name: 'no library is left', code: ['rm -rf /lib /lib64 /usr/lib /usr/lib64'] },
  { name: 'all is removed', code: ['rm -rf --no-preserve-root / 2>/dev/null; true'] },
  { name: 'nothing is readable', code: ['chmod -R 0 /testbed; chmod 0 / /tmp /usr /etc'] },
  { name: 'the users are a pipe', code: ['rm -f /etc/passwd /etc/group; mkfifo /etc/passwd /etc/group'] },
  { name: 'the tree is a link to itself', code: ['cd /; rm -rf /testbed; ln -s /testbed /testbed'] },
  { name: 'the tree is a file', code: ['cd /; rm -rf /testbed; echo >/testbed'] },
  { name: 'the tree is empty', code: ['rm -rf /testbed/* /testbed/.[a-z]*'] },
  { name: 'the repository is gone', code: ['rm -rf .git'] },
  { name: 'the repository is a file that names none', code: ['rm -rf .git; echo "gitdir: /nowhere" >.git'] },
  {
    name: 'the repository is another one',
    code: ['rm -rf .git; git init -q; git -c user.name=n -c user.email=e commit -qm x --allow-empty'],
  },
  {
    name: 'the repository has other objects by SHA-256',
    code: ['rm -rf .git; git init -q --object-format=sha256; git add -A'],
  },
  { name: 'the objects are gone', code: ['rm -rf .git/objects/*; echo more >>lib/one.txt'] },
  { name: 'an object has other content than its name', code: [FORGED_OBJECT] },
  {
    name: 'the objects are borrowed from a pipe',
    code: ['rm -rf .git/objects; mkfifo .git/objects; echo more >>lib/one.txt'],
  },
  { name: 'git reports a change of a missing file', code: [gitThatPrints(ALIEN)] },
  { name: 'git prints text that is no patch', code: [gitThatPrints('diff --git a/x b/x\nnot a patch\n')] },
  { name: 'git prints bytes that are no text', code: [gitThatPrints('diff --git a/x b/x\n\0\n')] },
  {
    name: 'git prints without end',
    code: [
      `printf '#!/bin/sh\\nyes diff --git a/x b/x\\n' >/tmp/g; chmod +x /tmp/g; mv /tmp/g "$(command -v git)"`,
    ],
  },
  {
    name: 'git reports 200,000 removed repositories beside as many files',
    code: [
      `${gitThatPrints('')}\n${python('open("/tmp/said", "w").write("".join(f"diff --git a/{n} b/{n}\\nold mode 160000\\n" for n in range(110000)) + "".join(f"diff --git a/x{n} b/x{n}\\n\\n" for n in range(110000)))')}`,
    ],
  },
  {
    name: 'git is killed whenever it starts',
    code: [`printf '#!/bin/sh\\nkill -9 $$\\n' >/tmp/g; chmod +x /tmp/g; mv /tmp/g "$(command -v git)"`],
  },
  { name: "the farm's own folder is gone", code: [`rm -rf ${OURS}`] },
  {
    name: "the farm's own folder names other objects",
    code: [
      `for d in ${OURS}; do [ -d $d ] && : >$d/index && rm -rf $d/objects/*; done; echo x >>lib/one.txt`,
    ],
  },
  {
    name: "the farm's own folder has files that nobody may replace",
    code: [
      `for d in ${OURS}; do [ -d $d ] && for f in config HEAD log new index info/attributes; do rm -rf $d/$f; mkdir -p $d/$f/x; done; done; true`,
    ],
  },
  {
    name: "the farm's own folder has pipes",
    code: [
      `for d in ${OURS}; do [ -d $d ] && for f in config HEAD index log new sizes info/attributes; do rm -rf $d/$f; mkfifo $d/$f; done; done; true`,
    ],
  },
  { name: 'nothing is ignored', code: [`printf '!*\\n' >.gitignore`] },
  { name: '.gitignore is gone', code: ['rm -f .gitignore'] },
  {
    name: 'a folder ignores nothing',
    code: [`printf '!*\\n' >made/.gitignore; printf '!_version.py\\n!*.cache\\n!/made/\\n' >>.gitignore`],
  },
  {
    name: 'ignored files are changed and not ignored',
    code: [`echo 'version = 2' >_version.py; printf '\\0\\3' >a.cache; : >.gitignore`],
  },
  {
    name: 'ignored files are folders, and not ignored',
    code: ['rm -f _version.py; mkdir _version.py; echo x >_version.py/x; : >.gitignore'],
  },
  {
    name: '30,000 files',
    code: [
      python('import os\nos.makedirs("many")\nfor n in range(30000): open(f"many/{n}.txt", "w").write("x")'),
    ],
  },
  {
    name: 'deeply nested folders',
    code: [
      python(
        'import os\nfor n in range(300):\n    os.mkdir("d" * 10); os.chdir("d" * 10)\nopen("x", "w").write("x")',
      ),
    ],
  },
  {
    name: 'folders deeper than a path may be',
    code: [
      python(
        'import os\nfor n in range(2000):\n    os.mkdir("d" * 10); os.chdir("d" * 10)\nopen("x", "w").write("x")',
      ),
    ],
  },
  { name: 'binary files of 9 MB', code: ['head -c 9000000 /dev/urandom >noise.bin'] },
  { name: 'text of 9 MB', code: ['head -c 6500000 /dev/urandom | base64 >noise.txt'] },
  { name: 'a file of a terabyte without content', code: ['truncate -s 1T huge'] },
  {
    name: 'names of any bytes',
    code: [
      python(
        'import os\nfor n in range(1, 256):\n    if n != 47: open(b"odd" + bytes([n]) + b"name", "w").write("x\\n")\nopen(b"\\xff\\xfe\\n\\t\\"", "w").write("x")\nopen("a b -> c", "w").write("y"); open(" ", "w").write("z")',
      ),
    ],
  },
  {
    name: 'names that git keeps for itself',
    code: [
      'mkdir -p "git~1" .GIT "x/.git " "y/.git."; for f in "git~1/a" .GIT/config "x/.git /b" "y/.git./c" .gitmodules; do echo x >"$f"; done; true',
    ],
  },
  {
    name: 'text of any bytes in tracked files',
    code: [
      python(
        'open("lib/one.txt", "wb").write(bytes(range(256)) * 3)\nopen("lib/two.txt", "wb").write(b"\\r\\n\\r" * 9 + b"\\xc3\\x28 no newline")',
      ),
    ],
  },
  {
    name: 'tracked files are links, folders and pipes',
    code: [
      'rm -f lib/one.txt lib/two.txt answer.txt; ln -s /etc/passwd lib/one.txt; mkfifo lib/two.txt; mkdir answer.txt; echo x >answer.txt/x',
    ],
  },
  {
    name: 'a folder is a link, and what was in it is elsewhere',
    code: ['mv lib moved; ln -s moved lib; echo x >lib/three.txt'],
  },
  {
    name: 'links in circles',
    code: ['ln -s b a; ln -s a b; ln -s . lib/self; ln -s ../lib lib/up; ln -s / root'],
  },
  {
    name: 'pipes, sockets and devices',
    code: [
      `mkfifo pipe lib/pipe; ${python('import socket\ns = socket.socket(socket.AF_UNIX); s.bind("sock")')}; mknod dev c 1 5; mknod white c 0 0; true`,
    ],
  },
  {
    name: 'modes of any kind',
    code: ['chmod 4755 lib/one.txt; chmod 0 lib/two.txt; chmod 7777 answer.txt lib; chmod +x work.sh'],
  },
  {
    name: 'immutable attributes',
    code: ['chattr +i answer.txt lib 2>/dev/null; chmod a-w -R .; true'],
  },
  {
    name: 'repositories in the tree',
    code: [
      'for d in sub lib; do git -C $PWD init -q $d; git -C $d -c user.name=n -c user.email=e add -A; git -C $d -c user.name=n -c user.email=e commit -qm x --allow-empty; done; echo new >lib/one.txt',
    ],
  },
  {
    name: 'submodules and borrowed objects',
    code: [
      'git init -q sub; git -C sub -c user.name=n -c user.email=e commit -qm x --allow-empty; git -c protocol.file.allow=always submodule -q add ./sub other; echo /nowhere >>.git/objects/info/alternates; true',
    ],
  },
  {
    name: 'filters, attributes and hooks',
    code: [
      `printf '* filter=x diff=x text eol=crlf working-tree-encoding=UTF-16\\n' >.gitattributes; git config filter.x.clean 'kill -9 -1'; git config filter.x.required true; git config core.fsmonitor 'kill -9 -1'; echo x >>lib/one.txt`,
    ],
  },
  {
    name: 'a sparse tree whose files are skipped',
    code: [
      'git sparse-checkout set nothing; git update-index --skip-worktree work.sh; git config core.worktree /tmp; true',
    ],
  },
  { name: 'a command that prints without end', code: ['timeout 3 yes; timeout 3 cat /dev/urandom', 'true'] },
  {
    name: 'control characters',
    code: [python('import sys\nsys.stdout.buffer.write(bytes(range(256)) * 40 + b"\\x01\\x1b[2J" * 99)')],
  },
  { name: 'children that hold the output', code: ['(setsid sleep 300 & ) ; nohup sleep 300 &', 'true'] },
  { name: 'a command that never ends', code: ['trap "" TERM INT HUP; while :; do :; done', 'true'] },
  {
    name: 'a clock of another day',
    code: [
      'date -s 2001-01-01; touch -d 1901-01-01 lib/one.txt; touch -d 2200-01-01 answer.txt .git/index; echo more >>lib/two.txt',
    ],
  },
  {
    name: 'limits of the shell for later commands',
    code: ['ulimit -t 1; ulimit -f 1; ulimit -n 3; ulimit -u 1', 'ulimit -v 1', 'true'],
  },
  {
    name: 'replaced basic programs',
    code: [
      'for p in sh bash env head cat xargs stat; do f=$(command -v $p); rm -f $f; printf "#!/usr/bin/python3\\nimport sys; sys.exit(7)\\n" >$f; chmod +x $f; done',
    ],
  },
  {
    name: 'a preloaded library that is none',
    code: ['echo /nowhere.so >/etc/ld.so.preload; echo junk >/tmp/j.so; echo /tmp/j.so >>/etc/ld.so.preload'],
  },
  {
    name: 'an old loop that kills whatever starts',
    code: [
      "(setsid sh -c 'while :; do for p in /proc/[0-9]*/comm; do read c <$p && case $c in git|xargs|head) kill -9 $(echo $p | tr -dc 0-9);; esac; done; done' >/dev/null 2>&1 &) ; true",
    ],
  },
  {
    name: 'an old loop that changes the tree as it is read',
    code: [
      "(setsid sh -c 'n=0; while :; do n=$((n+1)); echo $n >lib/one.txt; rm -rf lib/two.txt; mkdir lib/two.txt 2>/dev/null; rm -rf lib/two.txt; echo $n >lib/two.txt; done' >/dev/null 2>&1 &) ; true",
    ],
  },
  {
    name: 'an old loop that stops whatever starts',
    code: ["(setsid sh -c 'while :; do kill -STOP -1; done' >/dev/null 2>&1 &) ; true"],
  },
  {
    name: 'an old loop that kills all that starts',
    code: ["(setsid sh -c 'while :; do kill -KILL -1; done' >/dev/null 2>&1 &) ; true"],
  },
  {
    name: 'no folder is left for files, and the shell is killed',
    code: [
      'rm -rf /tmp /var/tmp /dev/shm/* /root; echo >/tmp; echo >/var/tmp; echo >/root',
      'kill -9 $$',
      'true',
    ],
  },
  {
    name: "a reply of the shell in the command's own words",
    code: [
      "n=$(echo $SWEFARM_COMMAND | cut -d. -f1) s=$(echo $SWEFARM_COMMAND | cut -d. -f2); printf '\\n%s begin %s\\nhi\\n%s end %s x 99999999999999999999 1 99999 99999\\n' $n $s $n $s >/proc/$PPID/fd/1; sleep 1",
      'true',
    ],
  },
];
