/** The pictures of an issue in a whole rollout: the model gets them in every turn, and the trajectory has them once. */
import { createHash } from 'node:crypto';
import { decodeArtifact, type Picture, PolicyConfig } from '@swefarm/shared';
import { bareRun, startScriptedPolicy } from '@swefarm/testkit';
import { expect, onTestFinished, test, vi } from 'vitest';
import { runOnHost, treeInstance, ungraded, useHost } from './hostworker.ts';

vi.setConfig({ testTimeout: 240_000 });

const host = useHost('pictures');

function picture(name: string, more = 0): Picture {
  const bytes = Buffer.concat([Buffer.from(`\x89PNG\r\n\x1a\n${name}`, 'latin1'), Buffer.alloc(more)]);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const media_type = 'image/png' as const;
  const file = { media_type, sha256, bytes: bytes.length, data: bytes.toString('base64') };
  return { address: `https://x.example/${name}.png`, file };
}
/** The second is as large as many screenshots. */
const PICTURES = [picture('one'), picture('two', 2_000_000)];

/** One rollout of two turns; its result, artifact, and the requests of the policy. */
async function rollout(
  options: { pictures?: boolean },
  agent: { pictures?: 'send' | 'drop' } = {},
  policyConfig: object = {},
) {
  const policy = await startScriptedPolicy({
    script: { model: 'm', conversations: [{ variants: [[{ command: 'ls' }, { submit: true }]] }] },
    ...options,
  });
  onTestFinished(() => policy[Symbol.asyncDispose]());
  const run = bareRun({
    ...{ group_size: 1, ...ungraded() },
    agent: { ...bareRun().agent, type: 'mini', ...agent },
    policy: PolicyConfig.parse({ urls: [policy.url], model: 'm', patience: 0, ...policyConfig }),
  });
  const instance = { ...treeInstance(host.folder), pictures: PICTURES };
  const { farm, ids } = await runOnHost(host, run, instance);
  const [id = ''] = ids;
  const result = await farm.results.get(id);
  const content = result?.artifact ? await decodeArtifact(await farm.artifacts.get(result.artifact)) : null;
  return { result, content, seen: policy.stats().rollouts[id] };
}

test('a model gets the pictures in every turn, and the trajectory has each of them once', async () => {
  const { result, content, seen } = await rollout({});
  expect(result).toMatchObject({ exit_status: 'submitted', turns: 2 });
  expect(seen).toMatchObject({ turns: 2, pictures: PICTURES.map(({ file }) => file?.sha256) });
  const [, first, ...others] = content?.trajectory?.messages ?? [];
  expect(first).toMatchObject({ role: 'user', content: expect.any(String), pictures: PICTURES });
  expect(JSON.stringify(others)).not.toContain('iVBOR');
});

test('with --pictures drop it gets only the text, in a mode with token ids too', async () => {
  for (const token_mode of ['text', 'token-in']) {
    const { result, content, seen } = await rollout({}, { pictures: 'drop' }, { token_mode });
    expect(result).toMatchObject({ exit_status: 'submitted', turns: 2 });
    expect(seen?.pictures).toBeUndefined();
    expect(JSON.stringify(content?.trajectory?.messages)).not.toContain('x.example');
  }
});

test('the failure of an endpoint that refuses pictures has a remedy', async () => {
  const { result } = await rollout({ pictures: false });
  expect(result?.failure).toMatchObject({
    class: 'policy_bad_request',
    message: expect.stringMatching(
      /the endpoint refuses pictures: serve a model that takes pictures.*At most 0 image/,
    ),
  });
});

test('a worker never renders a prompt without its pictures: the instance is refused', async () => {
  const { result, seen } = await rollout({}, {}, { token_mode: 'token-in' });
  expect(result?.failure).toMatchObject({
    class: 'instance_invalid',
    message: expect.stringMatching(/token mode token-in .* does not support pictures; give --pictures drop/),
  });
  expect(seen).toBeUndefined();
});
