/** Instances of our own in SWE-smith's form: images whose tree has no bug, and rows whose patch makes it. */
import { execFileSync } from 'node:child_process';
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { buildExamples } from '@swefarm/testkit';
import { exampleImage } from './exampleimages.ts';
import { EXAMPLE_ID } from './scripts.ts';

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

/** The example `parse` as instances of SWE-smith's project of that name, one for each state of the branch. */
export async function smithParse(
  folder: string,
  runtime: 'docker' | 'rootfs',
  branches: readonly Branch[] = VARIANTS.map(([, branch]) => branch),
): Promise<SmithRow[]> {
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: runtime, out: join(folder, 'built') });
  const [example] = built.examples;
  const [given] = built.rows;
  if (!example || !given) throw new Error(`${EXAMPLE_ID} was not built`);
  const project = 'r1chardj0n3s__parse.30da9e4f';
  const fixed = join(folder, 'fixed');
  await cp(join(example.tree.path, 'testbed'), fixed, { recursive: true });
  git(fixed, ['reset', '-q', '--hard']);
  git(fixed, ['apply', '-'], given.patch);
  git(fixed, ['apply', '-'], given.test_patch);
  git(fixed, ['add', '-A']);
  const patch = reversed(fixed, given.patch);
  await rm(join(fixed, '.git'), { recursive: true });
  const failing = [...new Set(given.FAIL_TO_PASS.map((test) => test.split('::', 1)[0] ?? ''))];
  const rows: SmithRow[] = [];
  for (const [suffix, branch] of VARIANTS.filter(([, one]) => branches.includes(one))) {
    const instance_id = `${project}.${suffix}`;
    const tree = join(folder, suffix, 'testbed');
    await cp(fixed, tree, { recursive: true });
    const { FAIL_TO_PASS, PASS_TO_PASS, problem_statement } = given;
    const row = { FAIL_TO_PASS, PASS_TO_PASS, patch, problem_statement };
    commitMirror({ project, tree, failing, row }, instance_id, branch);
    // Named as the project's image in a registry of one's own.
    const name = `localhost/${suffix.replaceAll('_', '-')}/swesmith.x86_64.r1chardj0n3s_1776_parse.30da9e4f`;
    const image = exampleImage({ ...example, image: given.image }, join(folder, suffix), { runtime, name });
    rows.push({ instance_id, repo: `swesmith/${project}`, image_name: image, ...row });
  }
  return rows;
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
