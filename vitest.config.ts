// By what a test needs: nothing, a Redis, a container engine, the whole farm as processes; `full` is what only `npm run ci:full` has time for.
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** vitest's second is over before a busy machine has begun: what is waited for comes, or the test's own time ends. */
const WAITS = { expect: { poll: { timeout: 60_000 } } };

/** Removes the temporary folders of a test file. */
const setupFiles = ['testkit/src/vitest/removefolders.ts'];

const integration = (name: string, timeout: number, groupOrder: number, maxWorkers: number) => ({
  test: {
    name,
    include: [
      `{shared,policy,agents,recorder,sandbox,grading,datasets,runs,trajectories,gateway,producer,worker,testkit}/test/**/*.${name}.test.ts`,
    ],
    setupFiles,
    testTimeout: timeout,
    hookTimeout: timeout,
    ...WAITS,
    // Files that run side by side share one machine's engine and cores; mostly one waits while the other works.
    maxWorkers,
    sequence: { groupOrder },
    globalSetup: ['testkit/src/vitest/redis.ts'],
    // Programs of ours that tests start by file: compiled once, as `shared/bin/launch.mjs` has it for our commands.
    env: { NODE_COMPILE_CACHE: fileURLToPath(new URL('node_modules/.cache/swefarm', import.meta.url)) },
  },
});

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          setupFiles,
          // vitest would leave a core to whoever watches.
          maxWorkers: '100%',
          // Threads and child processes start slowly on a machine that is busy.
          testTimeout: 120_000,
          hookTimeout: 120_000,
          ...WAITS,
          include: [
            '{shared,policy,agents,recorder,sandbox,grading,datasets,runs,trajectories,gateway,producer,worker,testkit}/src/**/*.test.ts',
            '{testkit/{chaos,house,helm},site}/*.test.ts',
            // Servers of their own on the loopback, and nothing else.
            '{shared,policy,agents,recorder,sandbox,grading,datasets,runs,trajectories,gateway,producer,worker,testkit}/test/**/*.loopback.test.ts',
          ],
        },
      },
      integration('redis', 180_000, 1, 2),
      integration('containers', 300_000, 2, 2),
      integration('e2e', 600_000, 3, 2),
      integration('full', 1_800_000, 4, 1),
    ],
  },
});
