import { expect, test } from 'vitest';
import { createWorkerMetrics } from './workermetrics.ts';

test('each call creates a registry of its own', async () => {
  const [one, two] = [createWorkerMetrics(), createWorkerMetrics()];
  one.attempts.inc({ class: 'image_pull' });
  one.stageSeconds.observe({ stage: 'agent' }, 3);
  const text = await one.registry.metrics();
  expect(text).toContain('swefarm_worker_attempts_total{class="image_pull"} 1');
  expect(text).toContain('swefarm_stage_seconds_bucket{le="5",stage="agent"} 1');
  expect(await two.registry.metrics()).not.toContain('image_pull');
});
