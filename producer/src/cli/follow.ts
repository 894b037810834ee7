import { type Farm, type ProducerConfig, type RunRecord, successOf } from '@swefarm/shared';
import type { OutputLine } from '@swefarm/trajectories';
import {
  type Collected,
  type CollectOptions,
  collect,
  type Output,
  openOutputFile,
  renderReward,
  streamOutput,
} from '@swefarm/trajectories';
import { type Progress, type ProgressWords, startProgress } from '../view/progress.ts';
import { styled, writeTo } from './terminal.ts';

/** A run whose record is final and whose output is open. */
export type OpenRun = {
  farm: Farm;
  config: ProducerConfig;
  record: RunRecord;
  output: Output;
  copyArtifactsTo?: string | undefined;
};

export type Follow = OpenRun &
  Pick<CollectOptions, 'rollouts' | 'onResult' | 'feed' | 'mark' | 'onLine'> & {
    words?: ProgressWords | undefined;
    signal: AbortSignal;
    /** Receives the progress display, which can print notes. */
    onProgress?: (progress: Progress) => void;
  };

const WATCH_MS = 2_000;

/** Collects the results and shows the progress. Throws the errors of {@link collect}. */
export async function follow(task: Follow): Promise<Collected> {
  const { farm, rollouts, output } = task;
  const progress = startProgress(rollouts.size, output.lines.values(), process.stderr, task.words);
  task.onProgress?.(progress);
  const watch = setInterval(() => void watchFarm(task, progress), WATCH_MS);
  try {
    return await collect(farm, {
      ...task,
      runId: task.record.run_id,
      // With refills, the farm may queue more rollouts in place of failed ones.
      growing: task.record.refills > 0,
      patienceMs: task.config.redis_patience_seconds * 1000,
      onLine: (line) => {
        task.onLine?.(line);
        progress.add(line);
      },
      onWarning: (text) => progress.printLine(`swefarm: ${text}`),
    });
  } finally {
    clearInterval(watch);
    progress.stop();
  }
}

async function watchFarm({ farm, record }: Follow, progress: Progress): Promise<void> {
  try {
    const [workers, pause] = await Promise.all([farm.registry.list(), farm.groups.paused(record.run_id)]);
    const running = workers.reduce((sum, worker) => sum + worker.active, 0);
    const paused = pause?.reason
      ? `${pause.reason}; swefarm resume ${record.run_id}`
      : workers.find((worker) => worker.paused !== null)?.paused;
    const note = workers.length === 0 ? 'no worker alive' : paused ? `paused: ${paused}` : null;
    progress.note(running, note);
  } catch {
    // collect() waits up to `patienceMs` for Redis and then throws.
    progress.note(null, 'Redis does not answer');
  }
}

/** Opens an output file. For `-`, prints JSON lines into a pipe, or a readable line for each rollout on a terminal. */
export async function openOutput(path: string, runId: string | null): Promise<Output> {
  if (path !== '-') return await openOutputFile(path, runId);
  if (!process.stdout.isTTY) return streamOutput((text) => writeTo(process.stdout, text));
  return streamOutput(async (text) => {
    for (const line of text.trimEnd().split('\n')) {
      await writeTo(process.stdout, `\r\u001b[2K${humanLine(JSON.parse(line) as OutputLine)}\n`);
    }
  });
}

function humanLine(line: OutputLine): string {
  const paint = (style: 'green' | 'red' | 'yellow', text: string) => styled(style, text, process.stdout);
  const mark =
    line.outcome === 'judged'
      ? line.resolved === null && line.reward !== null
        ? paint('green', '• scored    ')
        : successOf(line)
          ? paint('green', '✓ resolved  ')
          : paint('red', line.resolved ? '✗ unrewarded' : '✗ unresolved')
      : paint('yellow', `! ${line.outcome.padEnd(10)}`);
  const end = line.failure
    ? `${line.failure.stage}/${line.failure.class}: ${line.failure.message}`
    : `reward ${renderReward(line.reward)}, ${line.turns} turns, ${line.exit_status ?? 'done'}`;
  return `${mark} ${line.instance_id} #${line.rollout_index}  ${end}, ${line.seconds.total.toFixed(1)} s`;
}
