/** Opens a session: a run of one rollout whose id follows from the caller's own key, so that asking twice opens one. */
import { createHash } from 'node:crypto';
import { REWARD_TABLE } from '@swefarm/grading';
import {
  AgentConfig,
  EvaluationConfig,
  type Farm,
  Instance,
  type ProducerConfig,
  RunRecord,
  rolloutId,
  SandboxConfig,
} from '@swefarm/shared';
import { z } from 'zod';
import { chosenSha256 } from '../datasets/read.ts';
import { toInstance } from '../datasets/row.ts';
import { holdInstance, holdToCeilings } from '../gateway/ceilings.ts';
import { Refusal } from '../gateway/refusal.ts';
import { submit } from '../run/submit.ts';

const Row = z.record(z.string(), z.unknown());

export const SessionRequest = z.strictObject({
  /** The driver's own key of this trajectory: the same key is the same session. */
  request_id: z.string().min(1).max(200),
  /** A dataset row of any family, or its JSON text. */
  instance: z.union([Row, z.string()]).optional(),
  /** Or an instance of a run that the farm has, whose settings then hold too. */
  run_id: z.string().optional(),
  instance_id: z.string().optional(),
  /** Keys as in a run's configuration file; the agent is `external` whatever is said. */
  agent: Row.optional(),
  sandbox: Row.optional(),
  evaluation: Row.optional(),
  /** Without a call or a heartbeat for so long, the sandbox is removed. */
  lease_s: z.number().min(2).max(3600).default(120),
  /** How long the farm keeps the result. */
  ttl_s: z
    .number()
    .int()
    .min(600)
    .max(7 * 86_400)
    .default(86_400),
});
export type SessionRequest = z.infer<typeof SessionRequest>;

export type OpenedSession = { session_id: string; rollout_id: string; record: RunRecord };

/** `defaults`: settings of the caller, which the request's own win over. */
export async function openSession(
  farm: Farm,
  request: SessionRequest,
  caller: { name: string; run: Readonly<Record<string, unknown>> },
  config: ProducerConfig,
): Promise<OpenedSession> {
  const { instance, settings } = await instanceOf(farm, request, caller.run);
  const sessionId = sessionIdOf(caller.name, request.request_id);
  const raw = {
    format: 'swefarm-run-1',
    run_id: sessionId,
    created_at: new Date().toISOString(),
    kind: 'session',
    dataset: { path: `session of ${caller.name}`, sha256: chosenSha256([instance]), instances: 1 },
    group_size: 1,
    agent: { ...part(settings.agent), ...request.agent, type: 'external' },
    policy: null,
    sandbox: { ...part(settings.sandbox), ...request.sandbox },
    evaluation: { ...part(settings.evaluation), ...request.evaluation },
    reward: { ...part(settings.reward), table: REWARD_TABLE.name, hash: REWARD_TABLE.hash },
    ttl: request.ttl_s,
  };
  refuseUnknown(request);
  const parsed = RunRecord.safeParse(raw);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw wrong(issue?.path.join('.') ?? 'request', issue?.message ?? 'cannot be read');
  }
  holdToCeilings(parsed.data, config, '');
  holdInstance(instance, config, 'instance.needs_egress');
  const rollout = rolloutId(sessionId, instance.instance_id, 0);
  const session = { session_id: sessionId, rollout_id: rollout, lease_ms: request.lease_s * 1000 };
  try {
    // The session first: a worker that finds none would take its driver for dead.
    await farm.sessions.create(session);
    await submit(farm, { record: parsed.data, instances: [instance] });
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'run_differs') throw error;
    throw new Refusal(
      409,
      'session_differs',
      `request_id ${request.request_id}: this session was opened with another instance or other settings`,
      { field: 'request_id', cause: error },
    );
  }
  return { session_id: sessionId, rollout_id: rollout, record: parsed.data };
}

/** Letters and digits, first a letter, as every id. */
export const sessionIdOf = (caller: string, requestId: string): string =>
  `s${createHash('sha256').update(`${caller}\0${requestId}`).digest('hex').slice(0, 23)}`;

const SECTIONS = { agent: AgentConfig, sandbox: SandboxConfig, evaluation: EvaluationConfig } as const;

function refuseUnknown(request: SessionRequest): void {
  for (const [section, schema] of Object.entries(SECTIONS)) {
    const given = request[section as keyof typeof SECTIONS] ?? {};
    const stranger = Object.keys(given).find((key) => !(key in schema.shape));
    if (stranger !== undefined) {
      throw wrong(`${section}.${stranger}`, `unknown; known here: ${Object.keys(schema.shape).join(', ')}`);
    }
  }
}

async function instanceOf(
  farm: Farm,
  request: SessionRequest,
  defaults: Readonly<Record<string, unknown>>,
): Promise<{ instance: Instance; settings: Readonly<Record<string, unknown>> }> {
  const { instance: given, run_id: runId, instance_id: instanceId } = request;
  if (given !== undefined) return { instance: readInstance(given), settings: defaults };
  if (runId === undefined || instanceId === undefined) {
    throw wrong('instance', 'expected a dataset row, or run_id and instance_id of a run that the farm has');
  }
  const run = await farm.runs.get(runId);
  if (!run) throw new Refusal(404, 'run_unknown', `run_id: no run ${runId} here`, { field: 'run_id' });
  const instance = await farm.runs.getInstance(runId, instanceId);
  if (instance) return { instance, settings: run };
  throw new Refusal(404, 'instance_unknown', `instance_id: run ${runId} has no instance ${instanceId}`, {
    field: 'instance_id',
  });
}

function readInstance(given: string | Record<string, unknown>): Instance {
  let row: unknown = given;
  if (typeof given === 'string') {
    try {
      row = JSON.parse(given);
    } catch {
      throw wrong('instance', 'expected a dataset row, or its JSON text');
    }
  }
  const own = Instance.safeParse(row);
  if (own.success) return own.data;
  const read = toInstance('instance', part(row));
  if ('instance' in read) return read.instance;
  const [problem] = read.problems;
  throw wrong(
    `instance.${problem?.field ?? ''}`,
    `expected ${problem?.expected}, found ${problem?.found}; ${problem?.remedy}`,
  );
}

const part = (value: unknown): Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};

const wrong = (field: string, message: string): Refusal =>
  new Refusal(400, 'bad_request', `${field}: ${message}`, { field });
