/** Measures how long a branch takes from its start to the turn from which it continues: a fresh sandbox and a replay of twenty commands. */
import { branchRun } from '@swefarm/runs';
import { parseRolloutId } from '@swefarm/shared';
import { COMMANDS } from './commands.ts';
import { openEnvironment, runBatch, runSubmission, startPolicy, startWorker } from './farm.ts';
import { skippedLines, table } from './print.ts';
import { SCRIPT } from './rollouts.ts';
import { type Skipped, usableRuntimes } from './sandbox.ts';
import { median, rounded } from './statistics.ts';
import type { Subject } from './subject.ts';

/** `branch_ms`: median over the branches without the patch. `sandbox_ms`: its part until the first command. */
type BranchCell = { runtime: string; parallel: number; branch_ms: number; sandbox_ms: number };
export type BranchPart = { turns: number; reps: number; cells: BranchCell[]; skipped: Skipped[] };

export async function measureBranches(
  subject: Subject,
  parallel: readonly number[],
  reps: number,
): Promise<BranchPart> {
  const turns = COMMANDS.length;
  await using environment = await openEnvironment();
  await using policy = await startPolicy(environment, 'branch', SCRIPT, []);
  const { usable, skipped } = await usableRuntimes();
  const cells: BranchCell[] = [];
  for (const runtime of usable) {
    await using worker = await startWorker(environment, runtime, Math.max(...parallel));
    const { farm } = worker;
    const flags = {
      policyUrl: [policy.url],
      activate: ':',
      eval: false,
      tokenMode: 'token-in',
      requireTokens: true,
    };
    const { results } = await runBatch(worker, subject.instance, 1, flags);
    const [first] = results;
    const content = await farm.artifacts.read(first?.artifact ?? null);
    const run = await farm.runs.get(parseRolloutId(first?.rollout_id ?? '').runId);
    if (!first || !content?.trajectory || !run) throw new Error('the first rollout has no trajectory');
    for (const branches of parallel) {
      const samples: { whole: number; sandbox: number }[] = [];
      for (let rep = 0; rep < reps; rep++) {
        const branching = { rolloutId: first.rollout_id, turn: turns, branches };
        const submission = branchRun(run, subject.instance, content.trajectory, branching);
        for (const { seconds } of (await runSubmission(worker, submission, branches)).results) {
          const sandbox = 1000 * (seconds.image + seconds.sandbox);
          samples.push({ whole: 1000 * (seconds.total - seconds.patch), sandbox });
        }
      }
      cells.push({
        ...{ runtime, parallel: branches },
        branch_ms: rounded(median(samples.map(({ whole }) => whole)), 0),
        sandbox_ms: rounded(median(samples.map(({ sandbox }) => sandbox)), 0),
      });
    }
  }
  return { turns, reps, cells, skipped };
}

export const printBranches = ({ turns, reps, cells, skipped }: BranchPart): string =>
  [
    `A branch behind ${turns} turns, until its first own answer (${reps} rounds)`,
    table([
      ['runtime', 'at once', 'branch ms', 'of it sandbox ms'],
      ...cells.map(({ runtime, parallel, branch_ms, sandbox_ms }) => [
        runtime,
        parallel,
        branch_ms,
        sandbox_ms,
      ]),
    ]),
    ...skippedLines(skipped),
  ].join('\n');
