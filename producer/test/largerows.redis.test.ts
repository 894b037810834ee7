/** Tests rows of tens of megabytes, as some families have them, in the command and the gateway. Larger rows are refused. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bearer, testGateway } from '@swefarm/gateway/test/gateway.ts';
import { POLICY, post } from '@swefarm/gateway/test/gym.ts';
import { testFolder } from '@swefarm/runs/test/farm.ts';
import { words } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { run } from './cli.ts';
import { farmVariables } from './scene.ts';

const MIB = 1024 ** 2;
/** Larger than any row of a known dataset. Rows of R2E-Gym have both versions of each changed file. */
const ROW_BYTES = 24 * MIB;
const FIX = 'f'.repeat(40);

/** Returns lines that differ, so that the text does not compress to almost nothing. */
const text = (bytes: number): string =>
  Array.from({ length: bytes / 64 }, (_, n) => `${n}`.padEnd(63, 'value = other(n)')).join('\n');

/** Returns a row of R2E-Gym with two columns of half its size: the file before the fix, and a log. */
function largeRow(): Record<string, unknown> {
  const content = text(ROW_BYTES / 2);
  const commit = { file_diffs: [], old_commit_hash: 'e'.repeat(40), new_commit_hash: FIX, before: content };
  return {
    instance_id: IDS[0],
    repo_name: 'calc',
    docker_image: `namanjain12/calc_final:${FIX}`,
    commit_hash: FIX,
    parsed_commit_content: JSON.stringify(commit),
    execution_result_content: content,
    expected_output_json: JSON.stringify({ test_add: 'PASSED' }),
    problem_statement: '[ISSUE]add subtracts.[/ISSUE]',
  };
}

/** Returns a row of SWE-bench-Live with an equally large test patch, which the instance includes. */
const largeStored = (): Record<string, unknown> => ({
  instance_id: 'acme__calc-1',
  repo: 'acme/calc',
  base_commit: 'e'.repeat(40),
  problem_statement: 'add subtracts.',
  patch: '',
  test_patch: `diff --git a/data.txt b/data.txt\nnew file mode 100644\n--- /dev/null\n+++ b/data.txt\n@@ -0,0 +1 @@\n+${text(ROW_BYTES)}\n`,
  docker_image: 'starryzhang/calc:1',
  test_cmds: ['pytest -rA'],
  log_parser: 'pytest',
  FAIL_TO_PASS: ['t.py::a'],
  PASS_TO_PASS: [],
});

const RUN = { policy: { urls: [POLICY.policy_base_url], model: POLICY.policy_model_name } };
const IDS = [`calc-${FIX}`, 'acme__calc-1'];

test('the gateway takes rows of 24 MiB, and refuses a larger body with its limit and a remedy', async () => {
  const { url, farm } = await testGateway();
  const instances = [largeRow(), largeStored()];
  const reply = await post(url, { instances, group_size: 1, run: RUN }, { path: '/v1/runs' });
  const made = (await reply.json()) as { run_id: string };
  const counts = { instance_ids: IDS, rollouts: 2, queued: 2, cancelled: null };
  expect([reply.status, made]).toEqual([201, { run_id: expect.any(String), ...counts }]);
  const { run_id } = made;
  expect((await farm.runs.instanceIds(run_id)).toSorted()).toEqual(IDS.toSorted());
  const stored = await farm.runs.getInstance(run_id, 'acme__calc-1');
  expect(stored?.test_patch).toBe(instances[1]?.test_patch);

  const call = new AbortController();
  const pending = post(
    url,
    { ...largeStored(), ...POLICY, responses_create_params: { input: [] } },
    { signal: call.signal },
  ).then(
    ({ status }) => status,
    () => 'held',
  );
  const queued = () => farm.queue().getJobs(['prioritized', 'waiting']);
  await expect.poll(async () => (await queued()).length, { timeout: 60_000 }).toBe(3);
  call.abort();
  expect(await pending).toBe('held');

  const larger = JSON.stringify({ instances: [{ ...largeRow(), more: text(48 * MIB) }], run: RUN });
  const refused = await fetch(`${url}/v1/runs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...bearer() },
    body: larger,
  });
  expect(refused.status).toBe(413);
  expect(await refused.json()).toMatchObject({
    error: {
      code: 'too_large',
      field: 'body',
      message: expect.stringMatching(/gateway_body_bytes allows \(67108864 bytes\): post fewer rows at once/),
    },
  });
}, 180_000);

test('the command takes the same rows from a file', async () => {
  const { farm, config } = await testGateway();
  const dataset = join(await testFolder(), 'large.jsonl');
  await writeFile(dataset, `${JSON.stringify(largeRow())}\n${JSON.stringify(largeStored())}\n`);
  const submit = words`submit --dataset ${dataset} --agent noop`;
  const { code, stdout, stderr } = await run(submit, farmVariables(config));
  expect(code, stderr).toBe(0);
  const { run_id } = JSON.parse(stdout) as { run_id: string };
  expect((await farm.runs.instanceIds(run_id)).toSorted()).toEqual(IDS.toSorted());
}, 180_000);
