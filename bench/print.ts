/** Results for people: aligned columns, ratios first. */
import type { GatewayPart } from './gateway.ts';
import type { MemoryPart } from './memory.ts';
import type { RolloutsPart } from './rollouts.ts';
import type { ShellPart, Skipped } from './shell.ts';

/** First row is the head; numbers stand to the right. */
export function table(rows: readonly (readonly (string | number)[])[]): string {
  const texts = rows.map((row) => row.map(String));
  const widths = (texts[0] ?? []).map((_, at) => Math.max(...texts.map((row) => (row[at] ?? '').length)));
  const isNumber = (rows[1] ?? []).map((cell) => typeof cell === 'number');
  const line = (row: readonly string[]): string =>
    row
      .map((cell, at) => (isNumber[at] ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)))
      .join('  ');
  return texts.map((row) => line(row).trimEnd()).join('\n');
}

const skippedLines = (skipped: readonly Skipped[]): string[] =>
  skipped.map(({ what, why }) => `not measured: ${what} (${why})`);

export function printShell({ results, skipped }: ShellPart): string {
  const head = [
    'runtime',
    'activation',
    'exec/ours',
    'ours-bare p50',
    'ours p50',
    'p95',
    'bare p50',
    'p95',
    'exec p50',
    'p95',
  ];
  const rows = results.map(({ runtime, activation, ms, ...one }) => [
    runtime,
    activation,
    one.exec_over_ours_p50,
    one.over_bare_p50_ms,
    ...[ms.ours, ms.bare, ms.exec].flatMap(({ p50, p95 }) => [p50, p95]),
  ]);
  return [
    `One command, ms (20 commands, ${results[0]?.reps ?? 0} rounds); aims: ours-bare <= 2, exec/ours >= 20`,
    table([head, ...rows]),
    ...skippedLines(skipped),
  ].join('\n');
}

export function printRollouts({ cells, reps, skipped }: RolloutsPart): string {
  const head = [
    'parallel',
    'graded',
    'docker/floor',
    'rootfs/floor',
    'docker /min',
    'rootfs /min',
    'floor /min',
  ];
  const rows = cells.map(({ parallel, graded, of_docker_floor: ratio, per_minute: rate }) => [
    parallel,
    graded ? 'yes' : 'no',
    ...[ratio.docker, ratio.rootfs, rate.docker?.p50, rate.rootfs?.p50, rate.floor?.p50].map(
      (value) => value ?? '-',
    ),
  ]);
  return [
    `Whole rollouts of 20 commands (${reps} rounds); floor: Docker alone; aims: docker/floor >= 0.85, rootfs/floor >= 1.5`,
    table([head, ...rows]),
    ...skippedLines(skipped),
  ].join('\n');
}

export function printMemory(part: MemoryPart): string {
  const { rss_mib: rss, loop_lag_p99_ms: lag } = part;
  return [
    `A worker with ${part.rollouts} rollouts of ${part.turns} turns to ${part.last_prompt_tokens} tokens (${part.runtime}); ` +
      'aims: <= 150 MiB + 2 MiB each, loop lag p99 < 50 ms',
    table([
      [
        'MiB each over 150',
        'peak MiB',
        'idle MiB',
        'after MiB',
        'worst p99 lag ms',
        'usual',
        'all in flight',
      ],
      [part.mib_per_rollout, rss.peak, rss.idle, rss.after, lag.worst, lag.median, part.in_flight_share],
    ]),
  ].join('\n');
}

export function printGateway(part: GatewayPart): string {
  const mib = (bytes: number): number => Math.round((bytes / 1024 ** 2) * 100) / 100;
  return [
    `A gateway that holds ${part.calls} calls of ${part.turns} turns to ${part.tokens} tokens; ${part.cut} connections cut, ` +
      'the gateway killed and started again; aims: as many answers and rollouts as calls, <= 400 MiB, Redis <= 1 MiB each',
    table([
      ['answers', 'rollouts', 'posts', 'answer MiB', 'gateway peak MiB', 'Redis MiB each', 'delivery s'],
      [
        part.answered,
        part.rollouts,
        part.posts,
        mib(part.answer_bytes),
        mib(part.gateway_peak_bytes),
        mib(part.redis_bytes_per_call),
        part.delivery_seconds,
      ],
    ]),
  ].join('\n');
}
