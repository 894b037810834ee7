/** Tests endpoint checks before a run is queued, and `swefarm policy`. */
import { newId } from '@swefarm/shared';
import { startScriptedPolicy, words } from '@swefarm/testkit';
import { expect, onTestFinished, test } from 'vitest';
import { exited, run } from './cli.ts';
import { farmOptions, flaskRows } from './scene.ts';

async function prepare() {
  const { dataset, folder } = await flaskRows(1);
  return { dataset, farm: [...farmOptions(newId()), '--state-dir', folder] };
}

async function endpoint(template: string): Promise<string> {
  const think = { think: 'Which?', command: 'ls' };
  const server = await startScriptedPolicy({
    script: { conversations: [{ variants: [[think]] }] },
    template,
  });
  onTestFinished(() => server[Symbol.asyncDispose]());
  return server.url;
}

test('submit --require-tokens refuses endpoints that cannot be contiguous, with the remedy', async () => {
  const { dataset, farm } = await prepare();
  const url = await endpoint('strips-thinking');
  const submit = (mode: string) =>
    run(
      words`submit --dataset ${dataset} --policy-url ${url} --model m --require-tokens --token-mode ${mode} ${farm}`,
    );
  const refused = await submit('text');
  expect(refused).toMatchObject({ code: 12, stdout: '' });
  expect(refused.stderr).toMatch(
    /could not be trained on \(token mode text\)[\s\S]*turn 2[\s\S]*--token-mode token-in/,
  );
  expect(JSON.parse((await run(['status', ...farm])).stdout).runs).toEqual([]);
  const queued = await submit('token-in');
  expect(queued.code).toBe(0);
  expect(JSON.parse(queued.stdout)).toMatchObject({ queued: 1 });
});

test('submit refuses an endpoint that cannot be asked at once, unless it is told not to try', async () => {
  const { dataset, farm } = await prepare();
  const good = await endpoint('plain');
  const bad = 'http://127.0.0.1:9/v1';
  const submit = (...flags: string[]) =>
    run(['submit', '--dataset', dataset, '--model', 'scripted', ...flags, ...farm]);
  const refused = await submit('--policy-url', bad);
  expect(refused).toMatchObject({ code: 12, stdout: '' });
  expect(refused.stderr).toMatch(
    /no endpoint of this run responds:\n {2}http:\/\/127\.0\.0\.1:9\/v1: .*ECONNREFUSED[\s\S]*→ start the endpoint.*\n.*--no-probe/,
  );
  expect(JSON.parse((await run(['status', ...farm])).stdout).runs).toEqual([]);
  expect((await submit('--policy-url', bad, '--no-probe')).code).toBe(0);
  const beside = await submit('--policy-url', bad, '--policy-url', good);
  expect(beside).toMatchObject(exited(0, '127.0.0.1:9'));
});

test('doctor tells the same of an endpoint', async () => {
  const { farm } = await prepare();
  const url = await endpoint('strips-thinking');
  const ask = (...flags: string[]) =>
    run(['doctor', '--policy-url', url, '--require-tokens', ...flags, ...farm]);
  expect((await ask()).stdout).toMatch(/"ok","subject":"policy tokens \(tools\)"/);
  const text = await ask('--token-mode', 'text');
  expect(text.code).toBe(12);
  expect(text.stdout).toMatch(/"fail","subject":"policy tokens \(text\)".*use --token-mode token-in/);
});

test('policy set, show and remove; a run may name a policy in place of an endpoint', async () => {
  const { dataset, farm } = await prepare();
  const url = await endpoint('plain');
  const set = (...flags: string[]) => run(['policy', 'set', ...flags, ...farm]);
  expect(JSON.parse((await set('train', '--endpoint', url, '--policy-version', 'v1')).stdout)).toMatchObject({
    name: 'train',
    endpoints: [url],
    version: 'v1',
    state: 'serving',
  });
  expect(JSON.parse((await set('train', '--state', 'updating')).stdout)).toMatchObject({ state: 'updating' });
  expect(await set('train', '--endpoint', 'nowhere')).toMatchObject({ code: 2 });
  expect(await set('train', '--state', 'dozing')).toMatchObject({ code: 2 });
  const named = words`submit --dataset ${dataset} --policy-name train --model m --require-tokens`;
  const queued = await run([...named, '--token-mode', 'token-in', ...farm]);
  expect(queued).toMatchObject(exited(0, 'train is updating'));
  // Any trainer can change the endpoints of a registered policy, so the owner of a key must name the origins that may receive it.
  const keyed = [...named, '--token-mode', 'token-in', ...farm];
  const secret = { SWEFARM_POLICY_API_KEY: 'sk-1234567' };
  expect(await run(keyed, secret)).toMatchObject(exited(2, 'SWEFARM_POLICY_API_KEY_ORIGINS'));
  expect(await run([...keyed, '--policy-api-key-origins', url], secret)).toMatchObject({ code: 0 });
  const shown = JSON.parse((await run(['policy', 'show', ...farm])).stdout);
  expect(shown).toMatchObject([{ name: 'train', versions: ['v1'], seen: [] }]);
  expect((await run(['policy', 'remove', 'train', ...farm])).code).toBe(0);
  expect(await run(['policy', 'show', 'train', ...farm])).toMatchObject({ code: 2 });
});

test('a limit of staleness that nothing can be counted for is said to be idle, loudly', async () => {
  const { dataset, farm } = await prepare();
  const submit = async () => {
    const flags = words`--policy-url http://127.0.0.1:9/v1 --model m --max-staleness 2 --no-probe`;
    return (await run(['submit', '--dataset', dataset, ...flags, ...farm])).stderr;
  };
  expect(await submit()).toContain('max_staleness 2 has no effect');
  const other = ['--endpoint', 'http://127.0.0.1:8/v1', '--policy-version', 'w1'];
  await run(['policy', 'set', ...other, ...farm]);
  expect(await submit()).toContain('PUT /policy');
  await run(['policy', 'set', '--endpoint', 'http://127.0.0.1:9/v1', ...farm]);
  expect(await submit()).not.toContain('no effect');
});
