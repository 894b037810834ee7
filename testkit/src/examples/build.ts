/**
 * Builds the examples: dataset rows and the images they need, from recipes, PyPI and Debian alone.
 * `node testkit/src/examples/build.ts [--ids a,b] [--out DIR] [--for docker|rootfs|both] [--host] [--cache DIR]`
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { errorMessage, replaceFile, UsageError } from '@swefarm/shared';
import { cached, cacheKey } from './cache.ts';
import { debianProblem, makeDebianTree } from './debian.ts';
import { dockerAnswers, imageKeys, importTree, layerImage } from './docker.ts';
import {
  activateText,
  compilerProblem,
  hostProblem,
  hostPython,
  installScript,
  inTree,
  MAKE_ENVIRONMENT,
  type Tree,
  unusable,
  writeActivate,
} from './environment.ts';
import { makeRepository, type Patches } from './history.ts';
import { type BaseRecipe, type Example, readBaseRecipe, readExamples } from './recipe.ts';
import { dockerImageName, type ExampleRow, toRow } from './row.ts';
import { mapLimited, run } from './run.ts';
import { fetchSdist, fetchWheels } from './sources.ts';

const ROOT = resolve(import.meta.dirname, '../../..');

export type BuildOptions = {
  /** All examples when absent. */
  ids?: readonly string[];
  /** Folder of the JSONL files; absent: `.swefarm/examples` of the repository. */
  out?: string;
  /** Docker when an engine answers and a Debian tree can be made, else rootfs, when absent. */
  for?: 'docker' | 'rootfs' | 'both';
  /** Builds trees over the host's own root even where a Debian tree could be made: takes seconds, but serves rootfs only. */
  host?: boolean;
  cacheDir?: string;
  /** Folder with `recipes` and `problems`; the repository's `examples` when absent, whose `base.json` all share. */
  examplesDir?: string;
  /** Called with one line per step; nothing is printed otherwise. */
  note?: (line: string) => void;
  signal?: AbortSignal;
};

export type BuiltExample = { recipe: Example['recipe']; patches: Patches; tree: Tree };

export type BuiltExamples = {
  /** Rows with the image names of the default runtime. */
  rows: ExampleRow[];
  /** `default` is a copy of the Docker file when there is one, else of the rootfs file. */
  files: { default: string; docker: string | null; rootfs: string };
  /** The trees that the images were made from, for inspection without a runtime. */
  examples: BuiltExample[];
  /** Examples that this machine cannot build, and why, with the remedy. */
  skipped: { instance_id: string; why: string }[];
};

type Plan = {
  cacheDir: string;
  out: string;
  base: BaseRecipe;
  kind: Tree['kind'];
  docker: boolean;
  note: (line: string) => void;
  signal: AbortSignal;
};

/** Builds what is missing. Throws UsageError (recipes, ids) or SwefarmError `example_*`, each with its remedy. */
export async function buildExamples(options: BuildOptions = {}): Promise<BuiltExamples> {
  const examplesDir = options.examplesDir ?? join(ROOT, 'examples');
  const base = await readBaseRecipe(join(ROOT, 'examples'));
  const found = await readExamples(examplesDir, options.ids);
  const stop = new AbortController();
  const signal = AbortSignal.any([stop.signal, ...(options.signal ? [options.signal] : [])]);
  const plan = await choose(options, base, signal);
  const { examples, skipped } = await buildable(found, plan, options.ids !== undefined);
  const baseKey = await keyOfBase(plan);
  const baseImage = `swefarm/example-base:${baseKey}`;
  const images = examples.map(({ recipe }) => dockerImageName(recipe.instance_id));
  const present = plan.docker ? await imageKeys([baseImage, ...images], signal) : new Map<string, string>();

  const baseTree = makeBase(plan, baseKey);
  const imported = baseTree.then(async (tree) => {
    if (!plan.docker || present.has(baseImage)) return;
    plan.note('base: docker import');
    await importTree(tree, baseImage, baseKey, signal);
  });
  const work = mapLimited(examples, 6, async ({ recipe }): Promise<BuiltExample> => {
    const key = cacheKey(baseKey, { ...recipe, FAIL_TO_PASS: [], PASS_TO_PASS: [] }, installScript(recipe));
    const built = await buildTree(recipe, key, plan, baseTree);
    const image = dockerImageName(recipe.instance_id);
    if (plan.docker && present.get(image) !== key) {
      await imported;
      plan.note(`${recipe.instance_id}: docker build`);
      await layerImage(built.tree.path, baseImage, image, key, signal);
    }
    return built;
  });
  const parts = [work, imported, baseTree] as const;
  for (const part of parts) part.catch(() => stop.abort());
  // All builds end before an error is thrown, so that none still writes afterwards.
  const ends = await Promise.allSettled(parts);
  const broken = ends.filter((end) => end.status === 'rejected').map((end) => end.reason as unknown);
  if (broken.length > 0) throw broken.find((reason) => !isAbort(reason)) ?? broken[0];
  return write(plan, examples, await work, skipped);
}

const isAbort = (reason: unknown): boolean =>
  reason instanceof Error && (reason.name === 'AbortError' || isAbort(reason.cause));

async function choose(options: BuildOptions, base: BaseRecipe, signal: AbortSignal): Promise<Plan> {
  const note = options.note ?? (() => undefined);
  const debian = options.host ? "the host's own root was requested" : await debianProblem(signal);
  const wanted = options.host && options.for === undefined ? 'rootfs' : options.for;
  const answers = wanted !== 'rootfs' && (await dockerAnswers(signal));
  if (wanted === 'docker' || wanted === 'both') {
    if (!answers)
      throw unusable('no Docker engine answers (docker version): start one, or build --for rootfs');
    if (debian !== null) throw unusable(`Docker images are made from a Debian tree; ${debian}`);
  }
  const kind = debian === null ? 'dir' : 'host+dir';
  if (debian !== null) {
    const problem = await hostProblem(signal);
    if (problem !== null) throw unusable(`no example can be built here: ${debian}; ${problem}`);
    note(`base: the host's own root (${debian})`);
  }
  const cacheDir = resolve(options.cacheDir ?? join(ROOT, '.swefarm/cache/examples'));
  const out = resolve(options.out ?? join(ROOT, '.swefarm/examples'));
  return { cacheDir, out, base, kind, docker: answers && debian === null, note, signal };
}

/** Omits examples that the host cannot compile, unless they were requested by name. */
async function buildable(examples: Example[], plan: Plan, byName: boolean) {
  const compiling = examples.filter(({ recipe }) => recipe.compiles);
  const why = plan.kind === 'host+dir' && compiling.length > 0 ? await compilerProblem(plan.signal) : null;
  if (why === null) return { examples, skipped: [] };
  const skipped = compiling.map(({ recipe }) => ({ instance_id: recipe.instance_id, why }));
  for (const { instance_id } of skipped) {
    if (byName) throw unusable(`${instance_id}: ${why}`);
    plan.note(`${instance_id}: left out: ${why}`);
  }
  return { examples: examples.filter(({ recipe }) => !recipe.compiles), skipped };
}

const keyOfBase = async ({ kind, base, signal }: Plan) =>
  cacheKey(
    kind,
    base,
    MAKE_ENVIRONMENT,
    await activateText(),
    kind === 'dir' ? '' : await hostPython(signal),
  );

function makeBase(plan: Plan, key: string): Promise<string> {
  const { base, signal, note } = plan;
  const path = join(plan.cacheDir, `base-${key}`);
  const wheels = () => fetchWheels(plan.cacheDir, base.pip, signal);
  if (plan.kind === 'dir') return makeDebianTree(path, base, wheels, note, signal);
  return cached(path, async (draft) => {
    note('base: Python environment');
    await writeActivate(draft);
    await inTree({ kind: 'host+dir', path: draft }, MAKE_ENVIRONMENT, { setup: await wheels(), signal });
  });
}

async function buildTree(
  recipe: Example['recipe'],
  key: string,
  plan: Plan,
  baseTree: Promise<string>,
): Promise<BuiltExample> {
  const { signal, cacheDir, kind, note } = plan;
  const folder = await cached(join(cacheDir, 'trees', `${recipe.instance_id}-${key}`), async (draft) => {
    note(`${recipe.instance_id}: sources`);
    const [broken, fixed, wheels] = await Promise.all([
      fetchSdist(cacheDir, recipe, recipe.broken, signal),
      fetchSdist(cacheDir, recipe, recipe.fixed, signal),
      fetchWheels(cacheDir, recipe.pip, signal),
    ]);
    await mkdir(draft, { recursive: true });
    const repository = join(draft, 'testbed');
    const patches = await makeRepository(recipe, { broken, fixed }, repository, signal);
    const base = await baseTree;
    note(`${recipe.instance_id}: environment`);
    const tree = { kind, path: join(draft, 'tree') };
    // Hard links: files of the base are never modified, and a copy would take hundreds of megabytes.
    await run(['cp', kind === 'dir' ? '-al' : '-a', base, tree.path], { signal });
    await run(['rm', '-rf', join(tree.path, 'testbed')], { signal });
    await run(['mv', repository, join(tree.path, 'testbed')], { signal });
    await inTree(tree, installScript(recipe), {
      signal,
      ...(recipe.pip.length > 0 ? { setup: wheels } : {}),
    });
    await writeFile(join(draft, 'patches.json'), JSON.stringify(patches));
  });
  const patches = JSON.parse(await readFile(join(folder, 'patches.json'), 'utf8')) as Patches;
  return { recipe, patches, tree: { kind, path: join(folder, 'tree') } };
}

async function write(
  plan: Plan,
  examples: readonly Example[],
  built: readonly BuiltExample[],
  skipped: BuiltExamples['skipped'],
): Promise<BuiltExamples> {
  const rows = (image: (built: BuiltExample) => string) =>
    built.flatMap((one) => {
      const example = examples.find(({ recipe }) => recipe.instance_id === one.recipe.instance_id);
      return example ? [toRow(example, one.patches, image(one))] : [];
    });
  const save = async (name: string, content: readonly ExampleRow[]) => {
    const path = join(plan.out, name);
    // Another build may write this file, or a run may read it, at the same time.
    await replaceFile(path, content.map((row) => `${JSON.stringify(row)}\n`).join(''));
    return path;
  };
  await mkdir(plan.out, { recursive: true });
  const ofRootfs = rows(({ tree }) => `${tree.kind}:${tree.path}`);
  const ofDocker = plan.docker ? rows(({ recipe }) => dockerImageName(recipe.instance_id)) : null;
  const files = {
    default: await save('instances.jsonl', ofDocker ?? ofRootfs),
    docker: ofDocker && (await save('instances.docker.jsonl', ofDocker)),
    rootfs: await save('instances.rootfs.jsonl', ofRootfs),
  };
  return { rows: ofDocker ?? ofRootfs, files, examples: [...built], skipped };
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      ids: { type: 'string' },
      out: { type: 'string' },
      for: { type: 'string' },
      host: { type: 'boolean', default: false },
      cache: { type: 'string' },
    },
  });
  const wanted = values.for;
  if (wanted !== undefined && wanted !== 'docker' && wanted !== 'rootfs' && wanted !== 'both') {
    throw new UsageError(`--for is docker, rootfs or both, not "${wanted}"`);
  }
  const started = performance.now();
  const built = await buildExamples({
    ...(values.ids === undefined ? {} : { ids: values.ids.split(',').filter(Boolean) }),
    ...(values.out === undefined ? {} : { out: values.out }),
    host: values.host,
    ...(values.cache === undefined ? {} : { cacheDir: values.cache }),
    ...(wanted === undefined ? {} : { for: wanted }),
    note: (line) => process.stderr.write(`examples: ${line}\n`),
  });
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  process.stderr.write(`examples: ${built.rows.length} ready in ${seconds} s\n`);
  process.stdout.write(`${built.files.default}\n`);
}

if (import.meta.main) {
  main().catch((error: unknown) => {
    process.stderr.write(`examples: ${errorMessage(error)}\n`);
    process.exitCode = error instanceof UsageError ? 2 : 12;
  });
}
