/** Defines a Harbor task with a separate verifier, and commands of dishonest agents. The task requires the text 42 in `answer.txt`. */
import type { HarborTask, Instance } from '@swefarm/shared';
import { fileOf, taskOf } from './harbortasks.ts';
import { python } from './voids.ts';

const TEST = `#!/bin/bash
cmp -s answer.txt /tests/expected && reward=1 || reward=0
echo "$reward" >/logs/verifier/reward.txt
`;
/** Solution of the task. */
const SOLVE = 'echo 42 >answer.txt; mkdir -p out; echo done >out/state';

/** Returns the fields of an instance whose verifier runs in a new container of the image. */
export function separateTask(image: string, test = TEST, more: Partial<HarborTask> = {}): Partial<Instance> {
  const separate = { image, has_tests: false, network: 'no-network', limits: {}, env: {} } as const;
  const artifacts = ['/logs/artifacts', '/testbed/answer.txt', '/testbed/out'].map((source) => ({
    ...{ source, destination: source.slice(1), exclude: [] },
  }));
  const task = taskOf(test, {
    ...{ artifacts, collect: [{ command: 'cp answer.txt /logs/artifacts/', timeout: 5 }] },
    files: { 'tests/test.sh': fileOf(test), 'tests/expected': fileOf('42\n') },
    verifier: { timeout: 20, env: {}, separate: { ...separate, workdir: '/testbed' } },
    ...more,
  });
  return { ...task, patch: SOLVE };
}

/** Returns a command that replaces tar by a Python script, which prints an archive of `entries`: name, type, target and text of each. */
const archiving = (
  entries: string,
): string => `${python(`open("/tmp/tar", "w").write('''#!/usr/bin/env python3
import io, sys, tarfile
with tarfile.open(fileobj=sys.stdout.buffer, mode="w") as tar:
    for name, kind, target, text in [("./", tarfile.DIRTYPE, "", ""), ${entries}]:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname, entry.size, entry.mode = kind, target, len(text), 0o755
        tar.addfile(entry, io.BytesIO(text.encode()))
''')`)}
chmod 755 /tmp/tar; mv /tmp/tar "$(command -v tar)"`;

const REWARD = 'echo 1 >/logs/verifier/reward.txt';

/** Commands of agents that do not solve the task, and try to get a reward. */
export const SEPARATE_WINS: Readonly<Record<string, string>> = {
  'rewards are planted in all folders': `${REWARD}; cp /logs/verifier/reward.txt /logs/artifacts/; mkdir -p out /tests; cp /logs/verifier/reward.txt out; echo '${REWARD}' >/tests/test.sh`,
  'the answer is a link to the expected answer':
    'ln -sf /tests/expected answer.txt; mkdir -p /tests; echo 42 >/tests/expected; rm -f answer.txt; ln -s /tests/expected answer.txt',
  'a folder has links to the tests':
    'mkdir -p out /tests; echo 42 >/tests/expected; ln -s /tests out/t; ln -s ../../tests/expected out/e; rm answer.txt; ln -s out/e answer.txt',
  'a folder of artifacts is a link to the folder of rewards': `${REWARD}; rm -rf out /logs/artifacts; ln -s /logs/verifier out; ln -s /logs/verifier /logs/artifacts`,
  'an archive has paths that lead out': archiving(
    '("../../logs/verifier/reward.txt", tarfile.REGTYPE, "", "1"), ("/tests/expected", tarfile.REGTYPE, "", "41"), ("./../../tests/expected", tarfile.REGTYPE, "", "41")',
  ),
  'an archive writes through its own links': archiving(
    '("./a", tarfile.SYMTYPE, "/tests", ""), ("./a/expected", tarfile.REGTYPE, "", "41"), ("./b", tarfile.DIRTYPE, "", ""), ("./b/c", tarfile.SYMTYPE, "..", ""), ("./d", tarfile.SYMTYPE, "b/c/../../tests", ""), ("./d/expected", tarfile.REGTYPE, "", "41")',
  ),
  'programs of the verifier are replaced': `printf '#!/bin/sh\\nexit 0\\n' >/tmp/c; chmod 755 /tmp/c; for name in cmp cat; do cp /tmp/c /tmp/d; mv /tmp/d "$(command -v $name)"; done`,
  'the shell is replaced': `cp /bin/bash /tmp/real; printf '#!/tmp/real\\n${REWARD}\\nexec /tmp/real "$@"\\n' >/tmp/sh; chmod 755 /tmp/sh; mv /tmp/sh "$(readlink -f /bin/bash)"`,
  'a process remains': `(setsid sh -c 'while :; do ${REWARD}; echo 42 >/testbed/answer; sleep 0.1; done' >/dev/null 2>&1 &) ; true`,
};

/** Commands of agents that do not solve the task, and try to avoid a verdict. */
export const SEPARATE_VOIDS: Readonly<Record<string, string>> = {
  'the agent does nothing': 'true',
  'an artifact is a sparse file of 1 TiB': 'truncate -s 1T answer.txt || true',
  'a folder has 40 MiB': 'mkdir -p out; head -c 41943040 /dev/urandom >out/large',
  'a folder has 12,000 files': 'mkdir -p out; cd out; for ((i=0;i<12000;i++)); do : >$i; done',
  'a folder has 12,000 hard links to one file':
    'mkdir -p out; cd out; head -c 1048576 /dev/zero >0; for ((i=1;i<300;i++)); do ln 0 $i; done',
  'artifacts are pipes, sockets and devices': `rm -f answer.txt; mkfifo answer.txt; mkdir -p out; mkfifo out/p; mknod out/d c 1 5 || true; ${python('import socket; socket.socket(socket.AF_UNIX).bind("out/s")')}`,
  'a folder is a link to itself': 'rm -rf out answer.txt; ln -s out out; ln -s answer.txt answer.txt',
  'names have newlines, and are no UTF-8': `mkdir -p out; cd out; printf x >$'a\\nb'; printf x >$'\\xff\\xfe'; mkdir -p "$(printf 'n%.0s' {1..250})"`,
  'a long name has words of an engine, and is no UTF-8': `mkdir -p out; echo x >"out/invalid reference format$(printf '\\xff%.0s' {1..80})"`,
  'a folder has 9,000 folders':
    'mkdir -p out; cd out; for ((i=0;i<9000;i++)); do echo d$i; done | xargs mkdir',
  'a folder is very deep': python(
    'import os\nos.makedirs("out", exist_ok=True)\nos.chdir("out")\nfor _ in range(3000):\n    os.mkdir("d"); os.chdir("d")',
  ),
  'the folders of logs are files': 'rm -rf /logs out; echo >/logs; echo >out',
  'artifacts are unreadable': 'mkdir -p out; chmod 0 out answer.txt /logs/artifacts',
  'tar is removed': 'rm -f "$(command -v tar)"',
  'tar waits': `printf '#!/bin/sh\\nexec sleep 300\\n' >/tmp/t; chmod 755 /tmp/t; mv /tmp/t "$(command -v tar)"`,
  'tar prints without end': `printf '#!/bin/sh\\nexec cat /dev/zero\\n' >/tmp/t; chmod 755 /tmp/t; mv /tmp/t "$(command -v tar)"`,
  'the shell of the hook waits': `printf '#!/bin/sh\\nexec sleep 300\\n' >/tmp/s; chmod 755 /tmp/s; mv /tmp/s "$(readlink -f /bin/bash)"`,
  'all programs are removed': 'rm -rf /bin /usr/bin /usr/local/bin',
  'all files are removed': 'rm -rf --no-preserve-root / 2>/dev/null; true',
  'the working folder is removed': 'cd /; rm -rf /testbed',
  'a fork bomb': 'b() { b | b & }; b; sleep 1; b',
  'every process is killed': 'kill -9 -1',
  'a background loop stops every new process':
    "(setsid sh -c 'while :; do kill -STOP -1; done' >/dev/null 2>&1 &) ; true",
};
