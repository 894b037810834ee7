/**
 * The smallest instance: the minimal image with a tiny repository, and its dataset row. It is so small that the farm's own
 * cost stays measurable; it is made from this machine's programs, so that nothing is downloaded.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Instance } from '@swefarm/shared';
import { run } from '../launchers/run.ts';
import { commitTree, headOf, writeTree } from '../repository.ts';
import { minimalImage } from './minimal.ts';

const FILES: Record<string, string> = {
  'README.md': `# calc\n\n${Array.from({ length: 40 }, (_, line) => `Line ${line} of what calc is for.`).join('\n')}\n`,
  'calc/__init__.py': '',
  'calc/ops.py': [
    'def add(a, b):\n    return a - b\n',
    ...Array.from({ length: 30 }, (_, n) => `def times_${n}(a):\n    return a * ${n}\n`),
  ].join('\n\n'),
  'tests/run.py': [
    'import os, sys\n',
    'sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))',
    'from calc.ops import add, times_3\n',
    'CASES = {"test_times": times_3(2) == 6}',
    'for name, good in CASES.items():',
    '    print("PASSED" if good else "FAILED", f"tests/run.py::{name}")',
    'failed = sum(not good for good in CASES.values())',
    // The end of a pytest session: the grader does not trust a log without it.
    'print(f"{failed} failed, " * (failed > 0) + f"{len(CASES) - failed} passed in 0.01s")',
    'sys.exit(failed > 0)\n',
  ].join('\n'),
};
const TESTED = (FILES['tests/run.py'] ?? '').replace('CASES = {', 'CASES = {"test_add": add(2, 2) == 4, ');
/** Content of conda's activate script, which the harness's scripts source. */
const ACTIVATE = 'conda() { :; }\n';
const DATE = '2024-01-01T00:00:00Z';
/** Fixed dates and no user configuration, so that the same files give the same commit. */
const ALIKE = { GIT_AUTHOR_DATE: DATE, GIT_COMMITTER_DATE: DATE, GIT_CONFIG_GLOBAL: '/dev/null' };

export type Subject = { tree: string; image: string; instance: Instance };

/** Builds once per content; later calls return the cached one. */
export async function prepareSubject(): Promise<Subject> {
  const minimal = await minimalImage();
  const recipe = JSON.stringify([minimal.version, FILES, TESTED, ACTIVATE]);
  const version = createHash('sha256').update(recipe).digest('hex').slice(0, 12);
  const folder = join(tmpdir(), `swefarm-bench-${process.getuid?.() ?? 0}`, version);
  if (!existsSync(folder)) await build(minimal.tree, folder);
  const tree = join(folder, 'tree');
  const image = `swefarm-bench/calc:${version}`;
  const row = JSON.parse(await readFile(join(folder, 'row.json'), 'utf8')) as Record<string, unknown>;
  return { tree, image, instance: Instance.parse({ ...row, image }) };
}

async function build(minimalTree: string, folder: string): Promise<void> {
  const building = `${folder}.${process.pid}`;
  const tree = join(building, 'tree');
  await mkdir(building, { recursive: true });
  await run('cp', ['-a', '--reflink=auto', minimalTree, tree]);
  const testbed = join(tree, 'testbed');
  await writeTree(testbed, FILES);
  await writeTree(tree, { 'opt/miniconda3/bin/activate': ACTIVATE });
  const git = commitTree(testbed, 'calc', ALIKE);
  await writeFile(join(testbed, 'tests/run.py'), TESTED);
  const testPatch = git`diff`;
  git`checkout -q -- .`;
  await writeFile(join(building, 'row.json'), JSON.stringify(rowOf(headOf(git), testPatch)));
  // Two benchmarks may build at once; the later one uses the tree of the first.
  await rename(building, folder).catch(() => rm(building, { recursive: true, force: true }));
}

const rowOf = (base: string, testPatch: string): Record<string, unknown> => ({
  instance_id: 'bench__calc-1',
  repo: 'bench/calc',
  base_commit: base,
  version: '1',
  problem_statement: 'add(2, 2) is 0. It should be 4.',
  test_patch: testPatch,
  FAIL_TO_PASS: ['tests/run.py::test_add'],
  PASS_TO_PASS: ['tests/run.py::test_times'],
  family: 'custom',
  test_cmd: 'python3 -B',
  log_parser: 'pytest',
});
