/** Reads the file of `--gym-config`: converts settings of Gym's mini_swe_agent to the equivalent flags of swefarm. */
import { isRow } from '@swefarm/datasets';
import { nearest, readYaml, UsageError } from '@swefarm/shared';

export type GymFlags = {
  concurrency?: string;
  runtime?: string;
  apptainerImages?: string;
  agent?: string;
  stepTimeout?: string;
  evalTimeout?: string;
  collapseLimit?: string;
  stepLimit?: string;
  skipIfExists?: boolean;
};

/** `json`: pattern of the JSON of a valid value. `expected`: description of valid values, for errors. */
type Form = [json: RegExp, expected: string];
const COUNT: Form = [/^"?\d+"?$/, 'a whole number'];
const SECONDS: Form = [/^"?(?=.*[1-9])\d+(\.\d+)?"?$/, 'a number of seconds'];
const TEXT: Form = [/^".+"$/, 'text'];
const TRUTH: Form = [/^(true|false)$/, 'true or false'];
const RUNTIME: Form = [/^"(docker|singularity)"$/, 'docker or singularity'];

/** Keys of MiniSWEAgentConfig (responses_api_agents/mini_swe_agent/app.py) and the flags that replace each key. */
const KEYS: Record<string, { form: Form; flags: (value: string) => GymFlags }> = {
  concurrency: { form: COUNT, flags: (concurrency) => ({ concurrency }) },
  env: { form: RUNTIME, flags: (env) => ({ runtime: env === 'singularity' ? 'apptainer' : env }) },
  cache_dir_template: { form: TEXT, flags: (apptainerImages) => ({ apptainerImages }) },
  run_golden: { form: TRUTH, flags: (golden) => (golden === 'true' ? { agent: 'golden' } : {}) },
  step_timeout: { form: SECONDS, flags: (stepTimeout) => ({ stepTimeout }) },
  eval_timeout: { form: SECONDS, flags: (evalTimeout) => ({ evalTimeout }) },
  skip_if_exists: { form: TRUTH, flags: (skip) => ({ skipIfExists: skip === 'true' }) },
  collapse_limit: { form: COUNT, flags: (collapseLimit) => ({ collapseLimit }) },
  step_limit: { form: COUNT, flags: (stepLimit) => ({ stepLimit }) },
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
  const where = `--gym-config ${path}`;
  return gymFlags(readYaml(path, where), where);
}

/** Converts a parsed file: the keys alone, or Gym's configuration with one agent. Throws the errors of {@link readGymConfig}. */
export function gymFlags(tree: unknown, where: string): GymFlags {
  if (!isRow(tree)) throw new UsageError(`${where}: expected a mapping of keys`);
  // The form of Gym's configuration is `NAME: {responses_api_agents: {AGENT: {…}}}`.
  const entries = Object.values(tree)
    .flatMap((block) =>
      isRow(block) && isRow(block.responses_api_agents) ? [block.responses_api_agents] : [],
    )
    .flatMap((agents) => Object.values(agents).filter(isRow));
  if (entries.length > 1)
    throw new UsageError(`${where}: ${entries.length} agents; leave one, or give its keys alone`);
  const [entry] = entries;
  return Object.assign({}, ...Object.entries(entry ?? tree).map(([key, value]) => read(key, value)));

  function read(key: string, value: unknown): GymFlags {
    const known = Object.hasOwn(KEYS, key) ? KEYS[key] : undefined;
    if (known) {
      if (value === null) return {};
      const [form, expected] = known.form;
      const found = JSON.stringify(value);
      if (form.test(found)) return known.flags(String(value));
      throw new UsageError(`${where}: ${key}: expected ${expected}, found ${found}`);
    }
    if (entry !== undefined && GYMS_OWN.has(key)) return {};
    const best = nearest(key, Object.keys(KEYS));
    const hint = best === null ? `known are ${Object.keys(KEYS).join(', ')}` : `did you mean "${best}"?`;
    throw new UsageError(`${where}: unknown key "${key}"; ${hint}`);
  }
}
