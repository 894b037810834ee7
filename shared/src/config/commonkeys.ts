/** Configuration keys that producer and worker share: Redis, logs, artifacts, and the ceilings. */
import { join } from 'node:path';
import { z } from 'zod';
import type { Secret } from '../security/secret.ts';
import { CEILING_KEYS } from './ceilingkeys.ts';
import { type Environment, key, plain } from './key.ts';
import * as form from './schema.ts';

const GIB = 1024 ** 3;

const stateDir = (env: Environment): string =>
  env.XDG_STATE_HOME ? join(env.XDG_STATE_HOME, 'swefarm') : form.path.parse('~/.swefarm');

export const COMMON_KEYS = {
  redis_url: plain<Secret | null>(
    form.redisUrl,
    null,
    'Address of Redis (forms: docs/running.md#redis), with an ACL user and password.',
    ['REDIS_URL'],
  ),
  redis_username: plain<string | null>(form.text, null, 'ACL user; wins over the URL.'),
  redis_password: plain<Secret | null>(form.secret, null, 'Password; wins over the URL.'),
  redis_tls_ca: plain<string | null>(form.path, null, 'File with the CA of the certificate of Redis.'),
  redis_tls_cert: plain<string | null>(
    form.path,
    null,
    'File with the client certificate (tls-auth-clients yes).',
  ),
  redis_tls_key: plain<string | null>(form.path, null, 'File with its private key.'),
  redis_sentinel_username: plain<string | null>(form.text, null, 'ACL user at the Sentinels.'),
  redis_sentinel_password: plain<Secret | null>(form.secret, null, 'Password at the Sentinels.'),
  redis_durability: plain(
    z.enum(['required', 'best_effort']),
    'required',
    'required: refuse a Redis that may drop keys or has no append-only file. best_effort: warn.',
  ),
  redis_prefix: plain(form.redisPrefix, '{swefarm}', 'First part of every key; one prefix is one farm.'),
  log_level: plain(
    z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
    'info',
    'Lowest level that is logged.',
  ),
  log_format: plain(
    z.enum(['auto', 'json', 'pretty']),
    'auto',
    'auto: pretty on a terminal, else JSON lines.',
  ),
  state_dir: key(
    form.path,
    stateDir,
    '$XDG_STATE_HOME/swefarm, else ~/.swefarm',
    'Folder for data that outlives a process: own Redis, unpacked images.',
  ),
  artifacts: plain(form.artifactsUrl, 'redis:', 'Store of trajectories and reports: redis: or dir:/path.'),
  artifact_budget_bytes: key(
    form.bytes,
    () => 8 * GIB,
    '8 GiB',
    'Limit of all artifacts (8G), at which workers stop claiming.',
  ),
  artifact_ttl_seconds: key(
    form.positiveInteger,
    () => 7 * 24 * 3600,
    '604800 (7 days)',
    'Life time of an artifact.',
  ),
  ...CEILING_KEYS,
};
