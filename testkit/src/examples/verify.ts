/**
 * Checks an example: without gold its FAIL_TO_PASS fail and its PASS_TO_PASS pass, with gold all tests pass.
 * `node testkit/src/examples/verify.ts [--ids a,b] [--record]`; --record writes the lists into the recipes.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { errorMessage } from '@swefarm/shared';
import { type BuiltExample, buildExamples } from './build.ts';
import { inTree, type Tree } from './environment.ts';
import type { Recipe } from './recipe.ts';
import { run } from './run.ts';

/** Test id → PASSED, FAILED, ERROR, …, as in pytest's summary. */
export type Statuses = Record<string, string>;

/** The bash script that runs the tests; the patches are in /setup, and `gold.diff` may be empty. */
export function testScript(recipe: Recipe): string {
  return [
    'source /opt/miniconda3/bin/activate && conda activate testbed && cd /testbed || exit 90',
    'if [ -s /setup/gold.diff ]; then git apply /setup/gold.diff || exit 91; fi',
    `{ ${recipe.install ?? ':'} ; } || exit 92`,
    'git apply /setup/test.diff || exit 93',
    `${recipe.test_cmd} ${recipe.test_patch.map((entry) => entry.file).join(' ')}`,
  ].join('\n');
}

export function readStatuses(log: string): Statuses {
  const statuses: Statuses = {};
  for (const line of log.split('\n')) {
    const found = /^(PASSED|FAILED|ERROR|SKIPPED|XFAIL) (\S+)/.exec(line);
    if (found?.[1] && found[2]) statuses[found[2]] = found[1];
  }
  return statuses;
}

/** Runs the example's tests in a copy of its tree. Throws SwefarmError when they cannot be started. */
export async function testStatuses(
  { recipe, patches, tree }: BuiltExample,
  gold: boolean,
  signal: AbortSignal,
): Promise<Statuses> {
  // On the file system of the tree, so that hard links are possible.
  const scratch = await mkdtemp(join(tree.path, '..', 'verify-'));
  try {
    const copy: Tree = { kind: tree.kind, path: join(scratch, 'tree') };
    const setup = join(scratch, 'setup');
    await run(['mkdir', setup], { signal });
    await writeFile(join(setup, 'gold.diff'), gold ? patches.patch : '');
    await writeFile(join(setup, 'test.diff'), patches.test_patch);
    await run(['cp', '-al', tree.path, copy.path], { signal });
    for (const inside of ['testbed', 'opt/miniconda3']) {
      // Files that an evaluation writes to are copied, not linked, so that the original tree is not modified.
      await rm(join(copy.path, inside), { recursive: true });
      await run(['cp', '-a', join(tree.path, inside), join(copy.path, inside)], { signal });
    }
    const ran = await inTree(copy, testScript(recipe), { setup, signal, allow: [0, 1] });
    return readStatuses(ran.stdout);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

export type Verdict = {
  instance_id: string;
  FAIL_TO_PASS: string[];
  PASS_TO_PASS: string[];
  /** Empty when the recipe's lists match the test results. */
  problems: string[];
};

/** Compares the test results before and after gold with the recipe's lists. */
export function judge(recipe: Recipe, before: Statuses, after: Statuses): Verdict {
  const passedAfter = Object.keys(after).filter((id) => after[id] === 'PASSED');
  const FAIL_TO_PASS = passedAfter.filter((id) => before[id] !== 'PASSED').sort();
  const PASS_TO_PASS = passedAfter.filter((id) => before[id] === 'PASSED').sort();
  const problems: string[] = [];
  for (const id of recipe.FAIL_TO_PASS) {
    if (before[id] === 'PASSED') problems.push(`${id} passes without gold`);
    if (after[id] !== 'PASSED') problems.push(`${id} is ${after[id] ?? 'absent'} with gold`);
  }
  for (const id of recipe.PASS_TO_PASS) {
    if (before[id] !== 'PASSED') problems.push(`${id} is ${before[id] ?? 'absent'} without gold`);
    if (after[id] !== 'PASSED') problems.push(`${id} is ${after[id] ?? 'absent'} with gold`);
  }
  if (recipe.FAIL_TO_PASS.length === 0) problems.push('FAIL_TO_PASS is empty');
  return { instance_id: recipe.instance_id, FAIL_TO_PASS, PASS_TO_PASS, problems };
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { ids: { type: 'string' }, record: { type: 'boolean', default: false } },
  });
  const signal = AbortSignal.timeout(600_000);
  const note = (line: string) => process.stderr.write(`${line}\n`);
  const out = await mkdtemp(join(tmpdir(), 'swefarm-verify-'));
  const ids = values.ids?.split(',').filter(Boolean);
  const built = await buildExamples({ for: 'rootfs', out, note, signal, ...(ids ? { ids } : {}) });
  await rm(out, { recursive: true });
  for (const example of built.examples) {
    const { recipe } = example;
    const [before, after] = [
      await testStatuses(example, false, signal),
      await testStatuses(example, true, signal),
    ];
    const verdict = judge(recipe, before, after);
    if (values.record) await record(recipe.instance_id, verdict);
    const counts = `${verdict.FAIL_TO_PASS.length} fail to pass, ${verdict.PASS_TO_PASS.length} pass to pass`;
    process.stdout.write(`${recipe.instance_id}: ${counts}\n`);
    if (values.record) continue;
    for (const problem of verdict.problems) process.stdout.write(`  ${problem}\n`);
    if (verdict.problems.length > 0) process.exitCode = 10;
  }
}

async function record(id: string, verdict: Verdict): Promise<void> {
  const path = resolve(import.meta.dirname, '../../../examples/recipes', `${id}.json`);
  const recipe = JSON.parse(await readFile(path, 'utf8')) as Record<string, unknown>;
  const { FAIL_TO_PASS, PASS_TO_PASS } = verdict;
  await writeFile(path, `${JSON.stringify({ ...recipe, FAIL_TO_PASS, PASS_TO_PASS }, null, 2)}\n`);
}

if (import.meta.main) {
  main().catch((error: unknown) => {
    process.stderr.write(`verify: ${errorMessage(error)}\n`);
    process.exitCode = 12;
  });
}
