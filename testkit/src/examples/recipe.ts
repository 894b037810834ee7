/** The schema of an example's recipe. A recipe contains facts only: versions, checksums, file names, test ids. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { UsageError } from '@swefarm/shared';
import { z } from 'zod';

const Release = z.strictObject({
  version: z.string(),
  /** SHA-256 of the sdist on PyPI; the builder refuses any other archive. */
  sdist_sha256: z.string().regex(/^[0-9a-f]{64}$/),
});

/** One file whose difference between the releases belongs to a patch, whole or in named hunks. */
const PatchFile = z.strictObject({
  file: z.string(),
  /** Keep only hunks in which a changed line contains one of these texts. */
  only_hunks: z.array(z.string()).default([]),
  /** Omit hunks in which a changed line contains one of these texts. */
  skip_hunks: z.array(z.string()).default([]),
});
export type PatchFile = z.infer<typeof PatchFile>;

export const Recipe = z.strictObject({
  instance_id: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/),
  repo: z.string(),
  /** Name on PyPI. */
  package: z.string(),
  /** The release with the bug: its sdist is the tree at base_commit. */
  broken: Release,
  /** The release that fixes it; only its difference in the files named below is used. */
  fixed: Release,
  /** Date of the fixed release, ISO 8601. */
  created_at: z.string(),
  patch: z.array(PatchFile).min(1),
  test_patch: z.array(PatchFile).min(1),
  /** Pinned requirements beside those of the base; wheels only. */
  pip: z.array(z.string().regex(/^[A-Za-z0-9._-]+==[^\s]+$/)).default([]),
  /** True when the build of the environment compiles: it then needs gcc and Python's headers. */
  compiles: z.boolean().default(false),
  /** Exported when the environment is activated. */
  env: z.record(z.string().regex(/^[A-Z_][A-Z0-9_]*$/), z.string()).default({}),
  /** Run in /testbed with the environment active, when the image is built and again before each evaluation. */
  install: z.string().nullable().default(null),
  /** Shell lines run in the tree after base_commit; their changes become the builder's commit, HEAD. */
  builder_commit: z.array(z.string()).default([]),
  /** Shell lines run after the builder's commit; their changes stay uncommitted. */
  dirty: z.array(z.string()).default([]),
  test_cmd: z.string(),
  log_parser: z.string(),
  FAIL_TO_PASS: z.array(z.string()),
  PASS_TO_PASS: z.array(z.string()),
});
export type Recipe = z.infer<typeof Recipe>;

/** The system and the Python packages that all examples share. */
export const BaseRecipe = z.strictObject({
  /** Debian suite. */
  suite: z.string(),
  packages: z.array(z.string()),
  /** Globs below the root that are removed, because no evaluation reads these files. */
  prune: z.array(z.string()),
  pip: z.array(z.string()),
});
export type BaseRecipe = z.infer<typeof BaseRecipe>;

/** A recipe with its problem text. */
export type Example = { recipe: Recipe; problem: string };

async function parseFile<T>(path: string, schema: z.ZodType<T>): Promise<T> {
  const text = await readFile(path, 'utf8');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new UsageError(`${path} is not JSON`, { cause });
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const lines = parsed.error.issues.map((issue) => `${issue.path.join('.') || '(whole)'}: ${issue.message}`);
  throw new UsageError(`${path}: ${lines.join('; ')}`);
}

export const readBaseRecipe = (examplesDir: string): Promise<BaseRecipe> =>
  parseFile(join(examplesDir, 'base.json'), BaseRecipe);

/**
 * All examples of a folder (`recipes/<id>.json` with `problems/<id>.md`), sorted by id, or the requested ones.
 * Throws UsageError for an unknown id, a bad recipe (file and field named) or a missing problem text.
 */
export async function readExamples(examplesDir: string, ids?: readonly string[]): Promise<Example[]> {
  const names = (await readdir(join(examplesDir, 'recipes')))
    .filter((name) => name.endsWith('.json'))
    .map((name) => name.slice(0, -'.json'.length))
    .sort();
  for (const id of ids ?? []) {
    if (!names.includes(id)) throw new UsageError(`no example "${id}"; there are ${names.join(', ')}`);
  }
  return Promise.all(
    names.filter((name) => ids === undefined || ids.includes(name)).map((id) => readExample(examplesDir, id)),
  );
}

async function readExample(examplesDir: string, id: string): Promise<Example> {
  const path = join(examplesDir, 'recipes', `${id}.json`);
  const recipe = await parseFile(path, Recipe);
  if (recipe.instance_id !== id) {
    throw new UsageError(`${path}: instance_id is "${recipe.instance_id}", the file name says "${id}"`);
  }
  const problem = (await readFile(join(examplesDir, 'problems', `${id}.md`), 'utf8')).trim();
  if (problem === '') throw new UsageError(`problems/${id}.md is empty`);
  return { recipe, problem };
}
