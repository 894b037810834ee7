/** `npm run test:chaos -- --seed N`: a real farm under a seeded schedule of faults; the last line is JSON. */
import { resolve } from 'node:path';
import { inspect, parseArgs } from 'node:util';
import { runChaos } from './chaos.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    rollouts: { type: 'string' },
    workers: { type: 'string', default: '3' },
    short: { type: 'boolean', default: false },
    led: { type: 'boolean' },
  },
});

const logsDir = resolve(import.meta.dirname, '../../.swefarm/chaos', `seed-${values.seed}`);
const { timeline, ...report } = await runChaos({
  seed: Number(values.seed),
  rollouts: Number(values.rollouts ?? (values.short ? 60 : 300)),
  workers: Number(values.workers),
  short: values.short,
  // Even seeds use a Redis that `swefarm redis` leads.
  led: values.led ?? Number(values.seed) % 2 === 0,
  logsDir,
  limitMs: values.short ? 8 * 60_000 : 25 * 60_000,
  onNote: (line) => process.stderr.write(`${line}\n`),
}).catch((error: unknown) => {
  for (const each of withSuppressed(error)) process.stderr.write(`${inspect(each)}\n`);
  process.exit(1);
});
if (report.problems.length > 0) {
  process.stderr.write(`\nseed ${report.seed} went wrong; logs are in ${logsDir}\n${timeline}\n\n`);
  for (const problem of report.problems) process.stderr.write(`  ${problem}\n`);
}
process.stdout.write(`${JSON.stringify(report)}\n`);
process.exit(report.problems.length === 0 ? 0 : 1);

/** Returns the first error and the errors of the subsequent cleanup, which Node does not print. */
function withSuppressed(error: unknown): unknown[] {
  return error instanceof SuppressedError
    ? [...withSuppressed(error.suppressed), ...withSuppressed(error.error)]
    : [error];
}
