/** Opens a session: a run of one rollout. Its id is a hash of caller and `request_id`, so a repeated request opens the same session. */
import { createHash } from 'node:crypto';
import { chosenSha256, type RowOptions, toInstance } from '@swefarm/datasets';
import { REWARD_TABLE } from '@swefarm/grading';
import { asTree, submit } from '@swefarm/runs';
import {
  AgentConfig,
  EvaluationConfig,
  type Farm,
  Instance,
  REWARD_WEIGHTS_LEVEL,
  RunRecord,
  rolloutId,
  SandboxConfig,
  SESSION_INPUTS_LEVEL,
  SessionClock,
  SessionInputs,
  SwefarmError,
} from '@swefarm/shared';
import { z } from 'zod';
import type { Caller } from '../access/callers.ts';
import type { GatewayDeps } from '../access/deps.ts';
import { Refusal } from '../access/refusal.ts';

const Row = z.record(z.string(), z.unknown());

export const SessionRequest = z.strictObject({
  /** Key by which the driver identifies the session. */
  request_id: z.string().min(1).max(200),
  /** A dataset row of any family, or its JSON text. */
  instance: z.union([Row, z.string()]).optional(),
  /** Run that contains `instance_id`, and whose settings apply to the session; absent: the gateway's dataset contains the instance. */
  run_id: z.string().optional(),
  instance_id: z.string().optional(),
  /** Keys of a run record. The type of the agent is always `external`. */
  agent: Row.optional(),
  sandbox: Row.optional(),
  evaluation: Row.optional(),
  /** `all`: the driver also reads and writes files, or uses raw output, the patch or the clock. Needs a worker of level 2. */
  inputs: SessionInputs.default('commands'),
  clock: SessionClock.default('wall').meta({
    description:
      'what time_limit counts: all time, or only that in which the sandbox works, without the time of the model',
  }),
  /** Seconds without a call or a heartbeat after which the sandbox is removed. */
  lease_s: z.number().min(2).max(3600).default(120),
  /** Seconds for which the farm stores the result. */
  ttl_s: z
    .number()
    .int()
    .min(600)
    .max(7 * 86_400)
    .default(86_400),
});
export type SessionRequest = z.infer<typeof SessionRequest>;

type DescribedSession = {
  session_id: string;
  rollout_id: string;
  lease_ms: number;
  inputs: SessionRequest['inputs'];
  clock: SessionRequest['clock'];
  record: RunRecord;
  instance: Instance;
};

/** Level (needs.ts) of workers that give feedback on submits. */
const FEEDBACK_LEVEL = 3;

/**
 * Returns the run and the instance of a request, and writes nothing. The request's settings replace those of `caller.run` or `run_id`.
 *
 * @throws Refusal 400, 404
 */
export async function describeSession(
  deps: Pick<GatewayDeps, 'farm' | 'rows' | 'instances'>,
  request: SessionRequest,
  caller: Pick<Caller, 'name' | 'run'>,
): Promise<DescribedSession> {
  const { instance, settings } = await instanceAndSettings(deps, request, caller.run);
  const sessionId = sessionIdOf(caller.name, request.request_id);
  const { inputs, clock } = request;
  const isBasic = inputs === 'commands' && clock === 'wall';
  const agent = { ...asTree(settings.agent), ...request.agent, type: 'external' };
  const isWeighted = typeof asTree(settings.reward).weights === 'string';
  const needs = isWeighted
    ? REWARD_WEIGHTS_LEVEL
    : 'max_submits' in agent
      ? FEEDBACK_LEVEL
      : isBasic
        ? null
        : SESSION_INPUTS_LEVEL;
  const raw = {
    format: 'swefarm-run-1',
    ...(needs === null ? {} : { needs }),
    run_id: sessionId,
    created_at: new Date().toISOString(),
    kind: 'session',
    dataset: { path: `session of ${caller.name}`, sha256: chosenSha256([instance]), instances: 1 },
    group_size: 1,
    agent,
    policy: null,
    sandbox: { ...asTree(settings.sandbox), ...request.sandbox },
    evaluation: { ...asTree(settings.evaluation), ...request.evaluation },
    reward: { ...asTree(settings.reward), table: REWARD_TABLE.name, hash: REWARD_TABLE.hash },
    ttl: request.ttl_s,
  };
  requireKnownKeys(request);
  const parsed = RunRecord.safeParse(raw);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw badRequest(issue?.path.join('.') ?? 'request', issue?.message ?? 'cannot be read');
  }
  return {
    session_id: sessionId,
    rollout_id: rolloutId(sessionId, instance.instance_id, 0),
    lease_ms: request.lease_s * 1000,
    ...{ inputs, clock },
    record: parsed.data,
    instance,
  };
}

/**
 * Writes the session and queues its rollout. A repeated call only renews the lease of the session.
 *
 * @throws Refusal 409 `session_differs`: the session has another instance or other settings
 */
export async function openSession(farm: Farm, session: DescribedSession): Promise<void> {
  const { record, instance, session_id, rollout_id, lease_ms, inputs, clock } = session;
  try {
    // The session is written before the job: a worker that finds no session for a job assumes that the driver died.
    await farm.sessions.create({ session_id, rollout_id, lease_ms, inputs, clock });
    await submit(farm, { record, instances: [instance] });
  } catch (error) {
    if (!(error instanceof SwefarmError) || error.code !== 'run_differs') throw error;
    throw differs(error);
  }
  const state = await farm.sessions.state(session_id);
  if (state && (state.inputs !== inputs || state.clock !== clock)) throw differs();
}

function differs(cause?: unknown): Refusal {
  const message = 'request_id: this session was opened with another instance or other settings';
  return new Refusal(409, 'session_differs', message, { field: 'request_id', cause });
}

export const sessionIdOf = (caller: string, requestId: string): string =>
  `s${createHash('sha256').update(`${caller}\0${requestId}`).digest('hex').slice(0, 23)}`;

const SECTIONS = { agent: AgentConfig, sandbox: SandboxConfig, evaluation: EvaluationConfig } as const;

function requireKnownKeys(request: SessionRequest): void {
  for (const [section, schema] of Object.entries(SECTIONS)) {
    const given = request[section as keyof typeof SECTIONS] ?? {};
    const unknown = Object.keys(given).find((key) => !(key in schema.shape));
    if (unknown !== undefined) {
      const known = Object.keys(schema.shape).join(', ');
      throw badRequest(`${section}.${unknown}`, `unknown key; expected one of ${known}`);
    }
  }
}

async function instanceAndSettings(
  { farm, rows, instances }: Pick<GatewayDeps, 'farm' | 'rows' | 'instances'>,
  { instance: given, run_id: runId, instance_id: instanceId }: SessionRequest,
  defaults: Caller['run'],
): Promise<{ instance: Instance; settings: Readonly<Record<string, unknown>> }> {
  if (given !== undefined) return { instance: readInstance(given, rows), settings: defaults };
  if (instanceId === undefined) {
    throw badRequest(
      'instance',
      "expected a dataset row, instance_id of the gateway's dataset, or run_id and instance_id of a run that the farm has",
    );
  }
  if (runId === undefined) {
    const known = instances?.get(instanceId);
    if (known) return { instance: known, settings: defaults };
    throw notFound(
      'instance_unknown',
      'instance_id',
      `unknown instance ${instanceId}; send the whole row as instance, add run_id, or start serve with its --dataset`,
    );
  }
  const run = await farm.runs.get(runId);
  if (!run) throw notFound('run_unknown', 'run_id', `unknown run ${runId}`);
  const instance = await farm.runs.getInstance(runId, instanceId);
  if (instance) return { instance, settings: run };
  throw notFound('instance_unknown', 'instance_id', `run ${runId} has no instance ${instanceId}`);
}

function readInstance(given: string | Record<string, unknown>, rows?: RowOptions): Instance {
  let row: unknown = given;
  if (typeof given === 'string') {
    try {
      row = JSON.parse(given);
    } catch {
      throw badRequest('instance', 'expected a dataset row, or its JSON text');
    }
  }
  const own = Instance.safeParse(row);
  if (own.success) return own.data;
  const read = toInstance('instance', asTree(row), rows);
  if ('instance' in read) return read.instance;
  const [problem] = read.problems;
  throw badRequest(
    `instance.${problem?.field ?? ''}`,
    `expected ${problem?.expected}, found ${problem?.found}; ${problem?.remedy}`,
  );
}

const badRequest = (field: string, message: string): Refusal =>
  new Refusal(400, 'bad_request', `${field}: ${message}`, { field });

const notFound = (code: string, field: string, message: string): Refusal =>
  new Refusal(404, code, `${field}: ${message}`, { field });
