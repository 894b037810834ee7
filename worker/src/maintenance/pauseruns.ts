/**
 * Pauses a run if too many of its rollouts fail by infrastructure or too many tool calls are unreadable, because it would produce no
 * rewards or wrong ones. A person resumes the run. An open run is paused only for unreadable calls, because its callers judge failures
 * themselves. It is resumed after {@link OPEN_PAUSE_MS}, because callers cannot resume it.
 */
import {
  FAILURES,
  type FailureClass,
  type Farm,
  type RunCounts,
  type RunPause,
  type RunRecord,
  resumeRun,
} from '@swefarm/shared';
import { livingWorkers } from './commitunowned.ts';
import { dutyOfRuns } from './duty.ts';

const LEAST_FAILURES = 20;

const OPEN_PAUSE_MS = 300_000;

export const pauseFailingRuns = dutyOfRuns('pause-failing-runs', 2_000, async (run, { farm, log }, now) => {
  const { run_id: id, infra_pause_share: share } = run;
  if (share === null) return;
  const pause = await farm.groups.paused(id);
  if (pause && pause.reason !== null) {
    if (pause.ends_at !== undefined && now >= pause.ends_at) await resumeRun(farm, id);
    return;
  }
  const reason = await reasonToPause(farm, run, share, pause?.since ?? null);
  if (reason === null) return;
  const fields = { run: id, reason, ...(run.open ? { seconds: OPEN_PAUSE_MS / 1000 } : {}) };
  if (await farm.groups.pause(id, reason, pause, run.open ? OPEN_PAUSE_MS : undefined))
    log.error(fields, 'run paused; go on with: swefarm resume RUN');
});

const LEAST_UNREAD = 20;
/** Share of unreadable answers above which a run is paused; high, because a model in training may often miss the form of a call. */
const UNREAD_SHARE = 0.9;

type Counted = Pick<RunCounts, 'committed' | 'failures' | 'answers' | 'unread'>;

/** The running rollouts of a run. Rollouts with unreadable answers end first, so ended rollouts alone are no fair sample. */
type InWork = {
  rollouts: number;
  /** Number of answers of rollouts that have more turns than a rollout with unreadable answers can have. */
  answers: number;
};
const NOTHING: InWork = { rollouts: 0, answers: 0 };

/** Returns in one line why the run must be paused, or null. `since`: the counts when the run was last resumed. */
async function reasonToPause(farm: Farm, run: RunRecord, share: number, since: RunPause['since']) {
  const counts = await farm.results.counts(run.run_id);
  const failures = run.open ? null : failuresOf(share, counts, since);
  if (failures !== null) return failures;
  // The running rollouts are read only when the committed ones are evidence against the run.
  if (unreadCallsOf(counts, since, NOTHING) === null) return null;
  return unreadCallsOf(counts, since, await inWorkOf(farm, run));
}

async function inWorkOf(farm: Farm, run: RunRecord): Promise<InWork> {
  const [rollouts, workers] = await Promise.all([farm.journal.countInWork(run.run_id), livingWorkers(farm)]);
  const turns = (await farm.live.running([...workers], run.run_id)).map((one) => one.turns);
  const read = turns.filter((count) => count > run.agent.format_limit);
  return { rollouts, answers: read.reduce((sum, count) => sum + count, 0) };
}

function unreadCallsOf(counts: Counted, since: RunPause['since'], inWork: InWork): string | null {
  const { total, list } = increase(Object.entries(counts.unread), since?.unread);
  const answers = counts.answers - (since?.answers ?? 0) + inWork.answers;
  if (total < LEAST_UNREAD || total / answers <= UNREAD_SHARE) return null;
  if (counts.committed - (since?.committed ?? 0) < inWork.rollouts) return null;
  return (
    `the tool calls of ${total} of ${answers} answers could not be read (${list}): ` +
    "name the model's form with --tool-parser (token-in), or fix the endpoint's tool-call parser"
  );
}

function failuresOf(share: number, counts: Counted, since: RunPause['since']): string | null {
  const infrastructure = Object.entries(counts.failures).filter(([name]) => isInfrastructure(name));
  const { total, list } = increase(infrastructure, since?.failures);
  const committed = counts.committed - (since?.committed ?? 0);
  if (total < LEAST_FAILURES || total / committed < share) return null;
  return `${total} of ${committed} rollouts failed by infrastructure (${list})`;
}

/** Returns the sum of the increases over `since`, and a list of names with their increases, the highest first. */
function increase(counts: readonly [string, number][], since: Readonly<Record<string, number>> = {}) {
  const higher = counts
    .map(([name, count]) => ({ name, count: count - (since[name] ?? 0) }))
    .filter(({ count }) => count > 0)
    .sort((a, b) => b.count - a.count);
  return {
    total: higher.reduce((sum, { count }) => sum + count, 0),
    list: higher.map(({ name, count }) => `${name} ${count}`).join(', '),
  };
}

/** Returns whether a failure is one of the farm or the policy. A broken instance affects only its own rollouts. */
function isInfrastructure(name: string): boolean {
  const rule = FAILURES[name as FailureClass];
  return rule !== undefined && rule.stage !== 'instance' && (rule.retryable || rule.stage === 'policy');
}
