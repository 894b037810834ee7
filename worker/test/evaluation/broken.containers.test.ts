/** Code of a patch that breaks its own evaluation gets a verdict; no attempt is lost. */
import { chmod } from 'node:fs/promises';
import { TEST_IMAGE_MARKER } from '@swefarm/sandbox/test/subject.ts';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { describe, expect, test } from 'vitest';
import { type Evaluator, openEvaluator, rootfsIn, rowOf, useEvaluator } from './evaluator.ts';

const folder = temporaryFolder('broken');
await chmod(folder, 0o755);

const OPEN: Record<string, () => Promise<Evaluator>> = {
  docker: () => openEvaluator(),
  rootfs: async () => openEvaluator(await rootfsIn(folder)),
};
const OUTCOMES = '/tmp/out/outcomes.xml';

/** Shell text that runs before the test ends. */
const BREAKS: Record<string, string> = {
  'no program that reads a file is left': 'rm -f /usr/bin/head /bin/head /usr/bin/cat /bin/cat',
  'no shell is left': 'rm -f /bin/sh /usr/bin/sh',
  'no program is left': 'rm -rf /usr/bin /usr/local/bin',
  'no users are left': 'rm -f /etc/passwd /etc/group',
  'a pipe is where the users are': 'rm -f /etc/passwd; mkfifo /etc/passwd',
  'a pipe is where the outcomes are': `rm -f ${OUTCOMES}; mkfifo ${OUTCOMES}`,
  'a folder is where the outcomes are': `rm -f ${OUTCOMES}; mkdir ${OUTCOMES}`,
  'the outcomes are behind a circle of links': 'rm -rf /tmp/out; ln -s /tmp/out /tmp/out',
  'nobody may enter the folder of the outcomes': 'chmod 0 /tmp/out',
  'a process changes the outcomes for ever': `(while :; do rm -f ${OUTCOMES}; mkfifo ${OUTCOMES}; done) >/dev/null 2>&1 &`,
};

describe.each(Object.keys(OPEN))('on %s', (name) => {
  const at = useEvaluator(OPEN[name]);

  test.each(Object.entries(BREAKS))('%s: judged', async (_what, breaks) => {
    const row = rowOf([
      `[ -e ${TEST_IMAGE_MARKER} ] || exit 99`,
      `mkdir -p /tmp/out; echo "<testsuites/>" >${OUTCOMES}`,
      breaks,
    ]);
    const { report } = await at.evaluator.run(row, '', at.image, { plan: { files: [OUTCOMES] } });
    expect(report.evaluation).toBe('completed');
  });

  test('a file of outcomes of 17 MiB is read', async () => {
    const report = '<testsuites><testcase classname="t" name="test_a"/></testsuites>';
    const row = rowOf([
      `mkdir -p /tmp/out; { head -c 17825792 /dev/zero | tr '\\0' ' '; echo '${report}'; } >${OUTCOMES}`,
    ]);
    const plan = { files: [OUTCOMES], outcomes: { from: 'junit' as const, file: OUTCOMES } };
    const { report: found } = await at.evaluator.run(row, '', at.image, { plan });
    expect(Object.values(found.status_map ?? {})).toEqual(['PASSED']);
  });

  test('a patch with 30,000 new files and a hidden path: judged', async () => {
    const path = (at: number): string => `${'d'.repeat(60)}/${'f'.repeat(30)}${at}.txt`;
    const section = (one: string): string =>
      `diff --git a/${one} b/${one}\nnew file mode 100644\nindex 0000000000000000000000000000000000000000..e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\n`;
    const paths = Array.from({ length: 30_000 }, (_, at) => path(at));
    const row = {
      ...rowOf([`ls ${'d'.repeat(60)} | wc -l`]),
      environment: { setup: [], hidden: ['/answers'], history: 'pruned', env: {} },
    } as unknown as ReturnType<typeof rowOf>;
    const { report, log } = await at.evaluator.run(row, paths.map(section).join(''), at.image, {
      fromTree: true,
    });
    expect(report.patch_state).toBe('applied');
    expect(log?.toString()).toContain('30000');
  });
});
