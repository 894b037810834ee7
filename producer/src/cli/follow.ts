/** Collects with a display: progress, what the workers do, and readable lines when the output is a terminal. */

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

export type Follow = {
  farm: Farm;
  config: ProducerConfig;
  record: RunRecord;
  rollouts: ReadonlySet<string>;
  output: Output;
  copyArtifactsTo?: string | undefined;
  onResult?: CollectOptions['onResult'] | undefined;
  /** As in CollectOptions. */
  feed?: CollectOptions['feed'];
  mark?: CollectOptions['mark'];
  onLine?: CollectOptions['onLine'];
  /** What the progress display shows. */
  words?: ProgressWords | undefined;
  signal: AbortSignal;
  /** Receives the progress display once it is shown, to print lines without tearing it. */
  onProgress?: (progress: Progress) => void;
};

const WATCH_MS = 2_000;

/** Collects until all results are there or the signal ends it. Throws as {@link collect} does. */
export async function follow(task: Follow): Promise<Collected> {
  const { farm, rollouts, output } = task;
  const progress = startProgress(rollouts.size, output.lines.values(), process.stderr, task.words);
  task.onProgress?.(progress);
  const watch = setInterval(() => void watchFarm(task, progress), WATCH_MS);
  try {
    return await collect(farm, {
      runId: task.record.run_id,
      rollouts,
      output,
      // The farm may open more rollouts in place of lost ones.
      growing: task.record.refills > 0,
      copyArtifactsTo: task.copyArtifactsTo,
      patienceMs: task.config.redis_patience_seconds * 1000,
      onResult: task.onResult,
      feed: task.feed,
      mark: task.mark,
      onLine: (line) => {
        task.onLine?.(line);
        progress.add(line);
      },
      onWarning: (text) => progress.say(`swefarm: ${text}`),
      signal: task.signal,
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
    const held = pause?.reason ?? null;
    const paused =
      held === null
        ? (workers.find((worker) => worker.paused !== null)?.paused ?? null)
        : `${held}; swefarm resume ${record.run_id}`;
    const note = workers.length === 0 ? 'no worker alive' : paused === null ? null : `paused: ${paused}`;
    progress.note(running, note);
  } catch {
    // collect() itself waits for Redis, and throws when its patience ends.
    progress.note(null, 'Redis does not answer');
  }
}

/** `-` is standard output: JSON lines in a pipe, one readable line per rollout on a terminal. */
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
