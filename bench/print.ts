/** Renders results as tables, with ratios first. */
import { type Load, plus, times } from './load.ts';
import type { MemoryPart } from './memory.ts';
import type { RolloutsPart } from './rollouts.ts';
import type { Skipped } from './sandbox.ts';
import type { Times } from './scale/step.ts';
import type { ScalePart, ScaleRow } from './scale.ts';
import { rounded } from './statistics.ts';

/** Renders a table. The first row is the header; numbers are right-aligned. */
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

export const skippedLines = (skipped: readonly Skipped[]): string[] =>
  skipped.map(({ what, why }) => `not measured: ${what} (${why})`);

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
    `Whole rollouts of 20 commands (${reps} rounds); floor: Docker alone`,
    table([head, ...rows]),
    ...skippedLines(skipped),
  ].join('\n');
}

export function printMemory(part: MemoryPart): string {
  const { rss_mib: rss, loop_lag_p99_ms: lag } = part;
  return [
    `A worker with ${part.rollouts} rollouts of ${part.turns} turns to ${part.last_prompt_tokens} tokens (${part.runtime})`,
    table([
      [
        'MiB each over 150',
        'peak MiB',
        'idle MiB',
        'after MiB',
        'worst p99 lag ms',
        'usual',
        'all in flight',
        'CPU s',
      ],
      [
        ...[part.mib_per_rollout, rss.peak, rss.idle, rss.after, lag.worst, lag.median],
        ...[part.in_flight_share, part.cpu_seconds],
      ],
    ]),
  ].join('\n');
}

/** Minutes and turns of a typical rollout, from which the load of a farm with all slots in use is computed. */
const AT_WORK = { minutes: 10, turns: 60 } as const;

export function printScale({ rows }: ScalePart): string {
  const kb = (bytes: number): number => rounded(bytes / 1000, 1);
  const costs = rows.map(({ nodes, connections, idle, running, begun, ended, turn }) => {
    const whole = plus(begun, ended);
    return [
      ...[
        nodes,
        connections,
        Math.round(idle.redis_us),
        Math.round(idle.commands),
        Math.round(idle.worker_us),
      ],
      ...[rounded(running.redis_us, 1), rounded(running.commands, 1)],
      ...[
        rounded(whole.redis_us / 1000, 2),
        Math.round(whole.commands),
        kb(whole.in_bytes),
        kb(whole.out_bytes),
      ],
      ...[Math.round(turn.redis_us), rounded(turn.commands, 0), kb(turn.in_bytes)],
    ];
  });
  const spaces = rows.map(({ nodes, slots, memory, ...row }) => {
    const load = atWork({ nodes, slots, ...row });
    const mb = (bytes: number): number => rounded(bytes / 1e6, 1);
    return [
      ...[nodes, nodes * slots, `${rounded(load.redis_us / 10_000, 0)} %`, Math.round(load.commands)],
      ...[mb(load.in_bytes), mb(load.out_bytes)],
      ...[kb(memory.running_bytes), kb(memory.turn_bytes), kb(memory.result_bytes), mb(memory.peak_bytes)],
    ];
  });
  const fills = rows.map(({ nodes, slots, fill, filled, recovery }) => [
    ...[nodes, nodes * slots, fill, filled.submit_seconds, filled.half_seconds, filled.most_seconds],
    ...[filled.all_seconds, filled.images, filled.pulls],
    ...(recovery
      ? [
          recovery.nodes,
          recovery.rollouts,
          recovery.first_seconds,
          recovery.half_seconds,
          recovery.all_seconds,
        ]
      : ['-', '-', '-', '-', '-']),
  ]);
  const steps = rows.map(({ nodes, step }) => [
    ...[nodes, step.rollouts, step.images, step.pulls],
    ...[shown(step.ideal_seconds), shown(step.seconds)],
  ]);
  const [first] = rows;
  return [
    'Costs for Redis: CPU, commands (including those of scripts), bytes',
    table([
      ['nodes', 'connections', 'idle node/s us', 'cmds', '(node us)', 'running/s us', 'cmds'].concat([
        'rollout ms',
        'cmds',
        'kB in',
        'kB out',
        'turn us',
        'cmds',
        'kB in',
      ]),
      ...costs,
    ]),
    `\nAll slots in use, computed from these costs: rollouts of ${AT_WORK.minutes} minutes and ${AT_WORK.turns} turns; share of one core, a second; memory in kB each`,
    table([
      ['nodes', 'slots', 'Redis', 'cmds', 'MB in', 'MB out'].concat([
        'running kB',
        'turn kB',
        'result kB',
        'peak here MB',
      ]),
      ...spaces,
    ]),
    '\nFilling the slots of an empty farm, and losing a tenth of its nodes; seconds',
    table([
      ['nodes', 'slots', 'rollouts', 'submit', 'half run', '99 %', 'all', 'images', 'pulls'].concat([
        'nodes lost',
        'rollouts lost',
        'first again',
        'half',
        'all',
      ]),
      ...fills,
    ]),
    `\nA training step on nodes without images, durations / ${first?.compress}: commits after so many seconds, p50 p95 p99 last`,
    table([['nodes', 'rollouts', 'images', 'pulls', 'ideal', 'farm'], ...steps]),
  ].join('\n');
}

/** Returns the load per second of the whole farm with all slots in use. */
function atWork({ nodes, slots, idle, running, begun, ended, turn }: Omit<ScaleRow, 'memory'>): Load {
  const each = plus(begun, ended, times(turn, AT_WORK.turns));
  return plus(
    times(idle, nodes),
    times(running, nodes * slots),
    times(each, (nodes * slots) / (60 * AT_WORK.minutes)),
  );
}

const shown = ({ p50, p95, p99, last }: Times): string => [p50, p95, p99, last].join(' ');
