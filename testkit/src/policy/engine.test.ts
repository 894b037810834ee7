import { expect, test } from 'vitest';
import { EngineOptions, engineMetrics, openEngine } from './engine.ts';

const never = new AbortController().signal;
const open = (change: object) =>
  openEngine(EngineOptions.parse({ kv_tokens: 1_000, speed: 1_000, ...change }));

test('requests that fit run together, and their prefix is reused', async () => {
  const engine = open({});
  await Promise.all(['a', 'b', 'c'].map((session) => engine.run(session, 200, 50, never)));
  expect(engine.stats()).toMatchObject({
    preemptions: 0,
    prefilled_tokens: 600,
    generated_tokens: 150,
    kv_usage: 0,
  });
  await engine.run('a', 300, 10, never);
  expect(engine.stats()).toMatchObject({ prefilled_tokens: 650, reused_tokens: 250, running: 0, waiting: 0 });
});

test('requests beyond the KV cache preempt the last one, which is computed again', async () => {
  const engine = open({});
  await Promise.all(['a', 'b', 'c', 'd'].map((session) => engine.run(session, 200, 100, never)));
  const {
    preemptions,
    preempted_tokens: lost,
    prefilled_tokens: prefilled,
    generated_tokens,
  } = engine.stats();
  expect(preemptions).toBeGreaterThan(0);
  expect(generated_tokens).toBe(400);
  // A prefill computes all tokens of the request again, also the generated ones.
  expect(prefilled).toBeGreaterThanOrEqual(800 + lost - preemptions);
});

test('an aborted request frees the KV cache', async () => {
  const engine = open({ speed: 1 });
  const gone = new AbortController();
  const run = engine.run('a', 900, 90, gone.signal);
  await expect.poll(() => engine.stats().running).toBe(1);
  expect(engineMetrics('m', engine.stats())).toMatch(/^vllm:kv_cache_usage_perc\{.*\} 0\.9/m);
  gone.abort();
  await run;
  expect(engine.stats()).toMatchObject({ running: 0, waiting: 0, kv_usage: 0 });
});
