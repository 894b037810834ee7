/**
 * Callers of the gateway: token, answer to failures, quota and settings of a run.
 * Several entries of `gateway_callers` may share a token; the agent's name in a Gym row then selects the entry.
 */
import { readFileSync } from 'node:fs';
import { asTree, merge, requireKnownKeys, type SettingsTree } from '@swefarm/runs';
import {
  environmentSecret,
  errorMessage,
  originsOf,
  PolicyName,
  type ProducerConfig,
  parseYaml,
  Secret,
  UsageError,
} from '@swefarm/shared';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { Refusal } from './refusal.ts';

/** Modes of answers to a rollout without a verdict; docs/gateway.md describes the effect on a training step. */
export const FailureAnswer = z.enum(['collector', 'nemo-rl', 'nemo-rl-sync', 'verl-recipe', 'auto']);
export type FailureAnswer = z.infer<typeof FailureAnswer>;

const MaskSample = z.enum(['auto', 'honoured', 'ignored']);
const isHonoured = (setting: z.infer<typeof MaskSample>): boolean | null =>
  setting === 'auto' ? null : setting === 'honoured';

/** A caller. A field that the callers file sets directly has the name of its key in that file. */
export type Caller = {
  name: string;
  /** Null: the caller sends no token. */
  token: Secret | null;
  /** `agent_ref.name` of the caller's rows; null: all rows whose name is the `entry` of no other caller with this token. */
  entry: string | null;
  failures: FailureAnswer;
  /** Whether the caller's trainer excludes samples with `mask_sample`; null: `failures` decides. */
  honoursMask: boolean | null;
  /** Whether answers mask rollouts that a token limit cut. A row may override it. */
  mask_overlong: boolean;
  /** Maximum time that a call waits, in seconds. */
  max_hold_seconds: number;
  /** Whether answers contain `ng_trajectory`, which Gym's health check reads. */
  ng_trajectory: boolean;
  /** Settings of the caller's runs: keys of a run record, as in a --run-config file. */
  run: Readonly<Record<string, unknown>>;
  apiKey: Secret | null;
  /** Origins that receive `apiKey`, in addition to the endpoints that the operator names. */
  apiKeyOrigins: readonly string[];
  /** Policies whose state this caller may set (`*`: all); null: see {@link requirePolicyAllowed}. */
  policies: readonly string[] | null;
  /** Only `validation` has an effect: the caller may request it if it is listed, or, with null, if the gateway has one token. */
  kinds: readonly string[] | null;
  /** Maximum number of rollouts without a result; null: no limit. */
  max_in_flight: number | null;
  max_requests_per_minute: number | null;
};

const Entry = z.strictObject({
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'expected letters, digits, ".", "_" and "-"'),
  token_env: z.string().exactOptional(),
  token_file: z.string().exactOptional(),
  anonymous: z.boolean().exactOptional(),
  entry: z.string().exactOptional(),
  failures: FailureAnswer.exactOptional(),
  mask_sample: MaskSample.exactOptional(),
  mask_overlong: z.boolean().exactOptional(),
  max_hold_seconds: z.number().positive().exactOptional(),
  ng_trajectory: z.boolean().exactOptional(),
  api_key_env: z.string().exactOptional(),
  api_key_origins: z.array(z.url({ protocol: /^https?$/ })).exactOptional(),
  kinds: z.array(z.enum(['validation', 'training', 'collection'])).exactOptional(),
  max_in_flight: z.number().int().positive().exactOptional(),
  max_requests_per_minute: z.number().int().positive().exactOptional(),
  policies: z.array(z.union([z.literal('*'), PolicyName])).exactOptional(),
  run: z.record(z.string(), z.unknown()).exactOptional(),
});
const CallersFile = z.strictObject({ callers: z.array(Entry).min(1) });

/**
 * Returns the callers of `gateway_callers`, and the callers `default` and `anonymous` if the configuration allows them.
 *
 * @throws UsageError with file and field
 */
export function readCallers(config: ProducerConfig): Caller[] {
  const defaults = {
    entry: null,
    failures: config.gateway_failures,
    honoursMask: isHonoured(config.gateway_mask_sample),
    mask_overlong: false,
    max_hold_seconds: config.gateway_max_hold_seconds,
    ng_trajectory: true,
    run: {},
    apiKey: config.policy_api_key,
    apiKeyOrigins: config.policy_api_key_origins,
    policies: null,
    kinds: null,
    max_in_flight: config.gateway_max_in_flight,
    max_requests_per_minute: config.gateway_max_requests_per_minute,
  };
  const callers: Caller[] = config.gateway_callers === null ? [] : readFile(config.gateway_callers, defaults);
  if (config.gateway_token) callers.push({ ...defaults, name: 'default', token: config.gateway_token });
  if (config.gateway_anonymous) callers.push({ ...defaults, name: 'anonymous', token: null });
  return callers;
}

function readFile(path: string, defaults: Omit<Caller, 'name' | 'token'>): Caller[] {
  const where = `callers file ${path}`;
  let tree: unknown;
  try {
    tree = parseYaml(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new UsageError(`${where}: ${errorMessage(error)}`, { cause: error });
  }
  const parsed = CallersFile.safeParse(tree);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new UsageError(`${where}: ${issue?.path.join('.') || 'the file'}: ${issue?.message}`);
  }
  for (const { name, run } of parsed.data.callers) requireKnownKeys(`${where}: ${name}: run`, run ?? {});
  return parsed.data.callers.map(({ api_key_env: variable, api_key_origins: origins, ...given }) => {
    const caller = { ...defaults, ...given, token: readToken(where, given) };
    if (given.mask_sample !== undefined) caller.honoursMask = isHonoured(given.mask_sample);
    if (variable) {
      caller.apiKey = environmentSecret(variable, `${where}: ${given.name}`);
      caller.apiKeyOrigins = [];
    }
    return { ...caller, apiKeyOrigins: [...caller.apiKeyOrigins, ...originsOf(origins)] };
  });
}

function readToken(where: string, given: z.infer<typeof Entry>): Secret | null {
  const sources = [given.token_env, given.token_file, given.anonymous || undefined];
  if (sources.filter((source) => source !== undefined).length !== 1) {
    throw new UsageError(
      `${where}: ${given.name}: expected one of token_env, token_file and anonymous: true`,
    );
  }
  if (given.token_env !== undefined) return environmentSecret(given.token_env, `${where}: ${given.name}`);
  if (given.token_file === undefined) return null;
  try {
    const token = readFileSync(given.token_file, 'utf8').trim();
    if (token !== '') return new Secret(token);
  } catch (error) {
    throw new UsageError(`${where}: ${given.name}: token_file: ${errorMessage(error)}`, { cause: error });
  }
  throw new UsageError(`${where}: ${given.name}: token_file ${given.token_file} is empty`);
}

/** Returns whether all callers have the same token, so that the gateway has one tenant. */
export function hasOneToken({ server, callers: [caller] }: FastifyRequest): boolean {
  return server.callers.every(({ token }) => token?.reveal() === caller?.token?.reveal());
}

/**
 * Refuses a caller that may not set the state of a policy: the state affects all rollouts that follow the policy. A caller without
 * `policies` in its entry may set the policy of its own settings, and any policy if the gateway has one token.
 */
export function requirePolicyAllowed(request: FastifyRequest, policy: string): void {
  const isOnly = hasOneToken(request);
  const isAllowed = request.callers.some(({ policies, run }) =>
    policies === null
      ? isOnly || asTree(run.policy).name === policy
      : policies.includes('*') || policies.includes(policy),
  );
  if (isAllowed) return;
  const [first] = request.callers;
  throw new Refusal(
    403,
    'policy_forbidden',
    `policy ${policy}: caller ${first?.name} may not set it; the operator allows it by policies: [${policy}] in its entry of gateway_callers`,
    { field: 'name' },
  );
}

/**
 * Returns the caller whose `entry` is the agent's name in a Gym row, otherwise the caller without an `entry`, otherwise, for a request
 * without a name, the first caller. Throws Refusal 400 `unknown_entry`.
 */
export function findCaller(request: FastifyRequest, entry?: string): Caller {
  const { callers } = request;
  const caller =
    callers.find((one) => one.entry !== null && one.entry === entry) ??
    callers.find((one) => one.entry === null) ??
    (entry === undefined ? callers[0] : undefined);
  if (caller) return caller;
  const known = callers.map((one) => one.entry).join(', ');
  throw new Refusal(400, 'unknown_entry', `agent_ref.name: no entry ${entry}; this token has ${known}`, {
    field: 'agent_ref.name',
  });
}

/** Returns the settings of `serve` with those of the caller over them. */
export const operatorSettings = (
  ofServe: SettingsTree | undefined,
  { run }: Pick<Caller, 'run'>,
): SettingsTree => merge(merge({}, ofServe ?? {}), run);
