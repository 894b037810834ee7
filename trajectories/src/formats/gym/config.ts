/** Reads the file of `--gym-config`: converts settings of Gym's mini_swe_agent to the equivalent flags of swefarm. */
import { readFileSync } from 'node:fs';
import { nearest, parseYaml, UsageError } from '@swefarm/shared';

export type GymFlags = Partial<{
  concurrency: string;
  runtime: string;
  apptainerImages: string;
  agent: string;
  stepTimeout: string;
  evalTimeout: string;
  collapseLimit: string;
  stepLimit: string;
  skipIfExists: boolean;
}>;

type Kind = 'count' | 'seconds' | 'text' | 'truth' | readonly string[];

/** Keys of MiniSWEAgentConfig (responses_api_agents/mini_swe_agent/app.py) and the flags that replace each key. */
const KEYS: Record<string, { kind: Kind; flags: (value: string) => GymFlags }> = {
  concurrency: { kind: 'count', flags: (concurrency) => ({ concurrency }) },
  env: {
    kind: ['docker', 'singularity'],
    flags: (env) => ({ runtime: env === 'singularity' ? 'apptainer' : env }),
  },
  cache_dir_template: { kind: 'text', flags: (apptainerImages) => ({ apptainerImages }) },
  run_golden: { kind: 'truth', flags: (golden) => (golden === 'true' ? { agent: 'golden' } : {}) },
  step_timeout: { kind: 'seconds', flags: (stepTimeout) => ({ stepTimeout }) },
  eval_timeout: { kind: 'seconds', flags: (evalTimeout) => ({ evalTimeout }) },
  skip_if_exists: { kind: 'truth', flags: (skip) => ({ skipIfExists: skip === 'true' }) },
  collapse_limit: { kind: 'count', flags: (collapseLimit) => ({ collapseLimit }) },
  step_limit: { kind: 'count', flags: (stepLimit) => ({ stepLimit }) },
};

/** Keys of an agent's entry that only Gym uses; swefarm ignores them. */
const GYMS_OWN = new Set([
  'entrypoint',
  'host',
  'port',
  'name',
  'domain',
  'description',
  'value',
  'verified',
  'adapters',
  'num_workers',
  'model_server',
  'resources_server',
  'datasets',
]);

/** Reads the file at `path`. Throws UsageError with the file, the key and the expected value. */
export function readGymConfig(path: string): GymFlags {
  let tree: unknown;
  try {
    tree = parseYaml(readFileSync(path, 'utf8'));
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    throw new UsageError(`--gym-config ${path}: ${missing ? 'no such file' : (error as Error).message}`, {
      cause: error,
    });
  }
  return gymFlags(tree, `--gym-config ${path}`);
}

/** Converts a parsed file: the keys alone, or Gym's configuration with one agent. Throws the errors of {@link readGymConfig}. */
export function gymFlags(tree: unknown, where: string): GymFlags {
  const given = asMapping(tree);
  if (given === null) throw new UsageError(`${where}: expected a mapping of keys`);
  const entry = agentEntry(given, where);
  return Object.assign({}, ...Object.entries(entry ?? given).map(([key, value]) => read(key, value)));

  function read(key: string, value: unknown): GymFlags {
    const known = Object.hasOwn(KEYS, key) ? KEYS[key] : undefined;
    if (known) return value === null ? {} : known.flags(checked(`${where}: ${key}`, value, known.kind));
    if (entry !== null && GYMS_OWN.has(key)) return {};
    const best = nearest(key, Object.keys(KEYS));
    const hint = best === null ? `known are ${Object.keys(KEYS).join(', ')}` : `did you mean "${best}"?`;
    throw new UsageError(`${where}: unknown key "${key}"; ${hint}`);
  }
}

/** Returns the only entry under `NAME: {responses_api_agents: {AGENT: {…}}}`; null when the file does not have that form. */
function agentEntry(tree: Record<string, unknown>, where: string): Record<string, unknown> | null {
  const blocks: Record<string, unknown>[] = Object.values(tree).flatMap((block) => {
    const agents = asMapping(asMapping(block)?.responses_api_agents);
    return agents === null
      ? []
      : Object.values(agents).flatMap((entry) => {
          const keys = asMapping(entry);
          return keys === null ? [] : [keys];
        });
  });
  if (blocks.length > 1) {
    throw new UsageError(`${where}: ${blocks.length} agents; leave one, or give its keys alone`);
  }
  return blocks[0] ?? null;
}

function checked(where: string, value: unknown, kind: Kind): string {
  const text = String(value);
  const [isValid, expected] = rule(kind, value, text);
  if (!isValid) throw new UsageError(`${where}: expected ${expected}, found ${JSON.stringify(value)}`);
  return text;
}

function rule(kind: Kind, value: unknown, text: string): [isValid: boolean, expected: string] {
  switch (kind) {
    case 'count':
      return [/^\d+$/.test(text), 'a whole number'];
    case 'seconds':
      return [/^\d+(\.\d+)?$/.test(text) && Number(text) > 0, 'a number of seconds'];
    case 'text':
      return [typeof value === 'string' && value !== '', 'text'];
    case 'truth':
      return [typeof value === 'boolean', 'true or false'];
    default:
      return [kind.includes(text), kind.join(' or ')];
  }
}

const asMapping = (value: unknown): Record<string, unknown> | null =>
  value !== null && typeof value === 'object' && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;
