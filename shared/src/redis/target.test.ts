import { expect, test } from 'vitest';
import { loadConfig } from '../config/load.ts';
import { targetOf } from './target.ts';

const of = (redis_url: string, flags: Record<string, unknown> = {}) =>
  targetOf(loadConfig('producer', { env: {}, flags: { redis_url, ...flags } }));

test.each([
  ['redis://h', { host: 'h', port: 6379, db: 0 }, 'redis://h:6379'],
  ['redis://u:p%40w@h:1/3', { host: 'h', port: 1, db: 3, username: 'u', password: 'p@w' }, 'redis://h:1/3'],
  ['rediss://[::1]:7', { host: '::1', port: 7, tls: {} }, 'rediss://[::1]:7'],
  ['/run/redis.sock', { path: '/run/redis.sock' }, '/run/redis.sock'],
])('%s is one server', (url, options, address) => {
  const target = of(url);
  expect(target).toMatchObject({ kind: 'server', options, address });
  expect(target.locate).toBeUndefined();
});

test('a URL of Sentinels has hosts, name, database and passwords, which are masked', () => {
  const target = of('redis+sentinel://u:p@a,b:2,[::1]:3/farm/4', {
    redis_sentinel_username: 's',
    redis_sentinel_password: 'q',
  });
  expect(target).toMatchObject({
    kind: 'sentinel',
    address: 'redis+sentinel://a:26379,b:2,[::1]:3/farm/4',
    options: {
      sentinels: [
        { host: 'a', port: 26379 },
        { host: 'b', port: 2 },
        { host: '::1', port: 3 },
      ],
      ...{ name: 'farm', db: 4, username: 'u', password: 'p', sentinelUsername: 's', sentinelPassword: 'q' },
    },
  });
  expect(of('rediss+sentinel://a/farm').options).toMatchObject({
    ...{ tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true },
  });
});

test('a cluster is located at each connect', () => {
  const target = of('redis+cluster://:p@a:1,b');
  expect(target).toMatchObject({ kind: 'cluster', options: {}, address: 'redis+cluster://a:1,b:6379' });
  expect(target.locate).toBeTypeOf('function');
});

test.each([
  ['redis+sentinel://a,b', 'names no master'],
  ['redis+sentinel://a:x/farm', '"a:x" is not host:port'],
  ['redis+sentinel://a,,b/farm', '"" is not host:port'],
  ['redis+cluster://a:70000', '"a:70000" is not host:port'],
  ['redis+cluster://a/2', 'a cluster has no database numbers'],
  ['redis+sentinel://a/farm/x', 'the path is a database number'],
  ['redis://a/-1', 'the path is a database number'],
])('%s is refused: %s', (url, reason) => {
  expect(() => of(url)).toThrow(reason);
});

test('an error contains no password', () => {
  expect(() => of('redis+cluster://:pa55word@a:x')).toThrow('[secret]@a:x');
  expect(() => of('redis+cluster://:pa55word@a:x')).not.toThrow(/pa55word/);
});
