/**
 * NeMo RL as a caller of `/run`, by the rules of its own code (nemo_rl/experience/rollout_manager.py and failures.py,
 * nemo_rl/algorithms/async_utils/trajectory_collector.py): one stream of answers, which ends at the first failure while the other
 * connections stay open, and budgets by whether the failure is infrastructure's or the row's.
 */
import { sleep } from '@swefarm/shared';
import { type Consumed, consume } from './consume.ts';

export type Row = Record<string, unknown>;
export type Posted = { status: number; text: string };
/** Sends one row and never aborts it. */
export type Post = (row: Row) => Promise<Posted>;

export type Sample = Consumed & { row: Row; text: string };

/** The defaults of SingleController's `async_rl.rollout_failure`. */
export type Budgets = {
  rowAttempts: number;
  infraAttempts: number;
  dataAttempts: number;
  skippedPrompts: number;
  backoffMs: number;
  /** `nemo_gym.rollout_timeout_s`: ends a group's stream as infrastructure's failure, and closes no connection. */
  deadlineMs: number;
};
export const BUDGETS: Budgets = {
  rowAttempts: 3,
  infraAttempts: 5,
  dataAttempts: 2,
  skippedPrompts: 0,
  backoffMs: 0,
  deadlineMs: 24 * 3_600_000,
};

export type Group =
  | { end: 'committed'; samples: Sample[] }
  /** The prompt was dropped within `max_skipped_prompts`, and none of its samples is trained on. */
  | { end: 'skipped' }
  /** The error that ends the training. */
  | { end: 'raised'; what: string };

class RolloutError extends Error {
  readonly infrastructure: boolean;
  constructor(sample: Consumed, text: string) {
    super(`${sample.raises}: ${text.slice(0, 600)}`);
    this.infrastructure = sample.raises === 'infrastructure';
  }
}

/** Yields answers in order of arrival until one is a failure; the other requests are not aborted. */
async function* stream(rows: readonly Row[], post: Post): AsyncGenerator<Sample> {
  const pending = new Map(
    rows.map((row, at) => [at, post(row).then((answer) => ({ at, row, ...answer }))] as const),
  );
  for (const one of pending.values()) one.catch(() => undefined);
  while (pending.size > 0) {
    const { at, row, status, text } = await Promise.race(pending.values());
    pending.delete(at);
    const sample = consume(status, text);
    if (sample.raises !== null) throw new RolloutError(sample, text);
    yield { ...sample, row, text };
  }
}

const numbered = (row: Row, index: number): Row => ({ ...row, _rowidx: index });

/** One prompt of SingleController (RolloutManager.generate_and_push): sends missing rows again, then the whole prompt. */
export async function singleController(
  prompt: Row,
  generations: number,
  post: Post,
  budgets: Partial<Budgets> = {},
): Promise<Group> {
  const own = { ...BUDGETS, ...budgets };
  for (let infra = 0, data = 0; ; ) {
    try {
      return { end: 'committed', samples: await groupInTime(prompt, generations, post, own) };
    } catch (error) {
      if (!(error instanceof RolloutError)) throw error;
      if (error.infrastructure) {
        if (++infra >= own.infraAttempts) return { end: 'raised', what: error.message };
        await sleep(own.backoffMs * 2 ** (infra - 1));
      } else if (++data >= own.dataAttempts) {
        return own.skippedPrompts > 0 ? { end: 'skipped' } : { end: 'raised', what: error.message };
      }
    }
  }
}

async function groupInTime(
  prompt: Row,
  generations: number,
  post: Post,
  { rowAttempts, deadlineMs }: Budgets,
): Promise<Sample[]> {
  const late = AbortSignal.timeout(deadlineMs);
  const over = new Promise<never>((_, reject) => {
    late.addEventListener('abort', () => reject(new RolloutError(TIMEOUT, 'RolloutTimeout')));
  });
  over.catch(() => undefined);
  const group = groupOf(prompt, generations, post, rowAttempts, late);
  group.catch(() => undefined);
  return await Promise.race([group, over]);
}
const TIMEOUT = { raises: 'infrastructure' } as Consumed;

async function groupOf(
  prompt: Row,
  generations: number,
  post: Post,
  rowAttempts: number,
  late: AbortSignal,
): Promise<Sample[]> {
  const rows = Array.from({ length: generations }, (_, index) => numbered(prompt, index));
  const samples = new Map<unknown, Sample>();
  for (let attempt = 1; samples.size < rows.length; attempt++) {
    const missing = rows.filter(({ _rowidx }) => !samples.has(_rowidx));
    try {
      for await (const sample of stream(missing, post)) samples.set(sample.row._rowidx, sample);
    } catch (error) {
      if (!(error instanceof RolloutError) || !error.infrastructure) throw error;
      if (attempt >= rowAttempts || late.aborted) throw error;
    }
  }
  return rows.flatMap(({ _rowidx }) => samples.get(_rowidx) ?? []);
}

/** A batch of the asynchronous collector: complete groups are stored; after a failure all rows of the other groups are sent again. */
export async function asyncCollector(
  prompts: readonly Row[],
  generations: number,
  post: Post,
  retries: number,
): Promise<Sample[][]> {
  const groups = new Map<number, Sample[]>();
  for (let attempt = 0; groups.size < prompts.length; attempt++) {
    const rows = prompts.flatMap((prompt, task) =>
      groups.has(task)
        ? []
        : Array.from({ length: generations }, (_, at) => ({
            ...numbered(prompt, task * generations + at),
            _ng_task_index: task,
          })),
    );
    const complete = new Map<number, Sample[]>();
    try {
      for await (const sample of stream(rows, post)) {
        const task = Number(sample.row._ng_task_index);
        const group = [...(complete.get(task) ?? []), sample];
        complete.set(task, group);
        if (group.length === generations) groups.set(task, group);
      }
    } catch (error) {
      if (!(error instanceof RolloutError) || attempt >= retries) throw error;
    }
  }
  return [...groups.values()];
}

/** The part of a sample that enters a training step. SingleController omits masked samples only since pull request 3766. */
export function weightOf(sample: Sample, honoursMask: boolean): { loss: 0 | 1; inBaseline: boolean } {
  const out = honoursMask && sample.masked;
  return { loss: out ? 0 : 1, inBaseline: !out };
}
