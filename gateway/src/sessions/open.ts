/** Opens a session: a run of one rollout. Its id is made from the caller's own key, so that the same request twice opens one session. */
import { createHash } from 'node:crypto';
import { chosenSha256, type RowOptions, toInstance } from '@swefarm/datasets';
import { REWARD_TABLE } from '@swefarm/grading';
import { asTree, submit } from '@swefarm/runs';
import {
  AgentConfig,
  EvaluationConfig,
  type Farm,
  Instance,
  RunRecord,
  rolloutId,
  SandboxConfig,
  SwefarmError,
} from '@swefarm/shared';
import { z } from 'zod';

const Row = z.record(z.string(), z.unknown());

export const SessionRequest = z.strictObject({
  /** The driver's own key of this session: the same key is the same session. */
  request_id: z.string().min(1).max(200),
  /** A dataset row of any family, or its JSON text. */
  instance: z.union([Row, z.string()]).optional(),
  /** Or an instance of a run that the farm has; its settings then apply too. Without a run: one of the gateway's dataset. */
  run_id: z.string().optional(),
  instance_id: z.string().optional(),
  /** Keys as in a run's configuration file; the agent is always `external`. */
  agent: Row.optional(),
  sandbox: Row.optional(),
  evaluation: Row.optional(),
  /** Without a call or a heartbeat for so long, the sandbox is removed. */
  lease_s: z.number().min(2).max(3600).default(120),
  /** How long the farm stores the result. */
  ttl_s: z
    .number()
    .int()
    .min(600)
    .max(7 * 86_400)
    .default(86_400),
});
export type SessionRequest = z.infer<typeof SessionRequest>;

/** A request that opens no session. `field`: the part of the request that is wrong. */
export class SessionError extends SwefarmError {
  override readonly name = 'SessionError';
  readonly field: string;

  constructor(
    code: 'bad_request' | 'run_unknown' | 'instance_unknown' | 'session_differs',
    field: string,
    message: string,
    options: { cause?: unknown } = {},
  ) {
    super(code, message, options);
    this.field = field;
  }
}

export type DescribedSession = {
  session_id: string;
  rollout_id: string;
  lease_ms: number;
  record: RunRecord;
  instance: Instance;
};

/**
 * The run and the instance that a request asks for; nothing is written.
 *
 * @param caller its `run` holds settings that the request's own replace
 * @param dataset finds an instance by its id; undefined for one that is not there
 * @throws SessionError
 */
export async function describeSession(
  farm: Farm,
  request: SessionRequest,
  caller: { name: string; run: Readonly<Record<string, unknown>> },
  rows: RowOptions = {},
  dataset: (id: string) => Instance | undefined = () => undefined,
): Promise<DescribedSession> {
  const { instance, settings } = await instanceAndSettings(farm, request, caller.run, rows, dataset);
  const sessionId = sessionIdOf(caller.name, request.request_id);
  const raw = {
    format: 'swefarm-run-1',
    run_id: sessionId,
    created_at: new Date().toISOString(),
    kind: 'session',
    dataset: { path: `session of ${caller.name}`, sha256: chosenSha256([instance]), instances: 1 },
    group_size: 1,
    agent: { ...asTree(settings.agent), ...request.agent, type: 'external' },
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
    record: parsed.data,
    instance,
  };
}

/**
 * Writes the session and queues its rollout; the same session again changes nothing.
 *
 * @throws SessionError `session_differs`: it was opened with other settings
 */
export async function openSession(farm: Farm, session: DescribedSession): Promise<void> {
  const { record, instance, session_id, rollout_id, lease_ms } = session;
  try {
    // The session is written first: a worker that finds none takes its driver for dead.
    await farm.sessions.create({ session_id, rollout_id, lease_ms });
    await submit(farm, { record, instances: [instance] });
  } catch (error) {
    if (!(error instanceof SwefarmError) || error.code !== 'run_differs') throw error;
    throw new SessionError(
      'session_differs',
      'request_id',
      'request_id: this session was opened with another instance or other settings',
      { cause: error },
    );
  }
}

/** Letters and digits, a letter first, as in every id. */
export const sessionIdOf = (caller: string, requestId: string): string =>
  `s${createHash('sha256').update(`${caller}\0${requestId}`).digest('hex').slice(0, 23)}`;

const SECTIONS = { agent: AgentConfig, sandbox: SandboxConfig, evaluation: EvaluationConfig } as const;

function requireKnownKeys(request: SessionRequest): void {
  for (const [section, schema] of Object.entries(SECTIONS)) {
    const given = request[section as keyof typeof SECTIONS] ?? {};
    const unknown = Object.keys(given).find((key) => !(key in schema.shape));
    if (unknown !== undefined) {
      throw badRequest(
        `${section}.${unknown}`,
        `unknown; known here: ${Object.keys(schema.shape).join(', ')}`,
      );
    }
  }
}

async function instanceAndSettings(
  farm: Farm,
  request: SessionRequest,
  defaults: Readonly<Record<string, unknown>>,
  rows: RowOptions,
  dataset: (id: string) => Instance | undefined,
): Promise<{ instance: Instance; settings: Readonly<Record<string, unknown>> }> {
  const { instance: given, run_id: runId, instance_id: instanceId } = request;
  if (given !== undefined) return { instance: readInstance(given, rows), settings: defaults };
  if (instanceId === undefined) {
    throw badRequest(
      'instance',
      "expected a dataset row, instance_id of the gateway's dataset, or run_id and instance_id of a run that the farm has",
    );
  }
  if (runId === undefined) {
    const known = dataset(instanceId);
    if (known) return { instance: known, settings: defaults };
    throw new SessionError(
      'instance_unknown',
      'instance_id',
      `instance_id: ${instanceId} is not known here; send the whole row as instance, add run_id, or start serve with its --dataset`,
    );
  }
  const run = await farm.runs.get(runId);
  if (!run) throw new SessionError('run_unknown', 'run_id', `run_id: no run ${runId} here`);
  const instance = await farm.runs.getInstance(runId, instanceId);
  if (instance) return { instance, settings: run };
  throw new SessionError(
    'instance_unknown',
    'instance_id',
    `instance_id: run ${runId} has no instance ${instanceId}`,
  );
}

function readInstance(given: string | Record<string, unknown>, rows: RowOptions): Instance {
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

const badRequest = (field: string, message: string): SessionError =>
  new SessionError('bad_request', field, `${field}: ${message}`);
