/** The tests see the tree at the start plus the patch, whatever is in the way and whatever the harness's command strips. */
import { chmod } from 'node:fs/promises';
import type { Runtime } from '@swefarm/sandbox';
import { takePatch } from '@swefarm/sandbox';
import { NEVER, sh, snapshotOf, spec } from '@swefarm/sandbox/test/subject.ts';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Evaluator, openEvaluator, rootfsIn, rowOf } from './evaluator.ts';

const folder = temporaryFolder('exact');
let runtime: Runtime;
let evaluator: Evaluator;
beforeAll(async () => {
  await chmod(folder, 0o755);
  runtime = await rootfsIn(folder);
  evaluator = await openEvaluator(runtime);
});
afterAll(() => evaluator[Symbol.asyncDispose]());

const REPOSITORY = `git init -q -b main .; mkdir -p pkg/__pycache__ made data; echo a >pkg/a.py; printf '\\000' >pkg/__pycache__/a.pyc
  echo old >made/lib.js; echo old >version; printf 'x\\n' >table.tab; ln -s ../table.tab data/link
  printf '__pycache__/\\nmade/\\n/version\\n' >.gitignore; git add -A; git -c user.name=n -c user.email=e@x commit -qm base`;
const LIST = `find . -name .git -prune -o -printf '%y %p %l\\n' | sort; cat table.tab | od -c`;

/** Commands of the agent. Each ends in a tree that conflicts with the clean one, or that a harness would change. */
test.each([
  ['a file in place of an ignored folder', 'rm -r made; echo new >made'],
  [
    'a folder in place of an ignored file',
    'rm version; mkdir version; echo new >version/one.txt; echo "!/version/" >>.gitignore',
  ],
  ['a link in place of a package with bytecode', 'rm -r pkg; ln -s data pkg'],
  ['a file in place of a package with bytecode', 'rm -r pkg; echo new >pkg'],
  [
    'blanks, tabs, CR and blank last lines',
    "printf 'x\\nname\\tvalue\\t\\t\\nwin\\r\\nlast  \\n\\n\\n' >table.tab",
  ],
])('%s', async (_what, does) => {
  const image = await evaluator.minimal();
  await using agent = await runtime.start(spec(await runtime.ensureImage(image, NEVER)), NEVER);
  await sh(agent, REPOSITORY);
  const snapshot = await snapshotOf(agent);
  await sh(agent, does);
  const { patch } = await takePatch(agent, snapshot, NEVER);
  const tree = (await sh(agent, LIST)).output.toString();

  const row = rowOf(['cd /testbed', LIST]);
  const argv = ['git', 'apply', '--whitespace=fix', '/tmp/patch.diff'];
  const { report, log } = await evaluator.run(row, patch.toString(), image, {
    fromTree: true,
    plan: {
      before: [{ name: 'repository', script: REPOSITORY, may_fail: false, timeout: 60 }],
      apply: [
        { name: 'git apply --whitespace=fix', argv },
        { name: 'patch', argv: ['patch', '--batch', '--fuzz=5', '-p1', '-i', '/tmp/patch.diff'] },
      ],
    },
  });
  expect(report.applied_with).toBe('git apply --verbose');
  expect(log?.toString()).toContain(tree);
});
