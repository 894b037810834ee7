// By what a test needs: nothing, a Redis, a container engine, the whole farm as processes; `full` is what only `npm run ci:full` has time for.
import { defineConfig } from 'vitest/config';

const integration = (name: string, timeout: number) => ({
  test: {
    name,
    include: [`{shared,grading,producer,worker,testkit}/test/**/*.${name}.test.ts`],
    testTimeout: timeout,
    hookTimeout: timeout,
    // One file at a time: these tests share one machine's engine and two cores.
    fileParallelism: false,
    globalSetup: ['testkit/src/vitest/redis.ts'],
  },
});

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: [
            '{shared,grading,producer,worker,testkit,dashboards}/src/**/*.test.ts',
            'testkit/chaos/*.test.ts',
            // Servers of their own on the loopback, and nothing else.
            '{shared,grading,producer,worker,testkit}/test/**/*.loopback.test.ts',
          ],
        },
      },
      integration('redis', 60_000),
      integration('containers', 300_000),
      integration('e2e', 600_000),
      integration('full', 1_800_000),
    ],
  },
});
