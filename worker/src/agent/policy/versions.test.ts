import { PolicyConfig, type PolicyRecord } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { createVersions } from './versions.ts';

const config = PolicyConfig.parse({ urls: ['http://a/v1'], model: 'm' });

type Scene = { name?: string | null; model?: string | null; streamed?: boolean };

/** A turn whose trainer announces versions during requests. */
function scene(first: string, { name = null, model = null, streamed = true }: Scene = {}) {
  let version = first;
  let changed_at = 1;
  let state: PolicyRecord['state'] = 'serving';
  let arrived = 0;
  let endpoints: string[] = [];
  const record = (): PolicyRecord => ({
    ...{ name: 'p', version, versions: [version], endpoints, model, state },
    changed_at,
  });
  let onRead = (): void => undefined;
  const listen = (listener: () => void) => {
    onRead = listener;
    return () => undefined;
  };
  const followed = { record, onRead: listen, refresh: async () => undefined } as unknown as Parameters<
    typeof createVersions
  >[1]['followed'];
  const turn = createVersions({ ...config, name }, { followed, apiKey: null, model: () => config.model })();
  return {
    turn,
    announce(next: string, now: PolicyRecord['state'] = 'serving') {
      version = next;
      state = now;
      changed_at++;
    },
    replace(next: string, url: string) {
      this.announce(next);
      endpoints = [url];
    },
    /** Simulates a read of the record when `tokens` tokens have arrived. */
    read(tokens: number) {
      arrived = tokens;
      onRead();
    },
    request() {
      turn.onRequest(() => arrived);
      turn.onHead({ version: null, streamed });
    },
  };
}

test('tokens of a stream that crossed an update have no known version, interrupted or not', async () => {
  const broken = scene('w1');
  broken.request();
  broken.announce('w2');
  broken.turn.onBroken(500);
  broken.request();
  expect(await broken.turn.finish('http://a/v1', 10)).toEqual({
    policy_version: { start: 'w1', end: 'w2' },
    spans: [
      { version: null, tokens: 500 },
      { version: 'w2', tokens: 10 },
    ],
  });
  const whole = scene('w1');
  whole.request();
  whole.announce('w2');
  expect(await whole.turn.finish('http://a/v1', 510)).toEqual({
    policy_version: { start: 'w1', end: 'w2' },
    spans: [{ version: null, tokens: 510 }],
  });
});

test('tokens of a stream interrupted before the update have the earlier version', async () => {
  const { turn, request, announce } = scene('w1');
  request();
  turn.onBroken(500);
  announce('w2');
  request();
  turn.onBroken(0);
  request();
  expect(await turn.finish('http://a/v1', 0)).toEqual({
    policy_version: { start: 'w1', end: 'w1' },
    spans: [{ version: 'w1', tokens: 500 }],
  });
});

test('a stream across an update has spans of both versions and of neither', async () => {
  const { turn, request, announce, read } = scene('w1');
  request();
  for (const tokens of [40, 90, 140]) read(tokens);
  announce('w1', 'pausing');
  read(190);
  announce('w1', 'updating');
  read(200);
  announce('w2');
  read(230);
  read(300);
  expect(await turn.finish('http://a/v1', 320)).toEqual({
    policy_version: { start: 'w1', end: 'w2' },
    // 90 tokens had arrived before the worker sent its last read in the state `serving`, so w1 sampled them.
    spans: [
      { version: 'w1', tokens: 90 },
      { version: null, tokens: 140 },
      { version: 'w2', tokens: 90 },
    ],
  });
});

test('a pause without new weights does not split an answer', async () => {
  const { turn, request, announce, read } = scene('w1');
  request();
  announce('w1', 'pausing');
  read(50);
  announce('w1');
  read(60);
  expect((await turn.finish('http://a/v1', 100)).spans).toEqual([{ version: 'w1', tokens: 100 }]);
});

test('an unstreamed answer across an update has an unknown version', async () => {
  const { turn, request, announce, read } = scene('w1', { streamed: false });
  request();
  read(0);
  announce('w2');
  read(0);
  expect((await turn.finish('http://a/v1', 100)).spans).toEqual([{ version: null, tokens: 100 }]);
});

test('an answer of a model named for one version has only this version', async () => {
  const { turn, request, announce } = scene('w1', { name: 'p', model: 'lora-w1' });
  request();
  announce('w2');
  expect(await turn.finish('http://a/v1', 100)).toEqual({
    policy_version: { start: 'w1', end: 'w1' },
    spans: [{ version: 'w1', tokens: 100 }],
  });
});

test('tokens from a replaced endpoint do not have the new version', async () => {
  const { turn, ...trainer } = scene('w1');
  trainer.request();
  trainer.replace('w2', 'http://b/v1');
  trainer.read(0);
  expect(await turn.finish('http://a/v1', 10)).toEqual({
    policy_version: { start: 'w1', end: 'w2' },
    spans: [{ version: null, tokens: 10 }],
  });
});
