import { expect, test } from 'vitest';
import { redisUrl } from '../config/schema.ts';
import { Secret } from '../security/secret.ts';
import { createLog } from './log.ts';

function lines(format: 'json' | 'pretty') {
  const written: string[] = [];
  const log = createLog(
    { log_level: 'info', log_format: format },
    { worker: 'w' },
    { write: (line) => written.push(line) },
  );
  return { log, written };
}

test.each(['json', 'pretty'] as const)(
  'no secret reaches a %s line, by value, message or error',
  (format) => {
    const { log, written } = lines(format);
    log.info(
      { key: new Secret('hunter2'), config: { url: new Secret('redis://:hunter2@h', 'redis://h') } },
      'start',
    );
    log.warn('cannot reach rediss://user:hunter2@host:6379/0');
    log.error(
      { err: new Error('GET http://a:hunter2@b failed, Authorization: Bearer hunter2hunter2') },
      'failed',
    );
    const text = written.join('');
    expect(text).not.toContain('hunter2');
    expect(text).toContain('rediss://user:[secret]@host:6379/0');
    expect(text).toContain('Bearer [secret]');
    expect(written).toHaveLength(3);
  },
);

test('JSON lines contain time, level and bindings', () => {
  const { log, written } = lines('json');
  log.child({ rollout_id: 'r.i.0' }).info('x');
  log.debug('unseen');
  expect(written.map((line) => JSON.parse(line))).toEqual([
    { level: 30, time: expect.stringMatching(/^\d{4}-.*Z$/), worker: 'w', rollout_id: 'r.i.0', msg: 'x' },
  ]);
});

test('a secret is masked in errors of other programs, escaped or encoded', () => {
  const { log, written } = lines('json');
  const key = new Secret('sk-"live"/0123456789');
  const redis = new Secret('redis://farm:pass%20word-9@host:6379', 'redis://farm@host:6379');
  log.error({ err: new Error(`401: Incorrect API key provided: ${key.reveal()}`) }, 'refused');
  log.warn({ body: { echo: [key.reveal()] } }, `GET /?key=${encodeURIComponent(key.reveal())}`);
  log.warn('AUTH farm "pass word-9" failed');
  const text = written.join('');
  expect(text).not.toMatch(/live|0123456789|word-9/);
  expect(text.match(/\[secret\]/g)?.length).toBeGreaterThanOrEqual(4);
  expect(`${redis}`).toBe('redis://farm@host:6379');
});

test('the path of an address file or of a socket is no secret', () => {
  const { log, written } = lines('json');
  const urls = ['file:/shared/redis/address.json', '/run/redis.sock'].map((url) => redisUrl.parse(url));
  log.info({ urls }, 'joined by file:/shared/redis/address.json or /run/redis.sock');
  expect(written.join('').match(/\/shared\/redis\/address\.json/g)).toHaveLength(2);
  expect(written.join('')).not.toContain('[secret]');
});

test('control characters of a model do not reach the terminal', () => {
  const { log, written } = lines('pretty');
  log.warn({ said: '\u001b[2J\u009b31m' }, 'cause: \u001b]0;title\u0007 end');
  const commands = [...written.join('')].filter(
    (char) => (char < ' ' && char !== '\n') || /[\x7f-\x9f]/.test(char),
  );
  expect(commands).toEqual([]);
  expect(written.join('')).toContain('end');
});
