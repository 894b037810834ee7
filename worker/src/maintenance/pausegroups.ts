/**
 * A run that mostly fails by infrastructure pauses itself, and one whose tool calls nobody can read: what it would go on to
 * produce is a step without rewards, or with zeros that are nobody's fault, at full price. It says so, and goes on when
 * somebody resumes it.
 */
import { FAILURES, type FailureClass, type RunCounts, type RunPause, type RunRecord } from '@swefarm/shared';
import type { Duty } from './maintenance.ts';
import { eachRun } from './runs.ts';

/** Fewer failures than this say nothing about a run. */
const LEAST_FAILURES = 20;

export const infraPause: Duty = {
  name: 'infra-pause',
  everyMs: 2_000,
  async run(deps, signal) {
    const { farm, log } = deps;
    await eachRun('infra-pause', deps, signal, async (run) => {
      // A run that many callers feed is theirs to judge, each by its own.
      if (run.infra_pause_share === null || run.open) return;
      const pause = await farm.groups.paused(run.run_id);
      if (pause && pause.reason !== null) return;
      const reason = reasonToPause(run, await farm.results.counts(run.run_id), pause?.since ?? null);
      if (reason !== null && (await farm.groups.pause(run.run_id, reason, pause)))
        log.error({ run: run.run_id, reason }, `run paused; go on with: swefarm resume ${run.run_id}`);
    });
  },
};

/** Fewer answers than this, whose calls cannot be read, say nothing about a run. */
const LEAST_UNREAD = 20;
/** Of all answers: a model that is to learn the form may miss it often. */
const UNREAD_SHARE = 0.9;

type Counted = Pick<RunCounts, 'committed' | 'failures' | 'answers' | 'unread'>;

/** One line, or null when the run may go on. `since`: what was counted when somebody let it go on. */
export function reasonToPause(
  run: Pick<RunRecord, 'infra_pause_share'>,
  counts: Counted,
  since: RunPause['since'],
): string | null {
  if (run.infra_pause_share === null) return null;
  return failuresOf(run.infra_pause_share, counts, since) ?? unreadCallsOf(counts, since);
}

function unreadCallsOf(counts: Counted, since: RunPause['since']): string | null {
  const unread = Object.entries(counts.unread)
    .map(([marker, count]): [string, number] => [marker, count - (since?.unread[marker] ?? 0)])
    .filter(([, count]) => count > 0)
    .sort(([, a], [, b]) => b - a);
  const number = unread.reduce((sum, [, count]) => sum + count, 0);
  const answers = counts.answers - (since?.answers ?? 0);
  if (number < LEAST_UNREAD || number / answers <= UNREAD_SHARE) return null;
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

/** What belongs to the farm or to the policy; a broken instance spoils only its own rollouts. */
function isInfrastructure(name: string): boolean {
  const rule = FAILURES[name as FailureClass];
  return rule !== undefined && rule.stage !== 'instance' && (rule.retryable || rule.stage === 'policy');
}
