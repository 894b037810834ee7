/**
 * Permissions of worker and producer in Redis, by family of keys. acl.test.ts fails for a key without a family, and acl.redis.test.ts for a
 * call without its permission.
 */
import type { FarmRole } from './connect.ts';
import { QUEUES } from './queue.ts';

/** Role of a user; `farm` is worker and producer in one, as in a Redis of `swefarm redis`. */
export type AclRole = FarmRole | 'farm';

/** Levels of access in ascending order; `write` includes `read`. Redis requires write access to all keys of a Lua script. */
const ACCESS = ['none', 'read', 'write'] as const;
export type Access = (typeof ACCESS)[number];

export type KeyFamily = {
  /** Pattern of keys without the prefix; `*` at the end matches any text. */
  readonly pattern: string;
  readonly worker: Access;
  readonly producer: Access;
  readonly why: string;
};

const family = (pattern: string, worker: Access, producer: Access, why: string): KeyFamily => ({
  pattern,
  worker,
  producer,
  why,
});

export const KEY_FAMILIES: readonly KeyFamily[] = [
  family('farm-id', 'write', 'write', 'the first process names the farm'),
  family('secret:*', 'read', 'write', 'workers send keys to endpoints'),
  family('policies', 'none', 'write', 'trainers set policies'),
  family('policy:*', 'read', 'write', 'a worker that could write endpoints could send rollouts anywhere'),
  family('policy-reports:*', 'write', 'read', 'reports of workers on endpoints'),
  family('admission:*', 'write', 'read', 'workers count the rollouts that play, and set the limit'),
  family('drained', 'read', 'write', 'operators drain nodes'),
  family('runs', 'none', 'write', 'users list runs'),
  family('unfinished', 'write', 'write', 'maintenance removes ended runs'),
  family('run-leases', 'write', 'write', 'renewed by submitters, ended by maintenance'),
  family('run:*', 'write', 'write', 'claim, commit and maintenance read and write a run in one script'),
  family('totals:*', 'write', 'write', 'counted in commit; any process counts lost workers'),
  family('versions:*', 'write', 'read', 'counted in commit'),
  family('passes:*', 'write', 'read', 'counted in commit; submitters draw instances by pass rate'),
  family('cancel-epoch', 'write', 'write', 'commit and maintenance cancel too'),
  family('workers', 'write', 'write', 'any process that lists workers removes dead ones'),
  family('worker:*', 'write', 'read', 'heartbeats'),
  family('seats:*', 'write', 'none', 'reserved slots of workers: placement by image'),
  family('homes:*', 'write', 'none', 'images of workers: placement by image'),
  family('handed:*', 'write', 'none', 'rollouts that workers forward to others'),
  family('history:*', 'write', 'read', 'commit counts durations; submits and gateways order by them'),
  family('lease:*', 'write', 'none', 'one worker at a time does the maintenance'),
  family('control:*', 'write', 'none', 'evaluations that show whether the tests of an instance start'),
  family('probe:*', 'none', 'write', 'gateways probe the endpoints of open runs'),
  family('live:*', 'write', 'read', 'turns of running rollouts'),
  ...QUEUES.map((queue) => family(`${queue}:*`, 'write', 'write', 'keys of BullMQ')),
  family('sessions', 'write', 'write', 'leases: renewed by drivers, ended by workers'),
  family('session:*', 'write', 'write', 'commands of drivers, answers of workers'),
  family('session-wakes:*', 'write', 'write', 'pushed by the gateway, popped by the worker'),
  family('calls:alike:*', 'write', 'write', 'maintenance ends abandoned calls'),
  family('calls:open', 'write', 'write', 'maintenance ends abandoned calls'),
  family('calls:gateways', 'write', 'write', 'maintenance removes dead gateways'),
  family('calls:addresses', 'none', 'write', 'gateways only'),
  family('calls:run:*', 'none', 'write', 'gateways only'),
  family('quota:*', 'none', 'write', 'gateways count rollouts of callers'),
  family('artifact:*', 'write', 'write', 'stored by workers, removed with the run'),
  family('artifacts:*', 'write', 'write', 'the byte budget'),
];

/** Allowed categories of commands; {@link aclRules} then removes administrative and dangerous commands, except `NEEDED`. */
const TYPES = ['string', 'hash', 'list', 'set', 'sortedset', 'stream', 'transaction', 'connection'];
const GENERIC = ['del', 'unlink', 'exists', 'type', 'rename', 'ttl', 'pttl'].concat(
  ['expire', 'pexpire', 'expireat', 'pexpireat', 'persist', 'time', 'eval', 'evalsha'],
  ['script|load', 'script|exists'],
);
/** Commands that the farm needs although some versions of Redis call them dangerous: checks at start, metrics, names of connections. */
const NEEDED = ['info', 'client|setname'];

/** Returns rules for `ACL SETUSER`. Read-only access needs Redis 7; the role `farm` has no read-only family. */
export function aclRules(role: AclRole, prefix: string): string[] {
  const keys = KEY_FAMILIES.flatMap((one) => {
    const access = role === 'farm' ? more(one.worker, one.producer) : one[role];
    if (access === 'none') return [];
    return [`${access === 'read' ? '%R~' : '~'}${prefix}:${one.pattern}`];
  });
  return [
    'resetkeys',
    ...keys,
    'resetchannels',
    '-@all',
    ...TYPES.map((type) => `+@${type}`),
    ...GENERIC.map((command) => `+${command}`),
    '-@admin',
    '-@dangerous',
    ...NEEDED.map((command) => `+${command}`),
  ];
}

/** Returns a line of an ACL file or redis.conf. @param credential `>password` or `#sha256` */
export const aclUser = (name: string, credential: string, role: AclRole, prefix: string): string =>
  `user ${name} on ${credential} ${aclRules(role, prefix).join(' ')}`;

const more = (one: Access, other: Access): Access =>
  ACCESS.indexOf(one) > ACCESS.indexOf(other) ? one : other;
