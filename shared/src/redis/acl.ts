/**
 * What each kind of process may do in Redis, as data: families of keys with the need of worker and producer, and the commands
 * that both use. A new key without a family fails acl.test.ts; a new call without its permission fails acl.redis.test.ts.
 */
import type { FarmRole } from './farm.ts';
import { QUEUES } from './queue.ts';

/** `farm`: worker and producer with one user, as on a Redis that `swefarm redis` keeps for one job. */
export type AclRole = FarmRole | 'farm';

/** In ascending order. Redis counts every key of a Lua script as written, whatever the script does with it. */
const ACCESS = ['none', 'read', 'write'] as const;
/** `write` reads too. */
export type Access = (typeof ACCESS)[number];

export type KeyFamily = {
  /** Key after the prefix; `*` at its end stands for anything. */
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
  family('farm-id', 'write', 'write', 'whoever comes first names the farm'),
  family('secret:*', 'read', 'write', 'a worker shows keys to endpoints, and gives out none'),
  family('policies', 'none', 'write', 'trainers say what is served'),
  family('policy:*', 'read', 'write', 'a worker that could write endpoints could send rollouts anywhere'),
  family('policy-reports:*', 'write', 'read', 'what workers see of endpoints'),
  family('drained', 'read', 'write', 'people empty nodes'),
  family('runs', 'none', 'write', 'the list of runs is for people'),
  family('unfinished', 'write', 'write', 'maintenance takes off what has ended'),
  family(
    'run:*',
    'write',
    'write',
    'claim, commit and maintenance write to a run in one step with reading it',
  ),
  family('totals:*', 'write', 'write', 'counted in commit; lost workers by whoever notices'),
  family('versions:*', 'write', 'read', 'counted in commit'),
  family('cancel-epoch', 'write', 'write', 'commit and maintenance cancel too'),
  family('workers', 'write', 'write', 'whoever lists them strikes out the dead'),
  family('worker:*', 'write', 'read', 'heartbeats'),
  family('seats:*', 'write', 'none', 'rollouts a worker has room for: placement by image'),
  family('homes:*', 'write', 'none', 'images a worker has: placement by image'),
  family('handed:*', 'write', 'none', 'rollouts that one worker hands to another'),
  family('lease:*', 'write', 'none', 'one worker at a time does the maintenance'),
  family('control:*', 'write', 'none', 'evaluations that show whether the tests of an instance start'),
  family('probe:*', 'none', 'write', 'gateways probe the endpoints of open runs'),
  family('live:*', 'write', 'read', 'turns of what runs'),
  ...QUEUES.map((queue) => family(`${queue}:*`, 'write', 'write', "BullMQ's own")),
  family('sessions', 'write', 'write', 'leases: renewed by drivers, ended by workers'),
  family('session:*', 'write', 'write', 'commands of drivers, answers of workers'),
  family('session-wakes:*', 'write', 'write', 'pushed by the gateway, popped by the worker'),
  family('calls:alike:*', 'write', 'write', 'maintenance ends calls that nobody waits for'),
  family('calls:open', 'write', 'write', 'the same'),
  family('calls:gateways', 'write', 'write', 'maintenance strikes out dead gateways'),
  family('calls:addresses', 'none', 'write', 'of gateways alone'),
  family('calls:run:*', 'none', 'write', 'of gateways alone'),
  family('quota:*', 'none', 'write', 'gateways count what a caller has in flight'),
  family('artifact:*', 'write', 'write', 'stored by workers, removed with the run'),
  family('artifacts:*', 'write', 'write', 'the books of the byte budget'),
];

/** All commands of the data types (the keys above limit each), then those of no type; harmful commands are removed last. */
const TYPES = ['string', 'hash', 'list', 'set', 'sortedset', 'stream', 'transaction', 'connection'];
const GENERIC = ['del', 'unlink', 'exists', 'type', 'rename', 'ttl', 'pttl'].concat(
  ['expire', 'pexpire', 'expireat', 'pexpireat', 'persist', 'time', 'eval', 'evalsha'],
  ['script|load', 'script|exists'],
);
/** Redis counts these as dangerous, and we need them: version and persistence are checked at start, memory is shown. */
const NEEDED = ['info', 'client|setname'];

/** Rules for `ACL SETUSER`, after name and password. Read-only families need Redis 7 or newer; role `farm` has none. */
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

/** Line of an ACL file or of redis.conf. @param credential `>password` or `#sha256`. */
export const aclUser = (name: string, credential: string, role: AclRole, prefix: string): string =>
  `user ${name} on ${credential} ${aclRules(role, prefix).join(' ')}`;

const more = (one: Access, other: Access): Access =>
  ACCESS.indexOf(one) > ACCESS.indexOf(other) ? one : other;
