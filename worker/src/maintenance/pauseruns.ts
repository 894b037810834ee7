/**
 * Pauses a run that mostly fails by infrastructure, or whose tool calls cannot be read: at full price it would produce a step
 * without rewards, or with zeros that the model did not earn. It continues when a person resumes it. An open run is paused for unread
 * calls alone, for its callers judge failures themselves, and is resumed after a while: callers cannot resume it.
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
import { type Duty, eachRun } from './duty.ts';

/** With fewer failures there is too little evidence to pause a run. */
const LEAST_FAILURES = 20;

export const pauseFailingRuns: Duty = {
  name: 'pause-failing-runs',
  everyMs: 2_000,
  async run(deps, signal) {
    const { farm, log } = deps;
    await eachRun(this.name, deps, signal, async (run, now) => {
      const { run_id: id } = run;
      if (run.infra_pause_share === null) return;
      const pause = await farm.groups.paused(id);
      if (pause && pause.reason !== null) {
        if (pause.ends_at !== undefined && now >= pause.ends_at) await resumeRun(farm, id);
        return;
      }
      const reason = await reasonToPause(farm, run, pause?.since ?? null);
      if (reason === null) return;
      if (await farm.groups.pause(id, reason, pause, run.open ? OPEN_PAUSE_MS : undefined))
        log.error({ run: id, reason, ...(run.open ? { seconds: OPEN_PAUSE_MS / 1000 } : {}) }, PAUSED);
    });
  },
};

const PAUSED = 'run paused; go on with: swefarm resume RUN';
/** How long an open run is paused: then its next rollouts show whether the calls can be read. */
const OPEN_PAUSE_MS = 300_000;

/** With fewer unreadable answers there is too little evidence to pause a run. */
const LEAST_UNREAD = 20;
/** Share of all answers; it is high because a model that still learns the form may often miss it. */
const UNREAD_SHARE = 0.9;

type Counted = Pick<RunCounts, 'committed' | 'failures' | 'answers' | 'unread'>;

/** What running rollouts show of a run's answers: those with unreadable answers end first, so ended rollouts are no fair sample. */
type InWork = {
  rollouts: number;
  /** Answers of rollouts that have more turns than one with unreadable answers can have. */
  answers: number;
};
const NOTHING: InWork = { rollouts: 0, answers: 0 };

/** One line for people, or null when the run may go on. `since`: the counts when the run was last resumed. */
async function reasonToPause(farm: Farm, run: RunRecord, since: RunPause['since']): Promise<string | null> {
  if (run.infra_pause_share === null) return null;
  const counts = await farm.results.counts(run.run_id);
  const failures = run.open ? null : failuresOf(run.infra_pause_share, counts, since);
  if (failures !== null) return failures;
  // Read the running rollouts only when the committed ones speak against the run.
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
  const unread = Object.entries(counts.unread)
    .map(([marker, count]): [string, number] => [marker, count - (since?.unread[marker] ?? 0)])
    .filter(([, count]) => count > 0)
    .sort(([, a], [, b]) => b - a);
  const number = unread.reduce((sum, [, count]) => sum + count, 0);
  const answers = counts.answers - (since?.answers ?? 0) + inWork.answers;
  if (number < LEAST_UNREAD || number / answers <= UNREAD_SHARE) return null;
  if (counts.committed - (since?.committed ?? 0) < inWork.rollouts) return null;
  const markers = unread.map(([marker, count]) => `${marker} ${count}`).join(', ');
  return (
    `the tool calls of ${number} of ${answers} answers could not be read (${markers}): ` +
    "name the model's form with --tool-parser (token-in), or mend the endpoint's tool-call parser"
  );
}

function failuresOf(share: number, counts: Counted, since: RunPause['since']): string | null {
  const failures = Object.entries(counts.failures)
    .filter(([name]) => isInfrastructure(name))
    .map(([name, count]): [string, number] => [name, count - (since?.failures[name] ?? 0)])
    .filter(([, count]) => count > 0)
    .sort(([, a], [, b]) => b - a);
  const failed = failures.reduce((sum, [, count]) => sum + count, 0);
  const committed = counts.committed - (since?.committed ?? 0);
  if (failed < LEAST_FAILURES || failed / committed < share) return null;
  const causes = failures.map(([name, count]) => `${name} ${count}`).join(', ');
  return `${failed} of ${committed} rollouts failed by infrastructure (${causes})`;
}

/** Faults of the farm or the policy; a broken instance spoils only its own rollouts. */
function isInfrastructure(name: string): boolean {
  const rule = FAILURES[name as FailureClass];
  return rule !== undefined && rule.stage !== 'instance' && (rule.retryable || rule.stage === 'policy');
}
