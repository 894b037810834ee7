/**
 * Tests the farm as SECURITY.md recommends it: Redis over TLS with the users of `swefarm acl`, a gateway with a token, a policy
 * with a key. A complete run is judged, and no output, file or command line of a process has a secret.
 */
import { mkdir, readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { expect, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { makeCertificates } from '../../src/launchers/certificates.ts';
import { gatewayUrl, runCommand, startCommand, words } from '../../src/launchers/commands.ts';
import { run } from '../../src/launchers/run.ts';
import { startSecuredRedis } from '../../src/launchers/securedredis.ts';
import { readLines } from '../../src/lines.ts';
import { listen } from '../../src/listen.ts';
import { conversation } from '../../src/policy/script.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { callerOf, openScene } from './scene.ts';
import { EXAMPLE_ID, twentyTurns } from './scripts.ts';

const API_KEY = 'sk-the-key-of-the-policy-4711';
const TOKEN = 'the-token-of-the-gateway-4711';

test('a run under ACL users over TLS; no secret in logs, results, artifacts, ps or the sandbox', async () => {
  const scene = openScene({ SWEFARM_LOG_LEVEL: 'trace' });
  const { folder, env } = scene;
  await using stack = new AsyncDisposableStack();
  const acl = join(folder, 'acl');
  const swefarm = (args: readonly string[]) => runCommand('swefarm', args);
  expect((await swefarm(words`acl --output ${acl} --redis-prefix secured`)).code).toBe(0);
  const again = await swefarm(words`acl --output ${acl}`);
  expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining('--force') });
  const [worker, producer] = await Promise.all(
    ['worker.env', 'producer.env'].map(async (name) => parseEnv(await readFile(join(acl, name), 'utf8'))),
  );
  await mkdir(join(folder, 'tls'));
  const tls = await makeCertificates(join(folder, 'tls'));
  const redis = stack.use(await startSecuredRedis({ aclFile: join(acl, 'users.acl'), tls }));
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'rootfs', out: folder });
  // The agent first searches for secrets, then fixes the bug.
  const [resolves = []] = twentyTurns().conversations[0]?.variants ?? [];
  const look = { command: 'env; cat /proc/*/environ 2>/dev/null | tr "\\0" "\\n"; ps axww' };
  const script = conversation([look, ...resolves.slice(-3)]);
  const policy = stack.use(await startScriptedPolicy({ script, apiKey: API_KEY }));
  const common = { ...env, SWEFARM_REDIS_URL: redis.url, SWEFARM_REDIS_TLS_CA: tls.ca };
  // An attacker's endpoint, which records the authorization headers and asks for a key.
  const shownThere: (string | undefined)[] = [];
  const attacker = createServer((request, response) => {
    shownThere.push(request.headers.authorization);
    response.writeHead(401).end();
  });
  const attackerUrl = `http://127.0.0.1:${await listen(attacker)}/v1`;
  stack.defer(() => void attacker.close());
  // The worker logs in with variables, the producer with the URL.
  const login = `${producer?.SWEFARM_REDIS_USERNAME}:${producer?.SWEFARM_REDIS_PASSWORD}@`;
  Object.assign(env, common, {
    SWEFARM_REDIS_URL: redis.url.replace('//', `//${login}`),
    SWEFARM_REDIS_PREFIX: 'secured',
    SWEFARM_GATEWAY_TOKEN: TOKEN,
    OPENAI_API_KEY: API_KEY,
  });
  const running = words`run --runtime rootfs --concurrency 2`;
  const working = stack.use(startCommand('swefarm-worker', running, { ...common, ...worker }));
  const asked = words`--policy-url ${policy.url} --model scripted`;
  const serving = stack.use(scene.start`serve --port 0 ${asked}`);
  const [gateway] = await Promise.all([gatewayUrl(serving), working.until(/"msg":"ready"/)]);
  const call = callerOf(gateway, TOKEN);
  const ask = async (path: string): Promise<string> => {
    const reply = await call('GET', path);
    expect(reply.status, path).toBe(200);
    return await reply.text();
  };
  expect((await fetch(`${gateway}/v1/runs`)).status).toBe(401);

  const submitted = await scene.swefarm`submit --dataset ${built.files.default} --agent mini --group-size 2
    ${asked} --api-key-env OPENAI_API_KEY`;
  expect(submitted, submitted.stderr).toMatchObject({ code: 0 });
  const { run_id } = JSON.parse(submitted.stdout) as { run_id: string };
  const output = join(folder, 'out.jsonl');
  const collecting = scene.start`collect ${run_id} --output ${output}`;
  const shown = [(await run('ps', ['axww', '-o', 'args'])).stdout];
  expect(await collecting.exit, collecting.stderr() + working.stderr().slice(-3000)).toBe(0);
  const parsed = await readLines<Record<string, string | number>>(output);
  expect(parsed.map(({ outcome, reward }) => [outcome, reward])).toEqual([
    ['judged', 1],
    ['judged', 1],
  ]);
  const artifacts = await Promise.all(
    parsed.map(({ rollout_id }) => ask(`/v1/rollouts/${rollout_id}/artifact`)),
  );
  // The artifact has the output of the search, so a missing secret was not visible.
  expect(artifacts[0]).toContain('HOME=');
  const status = await scene.swefarm`status ${run_id}`;
  const turns = await scene.swefarm`show ${parsed[0]?.rollout_id ?? ''} --turns`;
  shown.push(await ask('/metrics'), await ask('/v1/runs'), await ask(`/v1/runs/${run_id}/results`));

  // A caller with a token registers its own policy, or adds its endpoint to the default policy.
  const send = async (method: string, path: string, body: object) => {
    const reply = await call(method, path, body);
    expect(reply.ok, await reply.clone().text()).toBe(true);
    return (await reply.json()) as { run_id: string };
  };
  const [row] = built.rows;
  const attack = async (name: string, policies: string, endpoints: string[], group_size: number) => {
    await send('PUT', policies, { endpoints });
    const policy = name === '' ? {} : { name };
    const request = { instances: [row], group_size, run: { policy } };
    const begun = await send('POST', '/v1/runs', request);
    const before = shownThere.length;
    await expect.poll(() => shownThere.length, { timeout: 120_000 }).toBeGreaterThan(before);
    await send('POST', `/v1/runs/${begun.run_id}/cancel`, {});
  };
  await attack('evil', '/v1/policies/evil', [attackerUrl], 1);
  await attack('', '/policy', [attackerUrl, policy.url], 8);
  expect(new Set(shownThere)).toEqual(new Set([undefined]));

  const printed = {
    worker: working.stdout() + working.stderr(),
    gateway: serving.stdout() + serving.stderr(),
    collect: collecting.stdout() + collecting.stderr(),
    submit: submitted.stdout + submitted.stderr,
    status: status.stdout + status.stderr,
    show: turns.stdout + turns.stderr,
    results: await readFile(output, 'utf8'),
    artifacts: artifacts.join('\n'),
    'ps, gateway answers': shown.join('\n'),
  };
  const secrets = [API_KEY, TOKEN, worker?.SWEFARM_REDIS_PASSWORD, producer?.SWEFARM_REDIS_PASSWORD];
  const found = Object.entries(printed).flatMap(([where, text]) =>
    secrets.flatMap((secret) => {
      const at = text.indexOf(secret ?? '');
      return at < 0 ? [] : [`${where}: …${text.slice(Math.max(0, at - 150), at + 20)}`];
    }),
  );
  expect(found).toEqual([]);
});
