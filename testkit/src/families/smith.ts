/** Makes instances in SWE-smith's form: images whose tree has no bug, and rows whose patch adds the bug. */
import { execFileSync } from 'node:child_process';
import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type BuiltExample, type BuiltExamples, buildExamples } from '../examples/build.ts';
import { words } from '../launchers/commands.ts';
import { exampleImage } from './images.ts';
import { SMITH_PROJECTS, type SmithProjectParts } from './smithprojects.ts';

const EXAMPLE_ID = 'r1chardj0n3s__parse-1.20.2';
const PROJECT = 'r1chardj0n3s__parse.30da9e4f';

/** State of the instance's branch in the image; `absent`: there is only `main`. */
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

/** Content of a project's mirror, and the bug of its instances. */
type Mirror = {
  project: string;
  /** The tree without the bug and without a git repository. */
  tree: string;
  /** The files of FAIL_TO_PASS. */
  failing: string[];
  row: Pick<SmithRow, 'FAIL_TO_PASS' | 'PASS_TO_PASS' | 'patch' | 'problem_statement'>;
};

const WHO = words`-c user.name=swesmith -c user.email=swesmith@swesmith.ai -c core.hooksPath=/dev/null`;
const git = (cwd: string, argv: string[], input = ''): string =>
  execFileSync('git', [...WHO, ...argv], {
    ...{ cwd, encoding: 'utf8', input, stdio: ['pipe', 'pipe', 'ignore'] },
  });

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

/** The built example, whose image all images of instances extend. */
type Base = BuiltExample & { image: string; given: BuiltExamples['rows'][number] };

async function buildBase(folder: string, runtime: 'docker' | 'rootfs'): Promise<Base> {
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: runtime, out: join(folder, 'built') });
  const [example] = built.examples;
  const [given] = built.rows;
  if (!example || !given) throw new Error(`${EXAMPLE_ID} was not built`);
  return { ...example, given, image: given.image };
}

async function fixedParse(folder: string, { tree: base, given }: Base): Promise<Mirror> {
  const tree = join(folder, 'fixed');
  await cp(join(base.path, 'testbed'), tree, { recursive: true });
  git(tree, ['reset', '-q', '--hard']);
  git(tree, ['apply', '-'], given.patch);
  git(tree, ['apply', '-'], given.test_patch);
  git(tree, ['add', '-A']);
  const patch = reversed(tree, given.patch);
  await rm(join(tree, '.git'), { recursive: true });
  const { FAIL_TO_PASS, PASS_TO_PASS, problem_statement } = given;
  const failing = [...new Set(FAIL_TO_PASS.map((test) => test.split('::', 1)[0] ?? ''))];
  const row = { FAIL_TO_PASS, PASS_TO_PASS, patch, problem_statement };
  return { project: PROJECT, tree, failing, row };
}

/** Makes one instance for each state of the branch. @param tools folder that becomes `/tools`, and the image's PATH */
async function instancesOf(
  { project, tree: fixed, failing, row }: Mirror,
  folder: string,
  base: Base,
  runtime: 'docker' | 'rootfs',
  branches: readonly Branch[],
  tools?: { folder: string; path: string },
): Promise<SmithRow[]> {
  const rows: SmithRow[] = [];
  for (const [suffix, branch] of VARIANTS.filter(([, one]) => branches.includes(one))) {
    const instance_id = `${project}.${suffix}`;
    const path = join(folder, suffix);
    const tree = join(path, 'testbed');
    await cp(fixed, tree, { recursive: true });
    // The tools are large, and no process writes to them, so hard links suffice.
    if (tools) execFileSync('cp', ['-al', tools.folder, join(path, 'tools')]);
    commitMirror({ project, tree, failing, row }, instance_id, branch);
    // The name is that of the project's image in a private registry.
    const name = `localhost/${suffix.replaceAll('_', '-')}/swesmith.x86_64.${project.toLowerCase().replace('__', '_1776_')}`;
    const image_name = exampleImage(base, path, {
      ...{ runtime, name },
      ...(tools && { tools: 'tools', path: tools.path }),
    });
    rows.push({ instance_id, repo: `swesmith/${project}`, image_name, ...row });
  }
  return rows;
}

/** Makes instances of SWE-smith's project `parse` from the example, one for each state of the branch. */
export async function smithParse(
  folder: string,
  runtime: 'docker' | 'rootfs',
  branches: readonly Branch[] = VARIANTS.map(([, branch]) => branch),
): Promise<SmithRow[]> {
  const base = await buildBase(folder, runtime);
  return await instancesOf(await fixedParse(folder, base), folder, base, runtime, branches);
}

/**
 * Makes `count` instances of the same project with one Docker image, which has a branch for each instance, as SWE-smith's harness
 * needs. `gold`: the patch that fixes them. @param named builds the image from a context folder, and returns its name
 */
export async function smithMirror(
  folder: string,
  count: number,
  named: (context: string, base: string) => Promise<string>,
): Promise<{ rows: SmithRow[]; gold: string }> {
  const base = await buildBase(folder, 'docker');
  const mirror = await fixedParse(folder, base);
  const tree = join(folder, 'mirror/testbed');
  await cp(mirror.tree, tree, { recursive: true });
  const ids = Array.from({ length: count }, (_, n) => `${PROJECT}.func_basic__${String(n).padStart(8, '0')}`);
  const [first = ''] = ids;
  commitMirror({ ...mirror, tree }, first, 'tests removed');
  for (const id of ids.slice(1)) git(tree, ['branch', '-q', id, first]);
  const image_name = await named(join(folder, 'mirror'), base.image);
  const rows = ids.map((instance_id) => ({
    instance_id,
    repo: `swesmith/${PROJECT}`,
    image_name,
    ...mirror.row,
  }));
  return { rows, gold: base.given.patch };
}

/** Returns the patch that reverts another patch. */
function reversed(tree: string, patch: string): string {
  git(tree, ['commit', '-q', '-m', 'fixed']);
  git(tree, ['apply', '-R', '-'], patch);
  const text = git(tree, ['diff', '--no-color', 'HEAD']);
  git(tree, ['reset', '-q', '--hard']);
  return text;
}

/**
 * Makes instances of a project in another language, one for each state of the branch. The images are the example's, with the project
 * and its tools in place of the example's repository.
 */
export async function smithProject(
  folder: string,
  runtime: 'docker' | 'rootfs',
  language: keyof typeof SMITH_PROJECTS,
  branches: readonly Branch[],
): Promise<SmithRow[]> {
  const { project, bug, failing, fill, path, ...columns } = SMITH_PROJECTS[language];
  const base = await buildBase(folder, runtime);
  const [tree, tools] = [join(folder, 'fixed'), join(folder, 'tools')];
  await fill(tree, tools);
  const row = { ...columns, patch: await bugOf(tree, bug) };
  return await instancesOf({ project, tree, failing, row }, folder, base, runtime, branches, {
    ...{ folder: tools, path },
  });
}

/** Returns the patch that adds the bug. Does not change the tree. */
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
