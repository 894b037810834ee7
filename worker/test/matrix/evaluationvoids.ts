/** Attempts to avoid a verdict, as code of a patch that the tests run in their own shell. */
import { type Codes, LIMIT_FIRST, MEMORY_OF_FIRST, python } from './voids.ts';

const codesOf = <T>(values: readonly T[], row: (value: T) => [name: string, code: string]): Codes =>
  Object.fromEntries(values.map(row));

const IN_TIME: Codes = {
  'nothing is done': ':',
  'the tests end before they begin': 'exit 1',
  ...codesOf([125, 126, 127, 128, 130, 134, 137, 139, 143, 255], (code) => [
    `exit code ${code}`,
    `exit ${code}`,
  ]),
  'the tests are not bash': ')) syntax {{{ error',
  'the shell is another program': 'exec true',
  'the shell is killed': 'kill -9 $$',
  'every process is killed': 'kill -9 -1; sleep 1',
  'every process gets SIGTERM': 'kill -TERM -1; kill -TERM 0; sleep 1',
  ...codesOf(['ABRT', 'SEGV', 'BUS', 'TERM', 'INT', 'HUP', 'XCPU', 'PIPE'], (signal) => [
    `the shell gets ${signal}`,
    `trap - ${signal}; kill -${signal} $$; sleep 1`,
  ]),
  'process 1 gets limits of one byte': `${LIMIT_FIRST}\nkill -9 $$`,
  'the memory of process 1 is overwritten': `${MEMORY_OF_FIRST}\nkill -9 $$`,
  'process 1 gets every signal': 'for s in $(seq 1 64); do kill -$s 1; done; kill -9 $$',
  'the pipes of process 1 are written':
    'for n in 0 1 2; do timeout 1 sh -c "yes x >/proc/1/fd/$n"; done; kill -9 $$',
  'the pipes of process 1 are read':
    '(cat /proc/1/fd/0 >/dev/null &); (cat /proc/1/fd/0 >/dev/null &); sleep 1',
  'children that hold the log': '(setsid sleep 600 &); exit 1',
  'children that write to the log for ever':
    '(setsid sh -c "while :; do echo PASSED t.py::test_x; done" &); exit 1',
  'output is closed': 'exec 1>&- 2>&-',
  'a log beyond its limit': 'head -c 30000000 /dev/zero | tr "\\0" x; exit 1',
  'a log beyond its limit, and the test in its middle': `head -c 9000000 /dev/zero | tr "\\0" x; echo; echo FAILED t.py::test_a; head -c 9000000 /dev/zero | tr "\\0" x; exit 1`,
  'a log without line ends': 'head -c 900000 /dev/zero | tr "\\0" x; exit 1',
  'control characters in names of tests': `${python('import sys\nsys.stdout.write(("PASSED " + "\\x01" * 9000 + "\\n") * 99)')}\nexit 1`,
  'all bytes': 'head -c 900000 /dev/urandom; exit 1',
  'bytes of no encoding': `${python('import sys\nsys.stdout.buffer.write(b"PASSED \\xed\\xa0\\xbd\\xff\\xfe\\n" * 99)')}\nexit 1`,
  ...codesOf(
    [
      'Patch Apply Failed',
      'Reset Failed',
      'Tests Errored',
      'Tests Timed Out',
      'Init Failed',
      'End Test Output',
    ],
    (words) => [`the harness's own words: >>>>> ${words}`, `echo '>>>>> ${words}'; exit 1`],
  ),
  'markers around nothing': `echo "+ : '>>>>> Start Test Output'"; echo "+ : '>>>>> End Test Output'"; exit 1`,
  'the eval script is gone': 'rm -f /eval.sh; kill -9 $$',
  'the eval script is another': 'echo "exit 125" >/eval.sh',
  'the tree is gone': 'cd /; rm -rf /testbed',
  'no program is left': 'rm -rf /bin /usr/bin',
  'all is removed': 'exec 2>/dev/null; rm -rf --no-preserve-root /',
  'the users are a pipe': 'rm -f /etc/passwd; mkfifo /etc/passwd; exit 1',
  'all memory is taken': `${python('x = []\nwhile True: x.append(bytearray(1 << 24))')}\nexit 1`,
  'all memory is taken by the shell': 'x=x; while :; do x=$x$x; done',
  'all memory is taken by files in memory': 'head -c 900000000 /dev/zero >/dev/shm/fill; exit 1',
  'all memory is taken by many':
    'for i in $(seq 30); do python3 -c "x = bytearray(40 << 20); import time; time.sleep(4)" & done; wait; exit 1',
  'threads without end': `${python(
    'import threading, time\ntry:\n    while True: threading.Thread(target=time.sleep, args=(600,)).start()\nexcept RuntimeError: pass\nimport os; os._exit(1)',
  )}\nexit 1`,
  'limits of the shell': 'ulimit -t 1; ulimit -f 0; ulimit -n 1; ulimit -v 1; cat /dev/zero',
  'CPU time runs out': 'ulimit -t 1; while :; do :; done',
  'core files': 'ulimit -c unlimited; kill -SEGV $$; sleep 1',
  'a reset that only the evaluation makes': 'git reset -q --hard HEAD; git clean -qfdx; exit 1',
  'the repository is gone': 'rm -rf .git; git status; exit 1',
  'tens of thousands of tools are written': `${python('import os\nfor n in range(1050): os.makedirs(f"/usr/x{n}/bin/python")')}\nexit 1`,
  'tens of thousands of folders': `${python('import os\nfor n in range(9000): os.mkdir(f"/usr/bin/x{n}")')}\nexit 1`,
  'a clock of another day': 'date -s 2001-01-01; exit 1',
};

const OVER_5_SECONDS: Codes = {
  'an endless loop': 'while :; do :; done',
  'a sleep over the limit': 'sleep 600',
  'the shell is stopped': 'kill -STOP $$',
  'every process is stopped': 'kill -STOP -1',
  'tests that never end, with output': 'while :; do echo more; sleep 0.1; done',
  'tests that ignore every signal': python(
    'import signal, time\nfor s in range(1, 65):\n    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\ntime.sleep(600)',
  ),
  'output is a pipe without a reader': 'mkfifo /tmp/p; exec 3<>/tmp/p; exec >/tmp/p 2>&1; yes',
  'a fork bomb': 'b() { b | b & }; b; sleep 600',
  'the answer is a pipe': 'rm -f answer.txt; mkfifo answer.txt',
};

const OVER_8_SECONDS: Codes = {
  'the answer has no end': 'ln -sf /dev/zero answer.txt',
};

/** Pairs: time limit of the tests in seconds (undefined: that of scene.ts), and codes. The limit is low where the code exceeds it. */
export const EVALUATION_VOIDS = [
  [undefined, IN_TIME],
  [5, OVER_5_SECONDS],
  [8, OVER_8_SECONDS],
] as const;
