/** Tests commands that new users type first: the version, a dataset by its name on a hub, a report of a missing file. */
import { expect, test } from 'vitest';
import { exited, run } from './cli.ts';

test('--version prints the version of the software', async () => {
  expect(await run(['--version'])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^\d+\.\d+\.\d+(\+[0-9a-f]{12})?\n$/),
    stderr: '',
  });
});

test("a hub's name as --dataset tells the command that fetches it", async () => {
  const ran = await run(['rollout', '--dataset', 'princeton-nlp/SWE-bench_Verified', '--agent', 'noop']);
  expect(ran).toMatchObject(exited(2, '"npx swefarm dataset fetch princeton-nlp/SWE-bench_Verified"'));
  const file = await run(['rollout', '--dataset', 'folder/rows.jsonl', '--agent', 'noop']);
  expect(file.stderr).toContain('folder/rows.jsonl: no such file; check the path');
});

test('a report of a file that does not exist says so', async () => {
  expect(await run(['report', 'nofile.jsonl'])).toMatchObject(
    exited(2, 'nofile.jsonl: no such file; for a run of a farm add its --redis-url'),
  );
});
