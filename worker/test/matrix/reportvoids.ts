/** Attempts to avoid a verdict by the file in which tests write their outcomes, as code of a patch. */
import { InstancePlan } from '@swefarm/shared';
import { type Codes, python } from './voids.ts';

const REPORT = '/testbed/out/report';
const AT = `mkdir -p out; cd out; rm -f report;`;
const xml = (code: string): string =>
  `${AT} cd ..\n${python(`write = open("out/report", "wb").write\n${code}`)}\nexit 1`;

export const REPORT_VOIDS: Codes = {
  'no report': 'exit 1',
  'a pipe': `${AT} mkfifo report; exit 1`,
  'a socket': `${AT}\n${python('import socket\nsocket.socket(socket.AF_UNIX).bind("report")')}\nexit 1`,
  'a folder': `${AT} mkdir report; exit 1`,
  'a link to itself': `${AT} ln -s report report; exit 1`,
  'a link to memory': `${AT} ln -s /proc/1/mem report; exit 1`,
  'a link without end': `${AT} ln -s /dev/zero report; exit 1`,
  'a folder that is a link to itself': 'rm -rf out; ln -s out out; exit 1',
  'a folder that is a link to procfs': 'rm -rf out; ln -s /proc/1/root/proc/1/fd out; exit 1',
  'a folder in memory': 'rm -rf out; ln -s /dev/shm out; echo x >out/report; exit 1',
  'a folder that is a file': 'rm -rf out; echo x >out; exit 1',
  'a folder that is a link with a name too long': `rm -rf out\n${python('import os\nos.symlink("/".join(["d" * 250] * 16), "out")')}\nexit 1`,
  'a folder that is a link with bytes of no text': `rm -rf out\n${python('import os\nos.symlink(b"/\\xff\\xfe", b"out"); os.mkdir(b"/\\xff\\xfe"); open(b"out/report", "w").write("x")')}\nexit 1`,
  'an inaccessible folder': `${AT} echo x >report; chmod 0 report . ..; exit 1`,
  'a tree that is gone': 'cd /; rm -rf /testbed; ln -s /testbed /testbed; exit 1',
  'a file of a terabyte': `${AT} truncate -s 1T report; exit 1`,
  'all bytes': `${AT} head -c 900000 /dev/urandom >report; exit 1`,
  'nested elements': xml('write(b"<a>" * 300000)'),
  'entities of entities': xml(
    'write(b"<!DOCTYPE a [<!ENTITY e0 \\"x\\">" + b"".join(b"<!ENTITY e%d \\"&e%d;&e%d;\\">" % (n, n - 1, n - 1) for n in range(1, 60)) + b"]><a>&e59;</a>")',
  ),
  'attributes without end': xml('write(b"<a " + b"".join(b"b%d=\\"c\\" " % n for n in range(90000)))'),
  'comments that never end': xml('write(b"<!--" * 250000)'),
  'sections that never end': xml('write(b"<![CDATA[" * 100000)'),
  'a number of any size': `${AT} echo 1e999999 >report; exit 1`,
  'an object of objects': xml('write(b"{\\"reward\\":" * 90000)'),
};

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
