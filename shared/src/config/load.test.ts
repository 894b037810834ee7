import { writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { describe, expect, test } from 'vitest';
import { UsageError } from '../failures/errors.ts';
import { childEnvironment } from './environment.ts';
import { configOptions, describeConfig, loadConfig } from './load.ts';

const dir = temporaryFolder('config');

function file(text: string): string {
  const path = join(dir, 'swefarm.yaml');
  writeFileSync(path, text);
  return path;
}

const worker = (env: Record<string, string> = {}, flags: Record<string, unknown> = {}) =>
  loadConfig('worker', { env, flags });

describe('precedence', () => {
  test('flags win over environment, file and defaults, in this order', () => {
    const path = file('concurrency: 1\nthreads: 1\ndrain_grace_seconds: 1\n');
    const env = { SWEFARM_CONFIG: path, SWEFARM_CONCURRENCY: '2', SWEFARM_THREADS: '3' };
    const config = loadConfig('worker', {
      env,
      flags: { concurrency: '4', datasetPath: 'not ours', threads: undefined },
    });
    expect(config).toMatchObject({ concurrency: 4, threads: 3, drain_grace_seconds: 1, log_level: 'info' });
    expect(Object.isFrozen(config)).toBe(true);
  });

  test('files may be JSON, and flags may be in camelCase', () => {
    const config = loadConfig('worker', {
      env: {},
      file: file('{"redis_prefix": "a"}'),
      flags: { redisPrefix: 'b' },
    });
    expect(config.redis_prefix).toBe('{b}');
  });

  test('variables of other programs are read if ours are not set', () => {
    expect(worker({ REDIS_URL: 'redis://a' }).redis_url?.reveal()).toBe('redis://a');
    expect(worker({ REDIS_URL: 'redis://a', SWEFARM_REDIS_URL: 'redis://b' }).redis_url?.reveal()).toBe(
      'redis://b',
    );
    expect(worker({ SWEFARM_REDIS_URL: '' }).redis_url).toBeNull();
  });

  test('default folders depend on one another', () => {
    expect(worker().state_dir).toBe(join(homedir(), '.swefarm'));
    expect(worker({ XDG_STATE_HOME: '/x' }).images_dir).toBe('/x/swefarm/images');
    expect(worker({}, { state_dir: '/y' }).images_dir).toBe('/y/images');
  });
});

describe('values', () => {
  test.each([
    ['8GiB', 8 * 1024 ** 3],
    ['512m', 512 * 1024 ** 2],
    ['1.5K', 1536],
    ['7', 7],
  ])('%s of artifact budget is %d bytes', (text, bytes) => {
    expect(worker({ SWEFARM_ARTIFACT_BUDGET_BYTES: text }).artifact_budget_bytes).toBe(bytes);
  });

  test.each([
    ['redis', 'redis:'],
    ['redis:', 'redis:'],
    ['dir:/a/b', 'dir:/a/b'],
    ['file:///a/b', 'dir:/a/b'],
  ])('artifacts %s', (text, expected) => {
    expect(worker({ SWEFARM_ARTIFACTS: text }).artifacts).toBe(expected);
  });
});

describe('errors name source, problem and remedy', () => {
  const message = (act: () => unknown): string => {
    try {
      act();
    } catch (error) {
      expect(error).toBeInstanceOf(UsageError);
      return (error as Error).message;
    }
    throw new Error('nothing was thrown');
  };

  test('unknown keys and variables are refused', () => {
    const path = file('concurency: 1');
    expect(message(() => loadConfig('worker', { env: {}, file: path }))).toBe(
      `configuration file ${path}: unknown key "concurency"; did you mean "concurrency"?`,
    );
    expect(message(() => worker({ SWEFARM_REDIS_URI: 'x' }))).toBe(
      'environment: unknown variable SWEFARM_REDIS_URI; did you mean "SWEFARM_REDIS_URL"?',
    );
    expect(worker({ SWEFARM_TEST_REDIS_URL: 'x', SWEFARM_GATEWAY_URL: 'http://farm' }).redis_url).toBeNull();
  });

  test('wrong values are refused, also those of the other role', () => {
    expect(message(() => worker({ SWEFARM_CONCURRENCY: 'many' }))).toMatch(
      /^environment variable SWEFARM_CONCURRENCY: .*expected a number.* \(given: "many"\)$/,
    );
    expect(message(() => worker({}, { runtime: 'dokcer' }))).toMatch(
      /^flag --runtime: .*"rootfs".*given: "dokcer"/,
    );
    expect(message(() => worker({ SWEFARM_LOCAL_WORKERS: '-1' }))).toMatch(/SWEFARM_LOCAL_WORKERS/);
  });

  test('the error of a wrong URL does not contain its password', () => {
    const text = message(() => worker({ SWEFARM_REDIS_URL: 'http://u:hunter2@h' }));
    expect(text).toMatch(/^environment variable SWEFARM_REDIS_URL: expected redis:\/\//);
    expect(text).not.toContain('hunter2');
  });

  test('files that are no mapping, missing or broken are refused', () => {
    expect(message(() => loadConfig('worker', { env: {}, file: file('- 1') }))).toMatch(/expected a mapping/);
    expect(message(() => loadConfig('worker', { env: {}, file: join(dir, 'no.yaml') }))).toMatch(
      /no\.yaml: no such file/,
    );
    expect(message(() => loadConfig('worker', { env: {}, file: file('a: [') }))).toMatch(/swefarm\.yaml/);
  });
});

test('a printed configuration contains no secret', () => {
  const env = {
    SWEFARM_REDIS_URL: 'redis://u:hunter2@h:1',
    SWEFARM_REDIS_PASSWORD: 'hunter3',
    OPENAI_API_KEY: 'hunter4',
  };
  const config = loadConfig('producer', { env });
  const printed = [
    inspect(config),
    JSON.stringify(config),
    JSON.stringify(describeConfig(config)),
    `${config.redis_url}`,
  ];
  expect(printed.join()).not.toContain('hunter');
  expect(describeConfig(config)).toMatchObject({
    redis_url: 'redis://u:[secret]@h:1',
    policy_api_key: '[secret]',
  });
});

test('options name the flags and mark secrets', () => {
  const options = new Map(configOptions('producer').map((option) => [option.key, option]));
  expect(options.get('policy_api_key')).toMatchObject({ flag: '--policy-api-key <value>', secret: true });
  expect(options.get('log_level')).toMatchObject({ secret: false });
  expect(options.has('concurrency')).toBe(false);
});

test('child processes get common variables and no secrets', () => {
  const env = {
    PATH: '/bin',
    HOME: '/h',
    SWEFARM_REDIS_URL: 'redis://:p@h',
    OPENAI_API_KEY: 'k',
    AWS_SECRET: 's',
    LC_ALL: 'C',
  };
  expect(childEnvironment({ A: 'b' }, env)).toEqual({ PATH: '/bin', HOME: '/h', LC_ALL: 'C', A: 'b' });
});
