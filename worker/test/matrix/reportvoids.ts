/** Attempts to avoid a verdict by the file in which tests write their outcomes, as code of a patch. */
import { InstancePlan } from '@swefarm/shared';
import { python, type Void } from './voids.ts';

const REPORT = '/testbed/out/report';
const AT = `mkdir -p out; cd out; rm -f report;`;
const xml = (code: string): string =>
  `${AT} cd ..\n${python(`write = open("out/report", "wb").write\n${code}`)}\nexit 1`;

export const REPORT_VOIDS: readonly Void[] = [
  { name: 'no report', code: 'exit 1' },
  { name: 'a pipe', code: `${AT} mkfifo report; exit 1` },
  {
    name: 'a socket',
    code: `${AT}\n${python('import socket\nsocket.socket(socket.AF_UNIX).bind("report")')}\nexit 1`,
  },
  { name: 'a folder', code: `${AT} mkdir report; exit 1` },
  { name: 'a link to itself', code: `${AT} ln -s report report; exit 1` },
  { name: 'a link to memory', code: `${AT} ln -s /proc/1/mem report; exit 1` },
  { name: 'a link without end', code: `${AT} ln -s /dev/zero report; exit 1` },
  { name: 'a folder that is a link to itself', code: 'rm -rf out; ln -s out out; exit 1' },
  { name: 'a folder that is a link to procfs', code: 'rm -rf out; ln -s /proc/1/root/proc/1/fd out; exit 1' },
  { name: 'a folder in memory', code: 'rm -rf out; ln -s /dev/shm out; echo x >out/report; exit 1' },
  { name: 'a folder that is a file', code: 'rm -rf out; echo x >out; exit 1' },
  {
    name: 'a folder that is a link with a name too long',
    code: `rm -rf out\n${python('import os\nos.symlink("/".join(["d" * 250] * 16), "out")')}\nexit 1`,
  },
  {
    name: 'a folder that is a link with bytes of no text',
    code: `rm -rf out\n${python('import os\nos.symlink(b"/\\xff\\xfe", b"out"); os.mkdir(b"/\\xff\\xfe"); open(b"out/report", "w").write("x")')}\nexit 1`,
  },
  { name: 'an inaccessible folder', code: `${AT} echo x >report; chmod 0 report . ..; exit 1` },
  { name: 'a tree that is gone', code: 'cd /; rm -rf /testbed; ln -s /testbed /testbed; exit 1' },
  { name: 'a file of a terabyte', code: `${AT} truncate -s 1T report; exit 1` },
  { name: 'all bytes', code: `${AT} head -c 900000 /dev/urandom >report; exit 1` },
  { name: 'nested elements', code: xml('write(b"<a>" * 300000)') },
  {
    name: 'entities of entities',
    code: xml(
      'write(b"<!DOCTYPE a [<!ENTITY e0 \\"x\\">" + b"".join(b"<!ENTITY e%d \\"&e%d;&e%d;\\">" % (n, n - 1, n - 1) for n in range(1, 60)) + b"]><a>&e59;</a>")',
    ),
  },
  {
    name: 'attributes without end',
    code: xml('write(b"<a " + b"".join(b"b%d=\\"c\\" " % n for n in range(90000)))'),
  },
  { name: 'comments that never end', code: xml('write(b"<!--" * 250000)') },
  { name: 'sections that never end', code: xml('write(b"<![CDATA[" * 100000)') },
  { name: 'a number of any size', code: `${AT} echo 1e999999 >report; exit 1` },
  { name: 'an object of objects', code: xml('write(b"{\\"reward\\":" * 90000)') },
];

/** @param from the format of the file */
export const planOf = (from: 'junit' | 'reward'): InstancePlan =>
  InstancePlan.parse({
    grader: 'own-1.0',
    apply: [{ name: 'git apply', argv: ['git', 'apply', '/tmp/patch.diff'] }],
    script: `cd /testbed
. ./work.sh
mkdir -p out
[ "$(cat answer.txt)" = 42 ] && passed=1 || passed=0
${
  from === 'reward'
    ? `echo $passed >${REPORT}`
    : `[ $passed = 1 ] || failure='<failure/>'
echo "<testsuite><testcase classname='t' name='test_a'>$failure</testcase></testsuite>" >${REPORT}`
}
`,
    outcomes: { from, file: REPORT },
    verdict: { rule: from === 'junit' ? 'junit_ids' : 'reward' },
  });
