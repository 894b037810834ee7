/**
 * The git side of an example: the tree at base_commit with the builder's edits on top, as in SWE-bench images, and the two
 * patches as the difference of the two releases. Authors and dates are fixed, so the same archives give the same commits.
 */
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { SwefarmError } from '@swefarm/shared';
import { selectHunks } from './hunks.ts';
import type { PatchFile, Recipe } from './recipe.ts';
import { run } from './run.ts';
import { unpackSdist } from './sources.ts';

export type Patches = { base_commit: string; patch: string; test_patch: string };

const NAME = 'swefarm examples';
const EMAIL = 'examples@swefarm.invalid';
const DATE = '2020-01-01T00:00:00Z';

/** Keeps the machine's git configuration from influencing commit ids. */
const GIT_ENV = {
  GIT_AUTHOR_NAME: NAME,
  GIT_AUTHOR_EMAIL: EMAIL,
  GIT_AUTHOR_DATE: DATE,
  GIT_COMMITTER_NAME: NAME,
  GIT_COMMITTER_EMAIL: EMAIL,
  GIT_COMMITTER_DATE: DATE,
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_SYSTEM: '/dev/null',
  GIT_TEMPLATE_DIR: '',
  LC_ALL: 'C',
};

const DIFF = ['diff', '--no-ext-diff', '--no-color', '--no-renames', '--diff-algorithm=myers', '--abbrev=10'];

/** Source archives lack the .gitignore of the repository, and build output must not appear as a change by the agent. */
const IGNORED = ['__pycache__/', '*.py[cod]', '*.so', '*.egg-info/', 'build/', 'dist/', '.pytest_cache/'];

const git = async (dir: string, args: readonly string[], signal: AbortSignal, stdin?: string) => {
  const argv = ['git', '-C', dir, '-c', 'core.autocrlf=false', '-c', 'core.fileMode=true', ...args] as const;
  const { PATH, HOME } = process.env;
  const env = { PATH, HOME, ...GIT_ENV };
  return (await run([...argv], { env, signal, ...(stdin === undefined ? {} : { stdin }) })).stdout;
};

/** Makes the base tree at `dest` and commits it; returns base_commit. */
async function commitBase(
  archive: string,
  dest: string,
  recipe: Recipe,
  signal: AbortSignal,
): Promise<string> {
  await unpackSdist(archive, dest, signal);
  const litter = await run(['find', dest, '-name', '*.egg-info', '-prune'], { signal });
  for (const path of litter.stdout.split('\n').filter(Boolean)) await rm(path, { recursive: true });
  if (!existsSync(join(dest, '.gitignore'))) {
    await writeFile(join(dest, '.gitignore'), `${IGNORED.join('\n')}\n`);
  }
  await git(dest, ['init', '-q', '-b', 'main', '--object-format=sha1'], signal);
  await mkdir(join(dest, '.git', 'info'), { recursive: true });
  await git(dest, ['add', '-A', '-f', '.'], signal);
  await git(dest, ['commit', '-q', '-m', `${recipe.package} ${recipe.broken.version}`], signal);
  return (await git(dest, ['rev-parse', 'HEAD'], signal)).trim();
}

/** The difference of the two releases in the named files, as a patch for `tree`, which is not modified. */
async function patchOf(
  tree: string,
  fixedTree: string,
  files: readonly PatchFile[],
  signal: AbortSignal,
): Promise<string> {
  const names = files.map((entry) => entry.file);
  for (const entry of files) {
    const target = join(tree, entry.file);
    const before = existsSync(target) ? await readFile(target, 'utf8') : null;
    const source = join(fixedTree, entry.file);
    if (!existsSync(source)) {
      if (before === null) throw new SwefarmError('example_recipe', `neither release has ${entry.file}`);
      await rm(target);
      continue;
    }
    await mkdir(dirname(target), { recursive: true });
    await copyFile(source, target);
    if (before === null || entry.only_hunks.length + entry.skip_hunks.length === 0) continue;
    const bare = await git(tree, [...DIFF, '-U0', 'HEAD', '--', entry.file], signal);
    await writeFile(target, selectHunks(before, bare, entry));
  }
  await git(tree, ['add', '-A', '--', ...names], signal);
  const patch = await git(tree, [...DIFF, '--cached', 'HEAD', '--', ...names], signal);
  await git(tree, ['reset', '-q', '--hard', 'HEAD'], signal);
  if (patch === '')
    throw new SwefarmError('example_recipe', `the releases do not differ in ${names.join(', ')}`);
  return patch;
}
/**
 * Makes the example's repository at `dest` (base_commit, the builder's commit as HEAD, uncommitted edits) and its patches.
 * Throws SwefarmError `example_recipe` when the recipe does not fit the archives.
 */
export async function makeRepository(
  recipe: Recipe,
  archives: { broken: string; fixed: string },
  dest: string,
  signal: AbortSignal,
): Promise<Patches> {
  const base_commit = await commitBase(archives.broken, dest, recipe, signal);
  const fixedTree = `${dest}.fixed`;
  try {
    await unpackSdist(archives.fixed, fixedTree, signal);
    const patch = await patchOf(dest, fixedTree, recipe.patch, signal);
    const test_patch = await patchOf(dest, fixedTree, recipe.test_patch, signal);
    // The fixed files were staged for the diff: their blobs contain the solution and must not remain in the agent's repository.
    await forgetUnreachable(dest, signal);
    await edit(dest, recipe.builder_commit, signal);
    await git(dest, ['add', '-A'], signal);
    await git(dest, ['commit', '-q', '--allow-empty', '-m', 'SWE-bench'], signal);
    await edit(dest, recipe.dirty, signal);
    await git(dest, ['config', 'user.name', NAME], signal);
    await git(dest, ['config', 'user.email', EMAIL], signal);
    for (const text of [patch, test_patch]) await git(dest, ['apply', '--check', '-'], signal, text);
    return { base_commit, patch, test_patch };
  } finally {
    await rm(fixedTree, { recursive: true, force: true });
  }
}

async function forgetUnreachable(dest: string, signal: AbortSignal): Promise<void> {
  await rm(join(dest, '.git', 'ORIG_HEAD'), { force: true });
  await git(dest, ['reflog', 'expire', '--expire=now', '--all'], signal);
  await git(dest, ['gc', '-q', '--prune=now'], signal);
}

async function edit(dest: string, lines: readonly string[], signal: AbortSignal): Promise<void> {
  if (lines.length === 0) return;
  const before = await git(dest, ['status', '--porcelain'], signal);
  await run(['bash', '-euo', 'pipefail', '-c', lines.join('\n')], { cwd: dest, signal });
  if ((await git(dest, ['status', '--porcelain'], signal)) === before) {
    throw new SwefarmError('example_recipe', `these edits changed nothing: ${lines.join(' ; ')}`);
  }
}
