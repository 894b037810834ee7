/** Loads the configuration from file, environment and flags (later ones win) into one frozen object. */
import { UsageError } from '../failures/errors.ts';
import { Secret } from '../security/secret.ts';
import {
  ALL_KEYS,
  type ConfigRole,
  type Environment,
  envName,
  flagName,
  keysOf,
  type ProducerConfig,
  type WorkerConfig,
} from './keys.ts';
import { nearest } from './nearest.ts';
import { readYaml } from './yaml.ts';

export type { CommonConfig, ConfigRole, Environment, ProducerConfig, WorkerConfig } from './keys.ts';

export type ConfigSources = {
  /** Parsed command line: keys as `redisUrl` or `redis_url`; other keys and undefined values are ignored. */
  flags?: Readonly<Record<string, unknown>>;
  env?: Environment;
  /** Path of a YAML or JSON file; default: the flag `config`, then the variable SWEFARM_CONFIG. */
  file?: string;
};

type Given = { value: unknown; from: string };

/** Loads the configuration. Throws UsageError that names the source, the key and the expected value, or the nearest known key. */
export function loadConfig(role: 'worker', sources?: ConfigSources): WorkerConfig;
export function loadConfig(role: 'producer', sources?: ConfigSources): ProducerConfig;
export function loadConfig(role: ConfigRole, sources: ConfigSources = {}): WorkerConfig | ProducerConfig {
  const env = sources.env ?? process.env;
  const flags = sources.flags ?? {};
  const file = sources.file ?? textOf(flags.config) ?? textOf(env.SWEFARM_CONFIG);
  const given = new Map<string, Given>([
    ...(file === undefined ? [] : fromFile(file)),
    ...fromEnvironment(env),
    ...fromFlags(flags),
  ]);
  const config: Record<string, unknown> = {};
  const mine = keysOf(role);
  for (const [name, key] of Object.entries(ALL_KEYS)) {
    const at = given.get(name);
    // Producer and worker may share a file, so the keys of the other role are checked too.
    const value = at === undefined ? key.default(env, config) : check(name, at);
    if (name in mine) config[name] = value;
  }
  return Object.freeze(config) as WorkerConfig | ProducerConfig;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function check(name: string, given: Given): unknown {
  const parsed = ALL_KEYS[name]?.schema.safeParse(given.value);
  if (parsed?.success) return parsed.data;
  const reasons = new Set(parsed?.error.issues.flatMap(messagesOf));
  const shown = /password|key|url/.test(name) ? '' : ` (given: ${JSON.stringify(given.value)})`;
  throw new UsageError(`${given.from}: ${[...reasons].join(', or ')}${shown}`);
}

type Issue = { code?: string | undefined; message: string; errors?: Issue[][] };

/** Returns the messages of an issue; for a union, the messages of its members. */
function messagesOf(issue: Issue): string[] {
  const inner = (issue.errors ?? []).flat().flatMap(messagesOf);
  const specific = inner.filter((message) => !/expected Secret/.test(message));
  return specific.length > 0 ? specific : [issue.message];
}

function fromFile(path: string): [string, Given][] {
  const parsed = readYaml(path, `configuration file ${path}`);
  if (parsed === null || parsed === undefined) return [];
  if (typeof parsed !== 'object' || Array.isArray(parsed)) {
    throw new UsageError(`configuration file ${path}: expected a mapping of keys to values`);
  }
  return Object.entries(parsed).flatMap(([name, value]): [string, Given][] => {
    if (!(name in ALL_KEYS)) {
      throw new UsageError(
        `configuration file ${path}: unknown key "${name}"${hint(name, Object.keys(ALL_KEYS))}`,
      );
    }
    return value === null ? [] : [[name, { value, from: `configuration file ${path}, key "${name}"` }]];
  });
}

/** Matches variables that are not configuration keys: the file's path, variables of slurm/, of the Python client and of tests. */
const FOREIGN = /^SWEFARM_(CONFIG$|GATEWAY_URL$|BIN$|TEST_|SLURM_)/;

function fromEnvironment(env: Environment): [string, Given][] {
  const variables = new Map(Object.keys(ALL_KEYS).map((name) => [envName(name), name]));
  for (const variable of Object.keys(env)) {
    if (variable.startsWith('SWEFARM_') && !FOREIGN.test(variable) && !variables.has(variable)) {
      throw new UsageError(
        `environment: unknown variable ${variable}${hint(variable, [...variables.keys()])}`,
      );
    }
  }
  return Object.entries(ALL_KEYS).flatMap(([name, key]): [string, Given][] => {
    for (const variable of [envName(name), ...key.otherEnv]) {
      const value = env[variable];
      if (value) return [[name, { value, from: `environment variable ${variable}` }]];
    }
    return [];
  });
}

function fromFlags(flags: Readonly<Record<string, unknown>>): [string, Given][] {
  return Object.keys(ALL_KEYS).flatMap((name): [string, Given][] => {
    const value = flags[camelCase(name)] ?? flags[name];
    return value === undefined || value === null ? [] : [[name, { value, from: `flag ${flagName(name)}` }]];
  });
}

const camelCase = (name: string): string =>
  name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

function hint(name: string, known: readonly string[]): string {
  const best = nearest(name, known);
  return best === null ? '' : `; did you mean "${best}"?`;
}

/** Returns the flags of a role for the command line parser. `secret`: whether the value is a secret. */
export function configOptions(role: ConfigRole) {
  return Object.entries(keysOf(role)).map(([name, key]) => ({
    key: name,
    flag: `${flagName(name)} <value>`,
    doc: `${key.doc} (${envName(name)}${key.shown === '' ? '' : `; default ${key.shown}`})`,
    secret: key.schema.safeParse(new Secret('x')).success,
  }));
}

/** Returns the configuration with masked secrets. */
export function describeConfig(config: WorkerConfig | ProducerConfig): Record<string, unknown> {
  return JSON.parse(JSON.stringify(config)) as Record<string, unknown>;
}
