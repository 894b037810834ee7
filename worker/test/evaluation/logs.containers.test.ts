/** Hostile logs from the container to the report, while the event loop stays responsive. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Instance } from '@swefarm/shared';
import { bareInstance, printingScript } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { rowOf, useEvaluator } from './evaluator.ts';

const MB = 1024 ** 2;
/** A worker stops claiming at this lag (LAG_STOP_MS of pressure.ts). */
const MOST_LAG_MS = 1000;

const at = useEvaluator();

/** An instance whose tests print the output of a line of Python, then one result. */
const row = (parser: string, prints: string): Instance =>
  bareInstance({ ...rowOf([]), log_parser: parser, eval_script: printingScript(prints) });

/** Evaluates the instance; returns the longest lag of the event loop meanwhile. */
async function graded(instance: Instance) {
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  const from = performance.now();
  const { report, log } = await at.evaluator.run(instance, '', at.image, { logLimit: 64 * MB });
  delay.disable();
  return { report, log, lagMs: delay.max / 1e6, seconds: (performance.now() - from) / 1000 };
}

test.each([
  ['pytest', "w('FAILED [' * 200000)"],
  ['pytest_options', "w('PASSED a[/' * 200000)"],
  ['sympy', "w('__ a.py:b ' * 200000)"],
  ['sympy', "w('_' * 3000000)"],
  ['django', "w(' ... Testing against Django installed in ' * 50000)"],
  ['jest', "w('\\u2713 ' + ' (1 m' * 400000)"],
  ['googletest', "w('[ OK ' * 400000)"],
])('%s: a log that is slow to parse (%s) does not block the event loop', async (parser, prints) => {
  const { lagMs, report, seconds } = await graded(row(parser, prints));
  expect(['completed', 'tests_cannot_start']).toContain(report.evaluation);
  expect(seconds).toBeLessThan(120);
  expect(lagMs).toBeLessThan(MOST_LAG_MS);
});

test('a log of 50 MB is read whole, in bounded memory', async () => {
  const before = process.memoryUsage().rss;
  const { report, log, lagMs } = await graded(
    row('pytest', "[w('PASSED t.py::test_%07d some more words\\n' % i) for i in range(1300000)]"),
  );
  expect(log?.length).toBeGreaterThan(50 * MB);
  expect(report).toMatchObject({ resolved: true, evaluation: 'completed' });
  expect(lagMs).toBeLessThan(MOST_LAG_MS);
  expect(process.memoryUsage().rss - before).toBeLessThan(1500 * MB);
});

test('a log over its limit loses its middle, not its end', async () => {
  const { report, log } = await graded(row('pytest', "[w('x' * 1000000 + '\\n') for i in range(200)]"));
  expect(log?.length).toBeLessThanOrEqual(65 * MB);
  expect(report).toMatchObject({ resolved: true, evaluation: 'completed' });
});

test('a cut log is reported, and its middle decides no verdict', async () => {
  const noisy = row('pytest', "w('x' * 3000000)");
  const { report, log } = await at.evaluator.run(noisy, '', at.image, { logLimit: MB });
  expect(log?.length).toBe(MB);
  expect(report).toMatchObject({ evaluation: 'completed', resolved: true });
  expect(report.trust.reasons.join()).toMatch('longer than log_limit');
  const middle = "w('x' * 2000000); w('\\nPASSED t.py::test_b\\n'); w('x' * 2000000)";
  const hidden = { ...row('pytest', middle), FAIL_TO_PASS: ['t.py::test_b'] };
  const other = await at.evaluator.run(hidden, '', at.image, { logLimit: MB });
  expect(other.report).toMatchObject({ evaluation: 'parser_failed', resolved: false });
});
