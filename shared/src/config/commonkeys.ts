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
    'Redis: redis://, rediss:// (TLS), redis+sentinel://host:port,…/NAME, redis+cluster://host:port,… (with TLS: rediss+…), the path of a unix socket, or file:/path of the address that `swefarm redis` writes, read again at each reconnect. User and password in it are an ACL user.',
    ['REDIS_URL'],
  ),
  redis_username: plain<string | null>(form.text, null, 'ACL user; wins over the one in the URL.'),
  redis_password: plain<Secret | null>(form.secret, null, 'Password; wins over the one in the URL.'),
  redis_tls_ca: plain<string | null>(
    form.path,
    null,
    'File with the CA that signed the certificate of Redis.',
  ),
  redis_tls_cert: plain<string | null>(
    form.path,
    null,
    'File with the certificate of this client, for a Redis that asks for one (tls-auth-clients yes); needs redis_tls_key.',
  ),
  redis_tls_key: plain<string | null>(form.path, null, 'File with the private key of redis_tls_cert.'),
  redis_sentinel_username: plain<string | null>(form.text, null, 'ACL user at the Sentinels.'),
  redis_sentinel_password: plain<Secret | null>(form.secret, null, 'Password at the Sentinels.'),
  redis_durability: plain(
    z.enum(['required', 'best_effort']),
    'required',
    'required: refuse a Redis that may drop keys (maxmemory-policy) or has no append-only file. best_effort: only warn.',
  ),
  redis_prefix: plain(
    form.redisPrefix,
    '{swefarm}',
    'First part of every key; farms with different prefixes share nothing.',
  ),
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
    'Folder for what outlives a process: a Redis that the farm starts itself, unpacked images.',
  ),
  artifacts: plain(
    form.artifactsUrl,
    'redis:',
    'Where trajectories and reports are stored: redis: or dir:/path.',
  ),
  artifact_budget_bytes: key(
    form.bytes,
    () => 8 * GIB,
    '8 GiB',
    'Bytes that all artifacts may take; at the limit workers stop claiming. Takes units (8G).',
  ),
  artifact_ttl_seconds: key(
    form.positiveInteger,
    () => 7 * 24 * 3600,
    '604800 (7 days)',
    'Seconds that an artifact is kept.',
  ),
  ...CEILING_KEYS,
};
