/**
 * Runs as the worker of a job with less memory than its sandboxes may use: takes too much memory for the job, and for the sandbox, in a
 * shell and in an evaluation. Prints one line of JSON. Arguments: folder, image.
 */
import { join } from 'node:path';
import { planEvaluation } from '@swefarm/grading';
import type { Container } from '@swefarm/sandbox';
import { createRemovals, openShell, rootfsRuntime } from '@swefarm/sandbox';
import { LIMITS, NEVER, spec } from '@swefarm/sandbox/test/subject.ts';
import { RolloutFailure } from '@swefarm/shared';
import { bareInstance } from '@swefarm/testkit';
import { runOnce } from '../../src/evaluation/cleanrun.ts';
import type { CleanRunDeps } from '../../src/evaluation/work.ts';

const [folder = '', image = ''] = process.argv.slice(2);
const MIB = 1024 ** 2;
const HOG = `python3 -c 'x = b"x" * ${500 * MIB}; import time; time.sleep(600)'`;

const runtime = await rootfsRuntime({
  imagesDir: join(folder, 'images'),
  scratchDir: join(folder, 'scratch'),
});
const ready = await runtime.ensureImage(image, NEVER);
const removals = createRemovals();
const start = (memoryBytes: number): Promise<Container> =>
  runtime.start(spec(ready, { limits: { ...LIMITS, memoryBytes } }), NEVER);
const outcomeOf = (work: Promise<string | null>): Promise<string | null> =>
  work.catch((error: unknown) => (error instanceof RolloutFailure ? error.failureClass : String(error)));

/** The note of the agent's command, or the class of the failure. */
async function byShell(memoryBytes: number): Promise<string | null> {
  await using container = await start(memoryBytes);
  await using shell = await openShell(container, { activate: '' });
  const options = { timeoutMs: 120_000, maxOutputBytes: 1_000, signal: NEVER };
  return await outcomeOf(shell.run(HOG, options).then(({ note }) => note));
}

/** The exit code of the tests, or the class of the failure. */
async function byTests(memoryBytes: number): Promise<string | null> {
  const row = bareInstance({ image, eval_script: HOG, log_parser: 'parse_log_pytest' });
  const plan = { ...planEvaluation(row), script: HOG, before: [], after: [], files: [] };
  const deps = {
    container: () => start(memoryBytes),
    workContainer: () => start(memoryBytes),
    warn: () => undefined,
    removals,
    timeoutSeconds: 120,
    logLimit: 1e6,
    imageDigest: ready.digest,
    network: 'none',
    runtime,
    fromTree: false,
    diskBytes: null,
    shortMemory: null,
    signal: NEVER,
  } satisfies CleanRunDeps;
  return await outcomeOf(
    runOnce({ instance: row, plan, patch: '' }, deps).then(({ facts }) => `exit ${facts.exit_code}`),
  );
}

const answer = {
  shell: { job: await byShell(4096 * MIB), own: await byShell(200 * MIB) },
  tests: { job: await byTests(4096 * MIB), own: await byTests(200 * MIB) },
};
await removals.finished();
await runtime[Symbol.asyncDispose]();
console.log(JSON.stringify(answer));
