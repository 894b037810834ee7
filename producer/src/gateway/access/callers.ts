/**
 * Who may call, and what each caller's rollouts are: a token, how failures are answered, and settings of a run.
 * One token may stand for several entries, told apart by the agent's name in Gym's rows.
 */
import { readFileSync } from 'node:fs';
import {
  environmentSecret,
  errorMessage,
  originsOf,
  PolicyName,
  type ProducerConfig,
  Secret,
  UsageError,
} from '@swefarm/shared';
import type { FastifyRequest } from 'fastify';
import { parse as parseYaml } from 'yaml';
import { z } from 'zod';
import { asTree, checkSettings } from '../../run/record.ts';
import { Refusal } from './refusal.ts';

/** How a rollout that could not be judged is answered; docs/gateway.md says what each does to a training step. */
export const FailureAnswer = z.enum(['collector', 'nemo-rl', 'nemo-rl-sync', 'verl-recipe', 'auto']);
export type FailureAnswer = z.infer<typeof FailureAnswer>;

/** What a caller's trainer does with `mask_sample`. */
const MaskSample = z.enum(['auto', 'honoured', 'ignored']);
const honoured = (said: z.infer<typeof MaskSample>): boolean | null =>
  said === 'auto' ? null : said === 'honoured';

export type Caller = {
  name: string;
  /** Null: whoever reaches the port. */
  token: Secret | null;
  /** Only rows whose `agent_ref.name` is this; null: all others. */
  entry: string | null;
  failures: FailureAnswer;
  /** Whether it leaves out what `mask_sample` marks; null: as is known of callers with its `failures`. */
  honoursMask: boolean | null;
  /** Seconds a call is held at most. */
  maxHoldSeconds: number;
  /** Answers carry `ng_trajectory`, by which Gym's own health check judges them. */
  trajectory: boolean;
  /** Keys of a run's record that this caller sets, as in a --run-config file. */
  run: Readonly<Record<string, unknown>>;
  /** Key of the policy; it goes to Redis apart from the jobs. */
  apiKey: Secret | null;
  /** Where that key may go beside the endpoints that the operator names. */
  apiKeyOrigins: readonly string[];
  /** Policies of which this caller may say what is served, `*`: all; null: see {@link maySpeakOf}. */
  policies: readonly string[] | null;
  /** Classes of priority that its requests may ask for beside training and collection; null: see {@link hasOneToken}. */
  kinds: readonly string[] | null;
  /** Most rollouts without a result, and most requests in a minute; null: as many as it likes. */
  maxInFlight: number | null;
  maxRequestsPerMinute: number | null;
};

const Entry = z.strictObject({
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'expected letters, digits, ".", "_" and "-"'),
  token_env: z.string().optional(),
  token_file: z.string().optional(),
  anonymous: z.boolean().optional(),
  entry: z.string().optional(),
  failures: FailureAnswer.optional(),
  mask_sample: MaskSample.optional(),
  max_hold_seconds: z.number().positive().optional(),
  ng_trajectory: z.boolean().optional(),
  api_key_env: z.string().optional(),
  api_key_origins: z.array(z.url({ protocol: /^https?$/ })).optional(),
  kinds: z.array(z.enum(['validation', 'training', 'collection'])).optional(),
  max_in_flight: z.number().int().positive().optional(),
  max_requests_per_minute: z.number().int().positive().optional(),
  policies: z.array(z.union([z.literal('*'), PolicyName])).optional(),
  run: z.record(z.string(), z.unknown()).optional(),
});
const CallersFile = z.strictObject({ callers: z.array(Entry).min(1) });

/**
 * The callers that the configuration names: those of its file, and one named `default` for its own token.
 *
 * @throws UsageError naming file and field
 */
export function readCallers(config: ProducerConfig): Caller[] {
  const plain = {
    entry: null,
    failures: config.gateway_failures,
    honoursMask: honoured(config.gateway_mask_sample),
    maxHoldSeconds: config.gateway_max_hold_seconds,
    trajectory: true,
    run: {},
    apiKey: config.policy_api_key,
    apiKeyOrigins: config.policy_api_key_origins,
    policies: null,
    kinds: null,
    maxInFlight: config.gateway_max_in_flight,
    maxRequestsPerMinute: config.gateway_max_requests_per_minute,
  };
  const callers: Caller[] = config.gateway_callers === null ? [] : fromFile(config.gateway_callers, plain);
  if (config.gateway_token) callers.push({ ...plain, name: 'default', token: config.gateway_token });
  if (config.gateway_anonymous) callers.push({ ...plain, name: 'anonymous', token: null });
  return callers;
}

function fromFile(path: string, plain: Omit<Caller, 'name' | 'token'>): Caller[] {
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
  for (const { name, run } of parsed.data.callers) checkSettings(`${where}: ${name}: run`, run ?? {});
  return parsed.data.callers.map((given) => ({
    ...plain,
    name: given.name,
    token: tokenOf(where, given),
    entry: given.entry ?? null,
    failures: given.failures ?? plain.failures,
    honoursMask: given.mask_sample === undefined ? plain.honoursMask : honoured(given.mask_sample),
    maxHoldSeconds: given.max_hold_seconds ?? plain.maxHoldSeconds,
    trajectory: given.ng_trajectory ?? plain.trajectory,
    run: given.run ?? plain.run,
    apiKey: given.api_key_env
      ? environmentSecret(given.api_key_env, `${where}: ${given.name}`)
      : plain.apiKey,
    apiKeyOrigins: [...(given.api_key_env ? [] : plain.apiKeyOrigins), ...originsOf(given.api_key_origins)],
    policies: given.policies ?? plain.policies,
    kinds: given.kinds ?? plain.kinds,
    maxInFlight: given.max_in_flight ?? plain.maxInFlight,
    maxRequestsPerMinute: given.max_requests_per_minute ?? plain.maxRequestsPerMinute,
  }));
}

function tokenOf(where: string, given: z.infer<typeof Entry>): Secret | null {
  const ways = [given.token_env, given.token_file, given.anonymous || undefined].filter(
    (way) => way !== undefined,
  );
  if (ways.length !== 1) {
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

/** Whether everybody who may call has the token of this request: then there is one tenant, and nobody to keep apart from. */
export function hasOneToken({ server, callers: [own] }: FastifyRequest): boolean {
  return server.callers.every(({ token }) => token?.reveal() === own?.token?.reveal());
}

/**
 * Refuses who may not say what a policy serves: by that, all rollouts that follow it are paused, or sent elsewhere. An entry's
 * `policies` decide; without them a caller speaks of the policy that its own settings name, and of all where there is one token.
 */
export function maySpeakOf(request: FastifyRequest, policy: string): void {
  const { callers: own } = request;
  const alone = hasOneToken(request);
  const allowed = own.some(({ policies, run }) =>
    policies === null
      ? alone || asTree(run.policy).name === policy
      : policies.includes('*') || policies.includes(policy),
  );
  if (allowed) return;
  const [first] = own;
  throw new Refusal(
    403,
    'policy_forbidden',
    `policy ${policy}: caller ${first?.name} may not speak of it; the operator allows it by policies: [${policy}] in its entry of gateway_callers`,
    { field: 'name' },
  );
}

/** The caller among those of the request's token: by the agent's name of a Gym row, else the one without an entry. */
export function callerOf(request: FastifyRequest, entry?: string | undefined): Caller {
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
