/** Reads configurations of mini-swe-agent 1 and 2. Texts and limits become settings of the run; other keys are reported as unread. */
import { readFileSync } from 'node:fs';
import { parseYaml, UsageError } from '@swefarm/shared';
import { flagName, RUN_FLAGS } from './flags.ts';
import { listedSets, SET_FILE } from './setnames.ts';
import { asTree, type SettingsTree } from './settingstree.ts';

/** Section and key of mini-swe-agent for each setting of the run. In mini-swe-agent 0 means no limit. */
const LIMITS = [
  ['agent', 'step_limit', 'step_limit'],
  ['agent', 'wall_time_limit_seconds', 'time_limit'],
  ['agent', 'max_consecutive_format_errors', 'format_limit'],
  ['environment', 'timeout', 'step_timeout'],
] as const;
type Limit = (typeof LIMITS)[number][2];
const TEXTS = /_template$/;

type MiniFile = { path: string; limits: Partial<Record<Limit, unknown>>; unread: string[] };

const isMiniSweAgent = (tree: SettingsTree): boolean => asTree(tree.agent).system_template !== undefined;

/** Converts the templates of mini-swe-agent to a prompt set. Returns a tree of another form unchanged. */
export function fromMiniSweAgent(tree: SettingsTree): SettingsTree {
  if (!isMiniSweAgent(tree)) return tree;
  const agent = asTree(tree.agent);
  const model = asTree(tree.model);
  const error = model.format_error_template ?? agent.format_error_template;
  const templates = {
    system: agent.system_template,
    instance: agent.instance_template,
    observation: model.observation_template ?? agent.action_observation_template,
    format_error: error,
    token_cut: error,
  };
  return {
    engine: 'jinja',
    templates: Object.fromEntries(Object.entries(templates).filter(([, text]) => text !== undefined)),
  };
}

/** Returns the limits of the files of `--prompts`. Throws UsageError if files have different limits and `agent` sets none. */
export function limitsOfMini(agent: SettingsTree): SettingsTree {
  const found: SettingsTree = {};
  for (const { path, limits } of miniFilesOf(agent.prompts))
    for (const [limit, value] of Object.entries(limits)) {
      if (agent[limit] !== undefined) continue;
      if ((found[limit] ?? value) !== value)
        throw new UsageError(
          `--prompts ${path}: ${limit} is ${value}, and ${found[limit]} in another file: a run has one, so give ${flagOf(limit)}`,
        );
      found[limit] = value;
    }
  return found;
}

/** Returns a line for each mini-swe-agent file in `--prompts`: the applied settings, and the keys that are not read. */
export function notesOnMini(agent: SettingsTree): string[] {
  return miniFilesOf(agent.prompts).map(({ path, limits, unread }) => {
    const applied = Object.entries(limits).map(([limit, value]) =>
      agent[limit] === undefined ? `${flagOf(limit)} ${value}` : `${flagOf(limit)} as given, not ${value}`,
    );
    const parts = [
      ...(applied.length > 0 ? [`read as ${applied.join(', ')}`] : []),
      ...(unread.length > 0 ? [`not read: ${unread.join(', ')}`] : []),
    ];
    return `--prompts ${path}: ${parts.join('; ') || 'templates only'}`;
  });
}

function flagOf(limit: string): string {
  const flag = RUN_FLAGS.find(({ path }) => path.join('.') === `agent.${limit}`);
  return flag ? flagName(flag) : limit;
}

function miniFilesOf(prompts: unknown): MiniFile[] {
  return listedSets(prompts).flatMap((one) => {
    if ('set' in one || !SET_FILE.test(one.name)) return [];
    const { name: path } = one;
    const tree = asTree(parseYaml(readFileSync(path, 'utf8')));
    return isMiniSweAgent(tree) ? [{ path, ...settingsOf(tree) }] : [];
  });
}

function settingsOf(tree: SettingsTree): Omit<MiniFile, 'path'> {
  const limits: MiniFile['limits'] = {};
  const read = new Set<string>();
  for (const [section, key, limit] of LIMITS) {
    const value = asTree(tree[section])[key];
    if (value === undefined || value === 0) continue;
    limits[limit] = value;
    read.add(`${section}.${key}`);
  }
  const keys = Object.entries(tree).flatMap(([section, value]) =>
    Object.keys(asTree(value)).map((key) => `${section}.${key}`),
  );
  const unread = keys.filter((key) => !read.has(key) && !TEXTS.test(key));
  const named = unread.map((key) =>
    key === 'agent.cost_limit' ? `${key} (give --cost-limit and --prices)` : key,
  );
  return { limits, unread: named };
}
