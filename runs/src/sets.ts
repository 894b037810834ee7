/** Reads toolsets and prompt sets: those that come with swefarm, files of the user, and the YAML of mini-swe-agent. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseJinja } from '@swefarm/policy';
import {
  errorMessage,
  type Instance,
  jinjaValuesOf,
  PromptSet,
  parseTemplate,
  parseYaml,
  TEMPLATE_NAMES,
  Toolset,
  UsageError,
  valuesOf,
} from '@swefarm/shared';
import type { z } from 'zod';
import { fromMiniSweAgent, limitsOfMini } from './miniconfig.ts';
import { listedSets, SET_FILE } from './setnames.ts';
import { asTree, type SettingsTree } from './settingstree.ts';

type Kind<T> = {
  flag: string;
  folder: string;
  schema: z.ZodType<T>;
  /** Converts another form of the file. */
  convert(tree: SettingsTree): SettingsTree;
  check(set: T, where: string): void;
};

const DATA = fileURLToPath(new URL('../data/', import.meta.url));

const TOOLSETS: Kind<Toolset> = {
  flag: '--toolset (agent.toolset)',
  folder: join(DATA, 'toolsets'),
  schema: Toolset,
  convert: (tree) => tree,
  check({ prompts, tools }, where) {
    checkTemplates(`${where}: prompts`, prompts, 'plain');
    for (const { name, parameters } of tools) checkArguments(`${where}: tool ${name}`, parameters.properties);
  },
};

const PROMPTS: Kind<PromptSet> = {
  flag: '--prompts (agent.prompts)',
  folder: join(DATA, 'prompts'),
  schema: PromptSet,
  convert: fromMiniSweAgent,
  check: ({ templates, engine }, where) => checkTemplates(`${where}: templates`, templates, engine),
};

/** Names of the sets in a folder of this package, and their parsed files by path. Neither changes while the process runs. */
const folders = new Map<string, string[]>();
const trees = new Map<string, unknown>();

function shippedIn(folder: string): string[] {
  const known = folders.get(folder);
  if (known) return known;
  const files = readdirSync(folder).filter((name) => SET_FILE.test(name));
  const names = files.map((name) => basename(name, extname(name))).sort();
  folders.set(folder, names);
  return names;
}

/**
 * Returns the toolsets of a setting: names or files with weights (`edit=0.5,own.yaml=0.5`), a set, or a list of them. Throws UsageError with
 * file and field of each mistake.
 */
export const toolsetsOf = (given: unknown): Toolset[] => setsOf(given, TOOLSETS);

/** As {@link toolsetsOf}. Does not change the name of a set of the worker, or a folder of workers. */
export function promptSetsOf(given: unknown): unknown {
  const isOfWorker =
    typeof given === 'string' &&
    !/[=,]/.test(given) &&
    !SET_FILE.test(given) &&
    !shippedIn(PROMPTS.folder).includes(given);
  return isOfWorker ? given : setsOf(given, PROMPTS);
}

type Named = Pick<Instance, 'instance_id' | 'prompts' | 'toolset'>;

/**
 * Reads the sets of the settings of an agent, adds with weight 0 the shipped ones that rows and prompt sets name, and sets the way of acting
 * that follows. Throws UsageError for a bad set, a name that neither the run nor swefarm has, and sets that act in different ways.
 */
export function withSets(agent: SettingsTree, instances: readonly Named[]): SettingsTree {
  const prompts = agent.prompts === undefined ? 'default' : promptSetsOf(agent.prompts);
  const given = Array.isArray(prompts) ? (prompts as PromptSet[]) : [];
  const toolsets = agent.toolset === undefined ? [] : toolsetsOf(agent.toolset);
  if ((agent.type ?? 'mini') !== 'mini') {
    if (given.length + toolsets.length === 0) return agent;
    throw new UsageError(
      `--toolset and files for --prompts are for agent mini, not for ${String(agent.type)}`,
    );
  }
  const sets = withNamed(given, instances, 'prompts', PROMPTS);
  if (sets.length > 0 && typeof prompts === 'string' && prompts !== 'default')
    throw new UsageError(
      `${PROMPTS.flag}: rows name prompt sets, so give the set of the other rows as a file too`,
    );
  const bySet = sets.map(({ name, toolset }) => ({ instance_id: `prompt set ${name}`, toolset }));
  const tools = withNamed(toolsets, [...instances, ...bySet], 'toolset', TOOLSETS);
  const action = actionOf(agent, sets, tools);
  return {
    ...limitsOfMini(agent),
    ...agent,
    ...(sets.length > 0 ? { prompts: sets } : {}),
    ...(tools.length > 0 ? { toolset: tools } : {}),
    ...(action === undefined ? {} : { action }),
    ...(action === 'patch' ? { patch_source: 'submission' } : {}),
  };
}

function actionOf(agent: SettingsTree, sets: readonly PromptSet[], tools: readonly Toolset[]): unknown {
  const wanted = new Set<unknown>(sets.flatMap(({ action }) => action ?? []));
  if (tools.length > 0) wanted.add('tool');
  if (agent.action !== undefined) wanted.add(agent.action);
  const [action] = wanted;
  if (wanted.size > 1)
    throw new UsageError(
      `--action (agent.action): a run acts in one way, and its sets and settings ask for ${[...wanted].join(' and ')}: choose sets of one way`,
    );
  if (action === 'patch' && agent.patch_source === 'tree')
    throw new UsageError(
      '--patch-source (agent.patch_source): action patch has no other source than submission',
    );
  return action;
}

/** Returns the sets, and the named ones that are missing. */
function withNamed<T extends { name: string }>(
  given: readonly T[],
  named: readonly { instance_id: string; prompts?: string | undefined; toolset?: string | undefined }[],
  key: 'prompts' | 'toolset',
  kind: Kind<T>,
): T[] {
  const known = new Map(given.map((set) => [set.name, set]));
  for (const one of named) {
    const name = one[key];
    if (name === undefined || known.has(name)) continue;
    const shipped = knownIn(kind);
    if (!shipped.includes(name))
      throw new UsageError(
        `${one.instance_id}: ${key}: the run has no set "${name}"; give its file to ${kind.flag}, or name one that comes with swefarm: ${shipped.join(', ')}`,
      );
    known.set(name, readSet(name, '0', kind));
  }
  return [...known.values()];
}

const knownIn = <T>(kind: Kind<T>): string[] => [
  ...(kind.folder === PROMPTS.folder ? ['default'] : []),
  ...shippedIn(kind.folder),
];

function setsOf<T extends { name: string; weight: number }>(given: unknown, kind: Kind<T>): T[] {
  const sets = listedSets(given).map((one) =>
    'set' in one ? parseSet(one.set, kind.flag, kind) : readSet(one.name, one.weight, kind),
  );
  const names = sets.map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined)
    throw new UsageError(`${kind.flag}: two sets have the name "${twice}"; give one of them another name`);
  return sets;
}

function readSet<T>(name: string, weight: string | undefined, kind: Kind<T>): T {
  if (name === 'default' && kind.folder === PROMPTS.folder)
    return parseSet({ name, ...(weight === undefined ? {} : { weight: Number(weight) }) }, kind.flag, kind);
  const isShipped = shippedIn(kind.folder).includes(name);
  const path = isShipped ? join(kind.folder, `${name}.yaml`) : name;
  const where = `${kind.flag}: ${name}`;
  let tree: unknown;
  try {
    tree = trees.get(path) ?? parseYaml(readFileSync(path, 'utf8'));
    if (isShipped) trees.set(path, tree);
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    const hint = `no such file, and no set of this name comes with swefarm (${knownIn(kind).join(', ')})`;
    throw new UsageError(`${where}: ${missing ? hint : errorMessage(error)}`, { cause: error });
  }
  if (asTree(tree) !== tree) throw new UsageError(`${where}: expected a mapping of keys`);
  const set = kind.convert(asTree(tree));
  const own = basename(name, extname(name));
  return parseSet(
    { name: own, ...set, ...(weight === undefined ? {} : { weight: Number(weight) }) },
    where,
    kind,
  );
}

function parseSet<T>(tree: unknown, where: string, kind: Kind<T>): T {
  const parsed = kind.schema.safeParse(tree);
  if (parsed.success) {
    kind.check(parsed.data, where);
    return parsed.data;
  }
  const problems = parsed.error.issues.map(
    ({ path, message }) => `${path.join('.') || 'the set'}: ${message}`,
  );
  throw new UsageError(`${where}: ${problems.join('; ')} (fields: docs/prompts.md)`);
}

/** In YAML, `{description: a, b}` has a key `b` without a value. The model would see this key instead of the text `a, b`. */
function checkArguments(where: string, properties: Toolset['tools'][number]['parameters']['properties']) {
  for (const [name, schema] of Object.entries(properties)) {
    const empty = Object.entries(schema).find(([, value]) => value === null);
    if (empty)
      throw new UsageError(
        `${where}: argument ${name}: "${empty[0]}" has no value; quote texts that contain a comma`,
      );
  }
}

function checkTemplates(
  where: string,
  templates: Readonly<Record<string, string>>,
  engine: PromptSet['engine'],
) {
  for (const [name, text] of Object.entries(templates)) {
    const source = `${where}.${name}`;
    if (!TEMPLATE_NAMES.has(name))
      throw new UsageError(`${source}: no such template; known: ${[...TEMPLATE_NAMES].join(', ')}`);
    if (engine === 'jinja') parseJinja(source, text, jinjaValuesOf(name));
    else parseTemplate(source, text, valuesOf(name));
  }
}
