/** Instances of our own in SWE-smith's form: images whose tree has no bug, and rows whose patch makes it. */
import { execFileSync } from 'node:child_process';
import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type BuiltExample, type BuiltExamples, buildExamples } from '../examples/build.ts';
import { exampleImage } from './images.ts';
import { SMITH_PROJECTS, type SmithProjectParts } from './smithprojects.ts';

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

/**
 * A project in another language as instances, one for each state of the branch; the images are the example's, with the project and its
 * tools in place of the example's repository.
 */
export async function smithProject(
  folder: string,
  runtime: 'docker' | 'rootfs',
  language: keyof typeof SMITH_PROJECTS,
  branches: readonly Branch[],
): Promise<SmithRow[]> {
  const parts = SMITH_PROJECTS[language];
  const { project, bug, failing, FAIL_TO_PASS, PASS_TO_PASS, problem_statement } = parts;
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: runtime, out: join(folder, 'built') });
  const [example] = built.examples;
  const [given] = built.rows;
  if (!example || !given) throw new Error(`${EXAMPLE_ID} was not built`);
  const [fixed, tools] = [join(folder, 'fixed'), join(folder, 'tools')];
  await parts.fill(fixed, tools);
  const patch = await bugOf(fixed, bug);
  const row = { FAIL_TO_PASS, PASS_TO_PASS, patch, problem_statement };
  const rows: SmithRow[] = [];
  for (const [suffix, branch] of VARIANTS.filter(([, one]) => branches.includes(one))) {
    const instance_id = `${project}.${suffix}`;
    const path = join(folder, suffix);
    await cp(fixed, join(path, 'testbed'), { recursive: true });
    // Nobody writes them, and they are large.
    execFileSync('cp', ['-al', tools, join(path, 'tools')]);
    commitMirror({ project, tree: join(path, 'testbed'), failing, row }, instance_id, branch);
    const image = `localhost/${suffix.replaceAll('_', '-')}/swesmith.x86_64.${project.toLowerCase().replace('__', '_1776_')}`;
    const made = { runtime, name: image, tools: 'tools', path: parts.path };
    const image_name = exampleImage({ ...example, image: given.image }, path, made);
    rows.push({ instance_id, repo: `swesmith/${project}`, image_name, ...row });
  }
  return rows;
}

/** The patch that makes the bug, as git writes it; the tree stays as it is. */
async function bugOf(tree: string, { file, good, bad }: SmithProjectParts['bug']): Promise<string> {
  git(tree, ['init', '-q']);
  git(tree, ['add', '-A']);
  const path = join(tree, file);
  const text = await readFile(path, 'utf8');
  if (text.split(good).length !== 2) throw new Error(`${file} does not have this once: ${good}`);
  await writeFile(path, text.replace(good, bad));
  const patch = git(tree, ['diff', '--no-color']);
  await writeFile(path, text);
  await rm(join(tree, '.git'), { recursive: true });
  return patch;
}
