import { expect, it } from 'vitest';
import { createFetch, readMirrors, sourcesOf, waitAfter } from './fetch.ts';
import { fullName } from './names.ts';

it.each([
  ['bash', 'docker.io/library/bash'],
  ['swebench/sweb.eval:latest', 'docker.io/swebench/sweb.eval:latest'],
  ['localhost/x', 'localhost/x'],
  ['127.0.0.1:5000/x', '127.0.0.1:5000/x'],
])('%s is %s', (image, full) => expect(fullName(image)).toBe(full));

it("mirrors replace prefixes, and the image's own name is last", () => {
  const mirrors = readMirrors(['docker.io/=mirror.example/hub/', 'ghcr.io/=mirror.example/gh/']);
  expect(sourcesOf('a/b:1', mirrors)).toEqual(['mirror.example/hub/a/b:1', 'a/b:1']);
  expect(sourcesOf('quay.io/a/b', mirrors)).toEqual(['quay.io/a/b']);
  expect(() => readMirrors(['docker.io/'])).toThrow('PREFIX=PREFIX');
});

it('waits as the registry requests, else with backoff, and not for other errors', () => {
  expect(waitAfter(new Error('toomanyrequests: Retry-After: 17'), 3)).toBe(17_000);
  expect(waitAfter(new Error('toomanyrequests: slow down'), 0)).toBe(5_000);
  expect(waitAfter(new Error('toomanyrequests: slow down'), 2)).toBe(20_000);
  expect(waitAfter(new Error('no such host'), 0)).toBeNull();
});

it('a request above the rate limit is repeated, and a failed mirror is skipped', async () => {
  const waits: number[] = [];
  const requested: string[] = [];
  const settings = { atOnce: 2, mirrors: readMirrors(['docker.io/=m.example/']) };
  const fetch = createFetch(settings, async (ms) => waits.push(ms));
  const got = await fetch('a/b', async (from) => {
    requested.push(from);
    if (from.startsWith('m.')) throw new Error('404');
    if (requested.length < 4) throw new Error('429 Too Many Requests');
    return from;
  });
  expect(got).toBe('a/b');
  expect(requested).toEqual(['m.example/a/b', 'a/b', 'a/b', 'a/b']);
  expect(waits).toHaveLength(2);
});

it('limits concurrent pulls', async () => {
  const fetch = createFetch({ atOnce: 2, mirrors: [] });
  let now = 0;
  let most = 0;
  await Promise.all(
    Array.from({ length: 8 }, (_, at) =>
      fetch(`i${at}`, async () => {
        most = Math.max(most, ++now);
        await new Promise((resolve) => setImmediate(resolve));
        now--;
      }),
    ),
  );
  expect(most).toBe(2);
});
