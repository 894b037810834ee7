import { expect, test } from 'vitest';
import { Endpoints } from './endpoints.ts';

const URLS = ['http://a/v1', 'http://b/v1', 'http://c/v1'];

test('rollouts spread evenly, and a released endpoint is bound first', () => {
  const endpoints = new Endpoints();
  const bound = Array.from({ length: 9 }, (_, i) => endpoints.bind(URLS, `r${i}`));
  expect(endpoints.views().map(({ load }) => load)).toEqual([3, 3, 3]);
  const [first] = bound;
  first?.[Symbol.dispose]();
  first?.[Symbol.dispose]();
  expect(endpoints.bind(URLS, 'x').url).toBe(first?.url);
});

test('the rollouts of other workers count', () => {
  const endpoints = new Endpoints();
  endpoints.setOthers(
    new Map([
      ['http://a/v1', 5],
      ['http://c/v1', 1],
    ]),
  );
  expect(endpoints.bind(URLS, 'r').url).toBe('http://b/v1');
  expect(['http://b/v1', 'http://c/v1']).toContain(endpoints.bind(URLS, 's').url);
});

test('an endpoint that fails is set aside, longer each time, until it answers', () => {
  let now = 0;
  const endpoints = new Endpoints(() => now);
  const view = () => endpoints.views().find(({ url }) => url === 'http://a/v1');
  const both = ['http://a/v1', 'http://b/v1'];
  for (const aside of [1, 2, 4, 8, 16, 32, 60, 60]) {
    endpoints.failed('http://a/v1', 'ECONNREFUSED');
    endpoints.failed('http://a/v1', 'ECONNREFUSED');
    expect(view()).toMatchObject({ aside_seconds: aside, reason: 'ECONNREFUSED' });
    expect(endpoints.bind(both, String(now)).url).toBe('http://b/v1');
    now += aside * 1000;
  }
  // The time is over and nothing is bound to the endpoint, so it is tried next.
  using again = endpoints.bind(both, 'again');
  expect(again.url).toBe('http://a/v1');
  endpoints.answered('http://a/v1');
  endpoints.failed('http://a/v1', 'HTTP 500');
  expect(view()).toMatchObject({ aside_seconds: 1, reason: 'HTTP 500' });
});

test('if all are set aside, the one with the earliest retry is bound; without any, bind throws', () => {
  let now = 0;
  const endpoints = new Endpoints(() => now);
  endpoints.failed('http://a/v1', 'x');
  now += 500;
  endpoints.failed('http://b/v1', 'x');
  expect(endpoints.bind(['http://a/v1', 'http://b/v1'], 'r').url).toBe('http://a/v1');
  expect(() => endpoints.bind([], 'r')).toThrow(/names an endpoint/);
});
