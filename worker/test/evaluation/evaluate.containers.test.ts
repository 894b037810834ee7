/** One evaluation in a real container: files that Python reads at start, and a patch of blanks. */
import type { InstancePlan } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { rowOf, useEvaluator } from './evaluator.ts';

const SITE = '/opt/miniconda3/envs/testbed/lib/python3.11/site-packages';

const at = useEvaluator();
const evaluated = (lines: string[], patch = '', plan: Partial<InstancePlan> = {}) =>
  at.evaluator.run(rowOf(lines), patch, at.image, { plan });

test('an editable installation that writes its .pth is clean and evaluated once', async () => {
  const flit = [`mkdir -p ${SITE}`, `printf /testbed >${SITE}/crate.pth`, `touch ${SITE}/empty.pth`];
  const { report, starts } = await evaluated(flit);
  expect(report).toMatchObject({ resolved: true, trust: { level: 'clean', reasons: [] } });
  expect(starts).toBe(1);
});

test.each([
  ['code', `printf 'import soft\\n' >${SITE}/crate.pth`, 'import soft'],
  ['another place', `printf '/testbed\\n/tmp/soft' >${SITE}/crate.pth`, '/tmp/soft'],
  ['code behind more than anybody reads', `{ seq 5000; echo import soft; } >${SITE}/crate.pth`, 'crate.pth'],
  // The worker reads the file from outside without following links, so it reports the link itself.
  ['a link to code', `echo import soft >/tmp/x; ln -s /tmp/x ${SITE}/crate.pth`, 'crate.pth'],
])('a .pth with %s is reported', async (_what, line, named) => {
  const { report } = await evaluated([`mkdir -p ${SITE}`, line]);
  expect(report).toMatchObject({ resolved: true, trust: { level: 'suspicious' } });
  expect(report.trust.reasons.join()).toContain('files that Python reads at start');
  expect(report.trust.reasons.join()).toContain(named);
});

test('a patch of one newline is a patch for the SWE-Gym fork only, which changes nothing', async () => {
  const name = 'git apply --allow-empty -v';
  const fork: Partial<InstancePlan> = {
    outcomes: { from: 'log', dialect: 'swegym', parser: 'pytest' },
    blank: 'applied',
    apply: [{ name, argv: ['git', 'apply', '--allow-empty', '-v', '/tmp/patch.diff'] }],
  };
  const lines = ['echo "Applied patch t.py cleanly."'];
  expect((await evaluated(lines, '\n', fork)).report).toMatchObject({
    ...{ patch_state: 'applied', applied_with: name },
    ...{ evaluation: 'completed', resolved: true },
  });
  expect((await evaluated(lines, '\n')).report).toMatchObject({ patch_state: 'empty' });
});
