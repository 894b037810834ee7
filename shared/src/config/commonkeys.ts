/** Configuration keys that producer and worker share: Redis, logs, the state folder, artifacts, and the ceilings. */
import { join } from 'node:path';
import { z } from 'zod';
import { type Environment, key, optional, plain, size } from './key.ts';
import * as form from './schema.ts';

const stateDir = (env: Environment): string =>
  env.XDG_STATE_HOME ? join(env.XDG_STATE_HOME, 'swefarm') : form.path.parse('~/.swefarm');

/** Ceilings (highest values that a run may set). Gateways check them at each call, workers before each rollout. */
const CEILING_KEYS = {
  max_network: plain(
    z.enum(['none', 'egress']),
    'egress',
    'none: no sandbox has a network, whatever a run or an instance asks for.',
  ),
  max_cpus: optional(form.cpus, 'Ceiling of CPUs of a sandbox (cpus).'),
  max_memory_bytes: optional(form.bytes, 'Ceiling of memory of a sandbox (memory_bytes).'),
  max_pids: optional(form.positiveInteger, 'Ceiling of processes of a sandbox (pids).'),
  max_disk_bytes: optional(
    form.bytes,
    'Ceiling of disk of a sandbox (disk_bytes), and the limit of a run that sets none.',
  ),
  max_turns: optional(form.positiveInteger, 'Ceiling of turns (step_limit).'),
  max_command_seconds: optional(form.positiveSeconds, 'Ceiling of the time of a command (step_timeout).'),
  max_agent_seconds: optional(form.positiveSeconds, 'Ceiling of the time of the agent (time_limit).'),
  max_evaluation_seconds: optional(form.positiveSeconds, 'Ceiling of the time of the tests (timeout).'),
  max_log_bytes: optional(form.bytes, 'Ceiling of the test log (log_limit).'),
  max_ttl_seconds: optional(form.positiveInteger, 'Ceiling of the life of results (ttl).'),
};

export const COMMON_KEYS = {
  redis_url: optional(
    form.redisUrl,
    'Address of Redis (forms: docs/running.md#redis), with an ACL user and password.',
    'REDIS_URL',
  ),
  redis_username: optional(form.text, 'ACL user; wins over the URL.'),
  redis_password: optional(form.secret, 'Password; wins over the URL.'),
  redis_tls_ca: optional(form.path, 'File with the CA of the certificate of Redis.'),
  redis_tls_cert: optional(form.path, 'File with the client certificate (tls-auth-clients yes).'),
  redis_tls_key: optional(form.path, 'File with its private key.'),
  redis_sentinel_username: optional(form.text, 'ACL user at the Sentinels.'),
  redis_sentinel_password: optional(form.secret, 'Password at the Sentinels.'),
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
  agents_dir: key<string>(
    form.path,
    (_env, { state_dir }) => join(String(state_dir), 'agents'),
    'agents/ in the state folder',
    'Folder of installed agents (`swefarm agents install`), on every node that runs them.',
  ),
  artifacts: plain(form.artifactsUrl, 'redis:', 'Store of trajectories and reports: redis: or dir:/path.'),
  artifact_budget_bytes: size('8 GiB', 'Limit of all artifacts (8G), at which workers stop claiming.'),
  artifact_ttl_seconds: key(
    form.positiveInteger,
    () => 7 * 24 * 3600,
    '604800 (7 days)',
    'Life time of an artifact.',
  ),
  ...CEILING_KEYS,
};
