/** Makes the record of a run from flags and a configuration file, and compares two records for a resumed run. */
import { createHash } from 'node:crypto';
import type { Dataset } from '@swefarm/datasets';
import { checkOverrides, REWARD_TABLE } from '@swefarm/grading';
import {
  agentsWith,
  asksPolicy,
  DEFAULT_AGENT,
  newId,
  POLICY_HEADERS,
  REWARD_WEIGHTS_LEVEL,
  RunRecord,
  readYaml,
  UsageError,
} from '@swefarm/shared';
import type { ZodError } from 'zod';
import { agentSettings } from './agentsettings.ts';
import { deadlineInFile } from './deadline.ts';
import { flagKey, flagName, RUN_FLAGS, readFlag, SETTABLE, type SettableKeys } from './flags.ts';
import { withSets } from './sets.ts';
import { asTree, type SettingsTree } from './settingstree.ts';

type RunRequest = {
  dataset: Pick<Dataset, 'path' | 'sha256' | 'instances'>;
  /** Values of the flags in RUN_FLAGS, as commander stores them. */
  flags: Readonly<Record<string, unknown>>;
  /** Path of a YAML file with keys of the record. Flags override the file. */
  configFile?: string | undefined;
};

/**
 * Makes the record of a new run. The record contains the name under which Redis stores the API key of the policy, not the key.
 *
 * @throws UsageError with key and flag of each invalid setting
 */
export function newRunRecord(request: RunRequest, withApiKey: boolean): RunRecord {
  const runId = newId();
  return recordFromSettings(
    runSettings(request),
    runId,
    request.dataset,
    withApiKey ? `policy-${runId}` : null,
  );
}

/** Merges the settings of configuration file and flags into a tree. Throws UsageError. */
export function runSettings(request: Pick<RunRequest, 'flags' | 'configFile'>): SettingsTree {
  const settings = request.configFile === undefined ? {} : readConfigFile(request.configFile);
  for (const flag of RUN_FLAGS) {
    const given = request.flags[flagKey(flag)];
    if (given === undefined) continue;
    const value = flag.constant === undefined ? readFlag(flag, given) : flag.constant;
    // Commander stores true for a `--no-x` that was not given.
    if (flag.constant === false && given !== false) continue;
    setPath(settings, flag.path, value);
  }
  requireOneAgent(request.flags, settings);
  return settings;
}

/** The card of a flag wins over the agent of a configuration file, but not over another flag. */
function requireOneAgent({ agent, agentCard }: RunRequest['flags'], settings: SettingsTree): void {
  if (agentCard === undefined) return;
  if (agent !== undefined)
    throw new UsageError(`--agent ${agent} and --agent-card both name the agent: give one of them`);
  setPath(settings, ['agent', 'type'], 'installed');
}

/** Throws UsageError for unknown keys; the message begins with `where`. */
export const requireKnownKeys = (where: string, settings: SettingsTree): void =>
  checkKeys(where, settings, SETTABLE, '');

/** Makes a record from settings. Throws UsageError with key and flag of each invalid setting. */
export function recordFromSettings(
  settings: SettingsTree,
  runId: string,
  dataset: RunRequest['dataset'],
  apiKeyRef: string | null,
): RunRecord {
  if (settings.kind === 'session') {
    throw new UsageError(
      'kind: expected validation, training or collection; a session is opened by POST /v1/sessions',
    );
  }
  const agent = withSets(agentSettings(asTree(settings.agent)), dataset.instances);
  const policy = policySettings(agent, settings, apiKeyRef);
  const ownKeys = Object.keys(SETTABLE).filter((key) => SETTABLE[key] === true);
  const raw = {
    needs: levelOf(agent, settings),
    ...Object.fromEntries(ownKeys.map((key) => [key, settings[key]])),
    group_size: settings.group_size ?? 1,
    deadline_at: deadlineInFile(settings.deadline_at),
    format: 'swefarm-run-1',
    run_id: runId,
    created_at: new Date().toISOString(),
    dataset: { path: dataset.path, sha256: dataset.sha256, instances: dataset.instances.length },
    until: settings.until ?? null,
    agent,
    policy,
    sandbox: settings.sandbox ?? {},
    evaluation: settings.evaluation ?? {},
    reward: { ...asTree(settings.reward), table: REWARD_TABLE.name, hash: REWARD_TABLE.hash },
  };
  const parsed = RunRecord.safeParse(raw);
  if (!parsed.success) throw new UsageError(issues(parsed.error));
  checkOverrides(parsed.data.reward.overrides);
  requireFeedback(parsed.data);
  return parsed.data;
}

/**
 * Returns the level that a worker must understand: workers of level 1 know neither these agents nor these limits, and workers of level 2
 * know neither sets nor feedback on submits nor weights of rewards nor draws of groups. Workers of level 3 know no headers of a policy.
 */
function levelOf(
  { type, answer_limit: answers, cost_limit: cost, ...agent }: SettingsTree,
  { reward, until, policy }: SettingsTree,
): number {
  if (Object.keys(asTree(asTree(policy).headers)).length > 0) return POLICY_HEADERS;
  const { prompts, toolset = [], action, max_submits: submits } = agent;
  const hasSets = Array.isArray(prompts) || (toolset as unknown[]).length > 0 || action === 'patch';
  if (hasSets || (submits ?? 1) !== 1) return 3;
  if ((asTree(reward).weights ?? null) !== null) return REWARD_WEIGHTS_LEVEL;
  if ((until ?? null) !== null) return 3;
  return type === 'installed' || (answers ?? cost ?? null) !== null ? 2 : 1;
}

/** Throws UsageError if the run asks for feedback on submits that it cannot give. */
function requireFeedback({ agent, evaluation }: Pick<RunRecord, 'agent' | 'evaluation'>): void {
  if (agent.max_submits === 1 || (agent.type === 'mini' && evaluation.enabled)) return;
  const why = agent.type === 'mini' ? 'an evaluation: leave --no-eval out' : `agent mini, not ${agent.type}`;
  throw new UsageError(`--max-submits (agent.max_submits): feedback on submits needs ${why}`);
}

/** Throws UsageError if the run limits the cost of its rollouts, and the price of its model is unknown. Call it when the price is set. */
export function requireCountableCost({ agent, policy }: Pick<RunRecord, 'agent' | 'policy'>): void {
  if (agent.cost_limit === null || policy?.price) return;
  throw new UsageError(
    `--cost-limit (agent.cost_limit) needs the price of the model ${policy?.model ?? ''}: give --prices FILE (docs/collection.md#prices)`,
  );
}

/** Returns null if the agent uses no policy. Throws UsageError if the endpoint or the model is missing. */
function policySettings(
  { type, card }: SettingsTree,
  settings: SettingsTree,
  apiKeyRef: string | null,
): SettingsTree | null {
  if (!asksPolicy(type)) return null;
  const policy = asTree(settings.policy);
  const urls = policy.urls ?? [];
  const lacksEndpoint = Array.isArray(urls) && urls.length === 0 && typeof policy.name !== 'string';
  if (lacksEndpoint || policy.model === undefined) {
    const missing = lacksEndpoint ? '--policy-url URL (or --policy-name NAME)' : '--model NAME';
    const others = agentsWith({ asksPolicy: false, byName: true }).join('|');
    throw new UsageError(
      `agent ${asTree(card).name ?? type ?? DEFAULT_AGENT} asks a model: add ${missing} (or use --agent ${others})`,
    );
  }
  return { ...policy, urls, api_key_ref: apiKeyRef };
}

function readConfigFile(path: string): SettingsTree {
  const tree = readYaml(path, `--run-config ${path}`);
  const settings = asTree(tree ?? {});
  if (tree !== null && settings !== tree)
    throw new UsageError(`--run-config ${path}: expected a mapping of keys`);
  requireKnownKeys(`--run-config ${path}`, settings);
  return structuredClone(settings);
}

function checkKeys(where: string, given: SettingsTree, settable: SettableKeys, prefix: string): void {
  for (const [key, value] of Object.entries(given)) {
    const below = Object.hasOwn(settable, key) ? settable[key] : undefined;
    if (below === undefined) {
      const known = Object.keys(settable).join(', ');
      throw new UsageError(`${where}: unknown key ${prefix}${key}; known here: ${known}`);
    }
    if (below !== true && asTree(value) === value) checkKeys(where, asTree(value), below, `${prefix}${key}.`);
  }
}

function issues(error: ZodError): string {
  const lines = error.issues.map((issue) => {
    const at = issue.path.map(String);
    const flag = RUN_FLAGS.find((one) => at.join('.').startsWith(one.path.join('.')));
    return `  ${flag ? `${flagName(flag)} (${at.join('.')})` : at.join('.')}: ${issue.message}`;
  });
  return ['invalid settings of the run:', ...lines].join('\n');
}

/** Merges both trees into a new one. Mappings with the same key are merged; other values of `above` replace those of `below`. */
export function merge(below: SettingsTree, above: Readonly<SettingsTree>): SettingsTree {
  const merged: SettingsTree = { ...below };
  for (const [key, value] of Object.entries(above)) {
    const inner = asTree(value);
    merged[key] =
      inner === value && asTree(merged[key]) === merged[key] ? merge(asTree(merged[key]), inner) : value;
  }
  return merged;
}

function setPath(tree: SettingsTree, path: readonly string[], value: unknown): void {
  const [key, ...rest] = path;
  if (key === undefined) return;
  if (rest.length === 0) tree[key] = value;
  else {
    const inner = asTree(tree[key]);
    tree[key] = inner;
    setPath(inner, rest, value);
  }
}

/** Fields of a record that may change when a run is resumed, because they do not change its rollouts. */
const FREE = new Set([
  'deadline_at',
  'infra_pause_share',
  // This field decides only the exit code of a resumed run.
  'min_group',
  // This field follows from the other fields and the software version.
  'needs',
  'run_id',
  // The farm of a dry run adds this field.
  'dry_run',
  'created_at',
  'ttl',
  'kind',
  // The order of a run is that of its first submit.
  'order',
  'dataset.path',
  'policy.api_key_ref',
  // A resumed run uses the prices of its first submit.
  'policy.price.prompt',
  'policy.price.completion',
]);

const isCompared = (key: string): boolean => !FREE.has(key) && !/^(forecast|until\.strata)\b/.test(key);

/**
 * Returns the differences between the stored record of a run and the new record, such as `agent.step_limit: 250 → 100`. Any difference
 * forbids `--resume`, because a training step would receive data of another policy.
 */
export function recordDifferences(stored: RunRecord, wanted: RunRecord): string[] {
  const before = flatten(stored);
  const after = flatten(wanted);
  const keys = [...new Set([...before.keys(), ...after.keys()])].filter(isCompared).sort();
  return keys
    .filter((key) => before.get(key) !== after.get(key))
    .map((key) => `${key}: ${shorten(before.get(key))} → ${shorten(after.get(key))}`);
}

/** @throws UsageError `resume_differs` with the differences, if there are any */
export function requireSameSettings(stored: RunRecord, wanted: RunRecord): void {
  const differences = recordDifferences(stored, wanted);
  if (differences.length === 0) return;
  throw new UsageError(
    [
      `run ${stored.run_id} was submitted with other settings (run → now):`,
      ...differences.map((line) => `  ${line}`),
      'give the same settings again, or choose another output for a new run',
    ].join('\n'),
    { code: 'resume_differs' },
  );
}

function flatten(value: unknown, prefix = '', into = new Map<string, string>()): Map<string, string> {
  if (value !== null && typeof value === 'object' && !Array.isArray(value)) {
    for (const [key, inner] of Object.entries(value)) flatten(inner, prefix ? `${prefix}.${key}` : key, into);
  } else {
    into.set(prefix, JSON.stringify(value) ?? 'unset');
  }
  return into;
}

function shorten(shown = 'unset'): string {
  if (shown.length <= 200) return shown;
  const fingerprint = createHash('sha256').update(shown).digest('hex').slice(0, 8);
  return `${shown.slice(0, 60)}… (${shown.length} characters, sha256 ${fingerprint})`;
}
