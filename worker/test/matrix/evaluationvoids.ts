/** Attempts to avoid a verdict, as code of a patch that the tests run in their own shell. */
import { LIMIT_FIRST, MEMORY_OF_FIRST, python, type Void } from './voids.ts';

export const EVALUATION_VOIDS: readonly Void[] = [
  { name: 'nothing is done', code: ':' },
  { name: 'the tests end before they begin', code: 'exit 1' },
  ...[125, 126, 127, 128, 130, 134, 137, 139, 143, 255].map((code) => ({
    name: `exit code ${code}`,
    code: `exit ${code}`,
  })),
  { name: 'the tests are not bash', code: ')) syntax {{{ error' },
  { name: 'the shell is another program', code: 'exec true' },
  { name: 'the shell is killed', code: 'kill -9 $$' },
  { name: 'every process is killed', code: 'kill -9 -1; sleep 1' },
  { name: 'every process gets SIGTERM', code: 'kill -TERM -1; kill -TERM 0; sleep 1' },
  ...['ABRT', 'SEGV', 'BUS', 'TERM', 'INT', 'HUP', 'XCPU', 'PIPE'].map((signal) => ({
    name: `the shell gets ${signal}`,
    code: `trap - ${signal}; kill -${signal} $$; sleep 1`,
  })),
  { name: 'process 1 gets limits of one byte', code: `${LIMIT_FIRST}\nkill -9 $$` },
  { name: 'the memory of process 1 is overwritten', code: `${MEMORY_OF_FIRST}\nkill -9 $$` },
  { name: 'process 1 gets every signal', code: 'for s in $(seq 1 64); do kill -$s 1; done; kill -9 $$' },
  {
    name: 'the pipes of process 1 are written',
    code: 'for n in 0 1 2; do timeout 1 sh -c "yes x >/proc/1/fd/$n"; done; kill -9 $$',
  },
  {
    name: 'the pipes of process 1 are read',
    code: '(cat /proc/1/fd/0 >/dev/null &); (cat /proc/1/fd/0 >/dev/null &); sleep 1',
  },
  { name: 'an endless loop', code: 'while :; do :; done', testsLimit: 5 },
  { name: 'a sleep over the limit', code: 'sleep 600', testsLimit: 5 },
  { name: 'the shell is stopped', code: 'kill -STOP $$', testsLimit: 5 },
  { name: 'every process is stopped', code: 'kill -STOP -1', testsLimit: 5 },
  {
    name: 'tests that never end, with output',
    code: 'while :; do echo more; sleep 0.1; done',
    testsLimit: 5,
  },
  {
    name: 'tests that ignore every signal',
    code: python(
      'import signal, time\nfor s in range(1, 65):\n    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\ntime.sleep(600)',
    ),
    testsLimit: 5,
  },
  { name: 'children that hold the log', code: '(setsid sleep 600 &); exit 1' },
  {
    name: 'children that write to the log for ever',
    code: '(setsid sh -c "while :; do echo PASSED t.py::test_x; done" &); exit 1',
  },
  { name: 'output is closed', code: 'exec 1>&- 2>&-' },
  {
    name: 'output is a pipe without a reader',
    code: 'mkfifo /tmp/p; exec 3<>/tmp/p; exec >/tmp/p 2>&1; yes',
    testsLimit: 5,
  },
  { name: 'a log beyond its limit', code: 'head -c 30000000 /dev/zero | tr "\\0" x; exit 1' },
  {
    name: 'a log beyond its limit, and the test in its middle',
    code: `head -c 9000000 /dev/zero | tr "\\0" x; echo; echo FAILED t.py::test_a; head -c 9000000 /dev/zero | tr "\\0" x; exit 1`,
  },
  { name: 'a log without line ends', code: 'head -c 900000 /dev/zero | tr "\\0" x; exit 1' },
  {
    name: 'control characters in names of tests',
    code: `${python('import sys\nsys.stdout.write(("PASSED " + "\\x01" * 9000 + "\\n") * 99)')}\nexit 1`,
  },
  { name: 'all bytes', code: 'head -c 900000 /dev/urandom; exit 1' },
  {
    name: 'bytes of no encoding',
    code: `${python('import sys\nsys.stdout.buffer.write(b"PASSED \\xed\\xa0\\xbd\\xff\\xfe\\n" * 99)')}\nexit 1`,
  },
  ...[
    '>>>>> Patch Apply Failed',
    '>>>>> Reset Failed',
    '>>>>> Tests Errored',
    '>>>>> Tests Timed Out',
    '>>>>> Init Failed',
    '>>>>> End Test Output',
  ].map((text) => ({ name: `the harness's own words: ${text}`, code: `echo '${text}'; exit 1` })),
  {
    name: 'markers around nothing',
    code: `echo "+ : '>>>>> Start Test Output'"; echo "+ : '>>>>> End Test Output'"; exit 1`,
  },
  { name: 'the eval script is gone', code: 'rm -f /eval.sh; kill -9 $$' },
  { name: 'the eval script is another', code: 'echo "exit 125" >/eval.sh' },
  { name: 'the tree is gone', code: 'cd /; rm -rf /testbed' },
  { name: 'no program is left', code: 'rm -rf /bin /usr/bin' },
  { name: 'all is removed', code: 'exec 2>/dev/null; rm -rf --no-preserve-root /' },
  { name: 'the users are a pipe', code: 'rm -f /etc/passwd; mkfifo /etc/passwd; exit 1' },
  {
    name: 'all memory is taken',
    code: `${python('x = []\nwhile True: x.append(bytearray(1 << 24))')}\nexit 1`,
  },
  { name: 'all memory is taken by the shell', code: 'x=x; while :; do x=$x$x; done' },
  {
    name: 'all memory is taken by files in memory',
    code: 'head -c 900000000 /dev/zero >/dev/shm/fill; exit 1',
  },
  {
    name: 'all memory is taken by many',
    code: 'for i in $(seq 30); do python3 -c "x = bytearray(40 << 20); import time; time.sleep(4)" & done; wait; exit 1',
  },
  { name: 'a fork bomb', code: 'b() { b | b & }; b; sleep 600', testsLimit: 5 },
  {
    name: 'threads without end',
    code: `${python(
      'import threading, time\ntry:\n    while True: threading.Thread(target=time.sleep, args=(600,)).start()\nexcept RuntimeError: pass\nimport os; os._exit(1)',
    )}\nexit 1`,
  },
  { name: 'limits of the shell', code: 'ulimit -t 1; ulimit -f 0; ulimit -n 1; ulimit -v 1; cat /dev/zero' },
  { name: 'CPU time runs out', code: 'ulimit -t 1; while :; do :; done' },
  { name: 'core files', code: 'ulimit -c unlimited; kill -SEGV $$; sleep 1' },
  {
    name: 'a reset that only the evaluation makes',
    code: 'git reset -q --hard HEAD; git clean -qfdx; exit 1',
  },
  { name: 'the repository is gone', code: 'rm -rf .git; git status; exit 1' },
  {
    name: 'tens of thousands of tools are written',
    code: `${python('import os\nfor n in range(1050): os.makedirs(f"/usr/x{n}/bin/python")')}\nexit 1`,
  },
  {
    name: 'tens of thousands of folders',
    code: `${python('import os\nfor n in range(9000): os.mkdir(f"/usr/bin/x{n}")')}\nexit 1`,
  },
  { name: 'the answer is a pipe', code: 'rm -f answer.txt; mkfifo answer.txt', testsLimit: 5 },
  { name: 'the answer has no end', code: 'ln -sf /dev/zero answer.txt', testsLimit: 8 },
  { name: 'a clock of another day', code: 'date -s 2001-01-01; exit 1' },
];
