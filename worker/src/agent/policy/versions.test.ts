import { PolicyConfig, type PolicyRecord } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { createVersions } from './versions.ts';

const config = PolicyConfig.parse({ urls: ['http://a/v1'], model: 'm' });

/** A turn whose trainer announces versions during requests. */
function scene(first: string) {
  let version = first;
  let changed_at = 1;
  const record = (): PolicyRecord => ({
    ...{ name: 'p', version, versions: [version], endpoints: [], model: null, state: 'serving' },
    changed_at,
  });
  const followed = { record, refresh: async () => undefined } as unknown as Parameters<
    typeof createVersions
  >[1]['followed'];
  const turn = createVersions(config, { followed, apiKey: null, model: () => config.model })();
  return {
    turn,
    announce(next: string) {
      version = next;
      changed_at++;
    },
    request() {
      turn.onRequest();
      turn.onHead({ version: null, streamed: true });
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
