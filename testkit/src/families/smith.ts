/** Instances of our own in SWE-smith's form: images whose tree has no bug, and rows whose patch makes it. */
import { execFileSync } from 'node:child_process';
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type BuiltExample, type BuiltExamples, buildExamples } from '../examples/build.ts';
import { exampleImage } from './images.ts';

const EXAMPLE_ID = 'r1chardj0n3s__parse-1.20.2';
const PROJECT = 'r1chardj0n3s__parse.30da9e4f';

/** What the instance's branch in the image looks like; `absent`: only `main` is there. */
type Branch = 'absent' | 'tests removed' | 'tests there' | 'remote';

export type SmithRow = {
  instance_id: string;
  repo: string;
  patch: string;
  FAIL_TO_PASS: string[];
  PASS_TO_PASS: string[];
  image_name: string;
  problem_statement: string;
};

/** What a mirror of a project holds, and the bug that its instances have. */
type Mirror = {
  project: string;
  /** The tree without the bug, in which git knows nothing yet. */
  tree: string;
  /** The files of FAIL_TO_PASS. */
  failing: string[];
  row: Pick<SmithRow, 'FAIL_TO_PASS' | 'PASS_TO_PASS' | 'patch' | 'problem_statement'>;
};

const git = (cwd: string, argv: string[], input = ''): string =>
  execFileSync(
    'git',
    [
      '-c',
      'user.name=swesmith',
      '-c',
      'user.email=swesmith@swesmith.ai',
      '-c',
      'core.hooksPath=/dev/null',
      ...argv,
    ],
    { cwd, encoding: 'utf8', input, stdio: ['pipe', 'pipe', 'ignore'] },
  );

/** Makes the repository of an image as SWE-smith's mirror and its makers leave it. */
function commitMirror({ tree, failing, row }: Mirror, instanceId: string, branch: Branch): void {
  git(tree, ['init', '-q', '-b', 'main']);
  git(tree, ['add', '-A']);
  git(tree, ['commit', '-q', '-m', 'Initial commit']);
  git(tree, ['remote', 'add', 'origin', 'https://git.invalid/mirror']);
  git(tree, ['update-ref', 'refs/remotes/origin/main', 'main']);
  if (branch === 'absent') return;
  git(tree, ['checkout', '-q', '-b', instanceId]);
  git(tree, ['apply', '-'], row.patch);
  git(tree, ['commit', '-q', '-a', '-m', 'Bug Patch']);
  if (branch !== 'tests there') {
    git(tree, ['rm', '-q', ...failing]);
    git(tree, ['commit', '-q', '-m', 'Remove F2P Tests']);
  }
  git(tree, ['checkout', '-q', 'main']);
  if (branch !== 'remote') return;
  git(tree, ['update-ref', `refs/remotes/origin/${instanceId}`, instanceId]);
  git(tree, ['branch', '-q', '-D', instanceId]);
}

const VARIANTS: [id: string, branch: Branch][] = [
  ['func_basic__absent01', 'absent'],
  ['func_basic__removed1', 'tests removed'],
  ['func_basic__there001', 'tests there'],
  ['func_basic__remote01', 'remote'],
];

/** What all instances of the example have in common. */
type FixedParse = {
  example: BuiltExample;
  given: BuiltExamples['rows'][number];
  /** The tree without the bug, in which git knows nothing yet. */
  tree: string;
  row: Mirror['row'];
  failing: string[];
};

async function fixedParse(folder: string, runtime: 'docker' | 'rootfs'): Promise<FixedParse> {
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: runtime, out: join(folder, 'built') });
  const [example] = built.examples;
  const [given] = built.rows;
  if (!example || !given) throw new Error(`${EXAMPLE_ID} was not built`);
  const tree = join(folder, 'fixed');
  await cp(join(example.tree.path, 'testbed'), tree, { recursive: true });
  git(tree, ['reset', '-q', '--hard']);
  git(tree, ['apply', '-'], given.patch);
  git(tree, ['apply', '-'], given.test_patch);
  git(tree, ['add', '-A']);
  const patch = reversed(tree, given.patch);
  await rm(join(tree, '.git'), { recursive: true });
  const { FAIL_TO_PASS, PASS_TO_PASS, problem_statement } = given;
  const failing = [...new Set(FAIL_TO_PASS.map((test) => test.split('::', 1)[0] ?? ''))];
  return { example, given, tree, row: { FAIL_TO_PASS, PASS_TO_PASS, patch, problem_statement }, failing };
}

/** The example `parse` as instances of SWE-smith's project of that name, one for each state of the branch. */
export async function smithParse(
  folder: string,
  runtime: 'docker' | 'rootfs',
  branches: readonly Branch[] = VARIANTS.map(([, branch]) => branch),
): Promise<SmithRow[]> {
  const { example, given, tree: fixed, row, failing } = await fixedParse(folder, runtime);
  const rows: SmithRow[] = [];
  for (const [suffix, branch] of VARIANTS.filter(([, one]) => branches.includes(one))) {
    const instance_id = `${PROJECT}.${suffix}`;
    const tree = join(folder, suffix, 'testbed');
    await cp(fixed, tree, { recursive: true });
    commitMirror({ project: PROJECT, tree, failing, row }, instance_id, branch);
    // Named as the project's image in a registry of one's own.
    const name = `localhost/${suffix.replaceAll('_', '-')}/swesmith.x86_64.r1chardj0n3s_1776_parse.30da9e4f`;
    const image = exampleImage({ ...example, image: given.image }, join(folder, suffix), { runtime, name });
    rows.push({ instance_id, repo: `swesmith/${PROJECT}`, image_name: image, ...row });
  }
  return rows;
}

/**
 * The same as so many instances of one Docker image, which has the project's own name, as SWE-smith's harness asks for: each with
 * a branch in it. `gold`: the patch that mends them. @param named gives the image; its context is the folder that it gets
 */
export async function smithMirror(
  folder: string,
  count: number,
  named: (context: string, base: string) => Promise<string>,
): Promise<{ rows: SmithRow[]; gold: string }> {
  const { given, tree: fixed, row, failing } = await fixedParse(folder, 'docker');
  const tree = join(folder, 'mirror/testbed');
  await cp(fixed, tree, { recursive: true });
  const ids = Array.from({ length: count }, (_, n) => `${PROJECT}.func_basic__${String(n).padStart(8, '0')}`);
  const [first = ''] = ids;
  commitMirror({ project: PROJECT, tree, failing, row }, first, 'tests removed');
  for (const id of ids.slice(1)) git(tree, ['branch', '-q', id, first]);
  const image_name = await named(join(folder, 'mirror'), given.image);
  const rows = ids.map((instance_id) => ({ instance_id, repo: `swesmith/${PROJECT}`, image_name, ...row }));
  return { rows, gold: given.patch };
}

/** The patch that undoes another, as git writes it. */
function reversed(tree: string, patch: string): string {
  git(tree, ['commit', '-q', '-m', 'fixed']);
  git(tree, ['apply', '-R', '-'], patch);
  const text = git(tree, ['diff', '--no-color', 'HEAD']);
  git(tree, ['reset', '-q', '--hard']);
  return text;
}

type OwnProject = {
  project: string;
  id: string;
  files: Record<string, string>;
  /** What the bug replaces in a file. */
  bug: { file: string; good: string; bad: string };
  failing: string[];
  FAIL_TO_PASS: string[];
  PASS_TO_PASS: string[];
  /** Folders of programs on this machine, which the image's PATH has first. */
  path: string[];
};

/** An instance of a project whose files are given, on the host's own programs, with no branch of its own; for rootfs. */
export async function smithOwn(folder: string, own: OwnProject): Promise<SmithRow> {
  const { project, id, bug, failing, FAIL_TO_PASS, PASS_TO_PASS } = own;
  const image = join(folder, id);
  const tree = join(image, 'testbed');
  for (const [name, text] of Object.entries(own.files)) {
    await mkdir(dirname(join(tree, name)), { recursive: true });
    await writeFile(join(tree, name), text);
  }
  const instance_id = `${project}.${id}`;
  const row = { FAIL_TO_PASS, PASS_TO_PASS, patch: '', problem_statement: 'It counts one too few.' };
  commitMirror({ project, tree, failing, row }, instance_id, 'absent');
  const path = join(tree, bug.file);
  await writeFile(path, (await readFile(path, 'utf8')).replace(bug.good, bug.bad));
  row.patch = git(tree, ['diff', '--no-color']);
  git(tree, ['checkout', '-q', '--', '.']);
  await writeFile(
    `${image}.json`,
    JSON.stringify({ Env: [`PATH=${[...own.path, '/usr/local/bin:/usr/bin:/bin'].join(':')}`, 'HOME=/tmp'] }),
  );
  return { instance_id, repo: `swesmith/${project}`, image_name: `host+dir:${image}`, ...row };
}
