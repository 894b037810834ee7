// Projects by the requirements of tests: none, a Redis, a container engine, the farm as processes. Only `npm run ci:full` runs `full`.
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** The default of one second is too short on a busy machine. The timeout of a test limits all its waits. */
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
    // Concurrent files share the engine and the cores of one machine. Usually one file waits while the other one works.
    maxWorkers,
    sequence: { groupOrder },
    globalSetup: ['testkit/src/vitest/redis.ts'],
    // Node compiles our programs only once, as with `shared/bin/launch.mjs`.
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
          // By default vitest leaves one core idle.
          maxWorkers: '100%',
          // Threads and child processes start slowly on a busy machine.
          testTimeout: 120_000,
          hookTimeout: 120_000,
          ...WAITS,
          include: [
            '{shared,policy,agents,recorder,sandbox,grading,datasets,runs,trajectories,gateway,producer,worker,testkit}/src/**/*.test.ts',
            '{testkit/{chaos,house,helm},site}/*.test.ts',
            // These tests need only their own servers on the loopback.
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
