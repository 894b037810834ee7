/** Recognises outages of Redis and describes them with a remedy. */
import { errorMessage, SwefarmError, UnusableError } from '../failures/errors.ts';

const OUTAGE =
  /max retries per request|Connection is closed|Stream isn't writeable|Command aborted|ECONN(REFUSED|RESET|ABORTED)|ETIMEDOUT|EPIPE|ENOTFOUND|EAI_AGAIN|ENOENT|EHOSTUNREACH|ENETUNREACH|All sentinels are unreachable|connect to sentinel/;
/** Replies of a Redis that is starting, in a failover, blocked, or at its limit of clients. */
const REFUSAL =
  /\b(LOADING|BUSY|READONLY|MASTERDOWN|NOREPLICAS|UNBLOCKED|CLUSTERDOWN|TRYAGAIN|EXECABORT)\b|^(MOVED|ASK) |max number of clients reached/;
const FULL = /\bOOM command not allowed|\bMISCONF\b/;
/** Replies of a server that is not the leader. */
const NO_LEADER = /\b(READONLY|MASTERDOWN|UNBLOCKED)\b/;
const AUTH = /NOAUTH|WRONGPASS|NOPERM|invalid password|invalid username-password/i;
const TLS = /certificate|SSL|TLS|self.signed|altnames|UNABLE_TO|DEPTH_ZERO|wrong version number/i;

/** Returns the UnusableError for an error of the Redis client; null if Redis is not at fault. */
export function asUnusable(given: unknown, address: string): UnusableError | null {
  // The message of a SwefarmError may mention files and hosts, but the error is not an outage.
  if (given instanceof SwefarmError) return given instanceof UnusableError ? given : null;
  const error = firstOf(given);
  const message = errorMessage(error);
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const reason = `${code} ${message}`.trim();
  const redis = `Redis at ${address}`;
  const causes: [pattern: RegExp, code: string, text: string][] = [
    [FULL, 'redis_full', `${redis} accepts no writes: ${message}; raise maxmemory or free its disk`],
    [AUTH, 'redis_auth', `${redis} refuses the login: ${message}; check user, password and ACL`],
    [TLS, 'redis_tls', `no TLS with ${redis}: ${message}; check rediss:// and redis_tls_ca`],
    [
      REFUSAL,
      'redis_unreachable',
      `${redis} refuses commands: ${message}; check that it is the leader, has its replicas, and runs no blocking command`,
    ],
    [
      OUTAGE,
      'redis_unreachable',
      `Redis does not answer at ${address}: ${message}; is it running, and reachable from here?${protocolHint(reason, address)}`,
    ],
  ];
  const cause = causes.find(([pattern]) => pattern.test(reason));
  return cause ? new UnusableError(cause[1], cause[2], { cause: error }) : null;
}

/** Returns whether Redis refused the command or was unreachable; false after this process closed the connection. */
export function refusedByRedis(error: unknown): boolean {
  const unusable = asUnusable(error, '');
  return unusable?.code.startsWith('redis_') === true && !/Connection is closed/.test(errorMessage(unusable));
}

/** Returns whether a client must reconnect to a new leader. */
export const leadsNoMore = (error: Error): boolean => NO_LEADER.test(error.message);

/** Returns the error of the first refused command of a transaction. */
function firstOf(error: unknown): unknown {
  const previous = error instanceof Error && 'previousErrors' in error ? error.previousErrors : null;
  return Array.isArray(previous) && previous.length > 0 ? previous[0] : error;
}

/** Returns a hint about TLS: a server that closes a new connection or never answers probably expects the other protocol. */
function protocolHint(reason: string, address: string): string {
  if (!/ECONNRESET|EPIPE|ETIMEDOUT|Connection is closed/.test(reason)) return '';
  if (address.startsWith('rediss:')) return ' (Use redis:// for a server without TLS.)';
  return address.startsWith('redis:') ? ' (Use rediss:// for a server with TLS.)' : '';
}

/** Wraps the public functions of an object or of a class, so that they throw outages of Redis as UnusableError. */
export function throwingUnusable<T extends object>(part: T, address: string): Pick<T, keyof T> {
  const fail = (error: unknown): never => {
    throw asUnusable(error, address) ?? error;
  };
  const wrapped = membersOf(part).map(([name, member]) => {
    if (typeof member !== 'function') return [name, member];
    return [name, (...args: unknown[]) => replyOrFail(member.apply(part, args), fail)];
  });
  return Object.fromEntries(wrapped) as Pick<T, keyof T>;
}

type Fail = (error: unknown) => never;

/** Returns the reply; `fail` converts its errors. A reply that is neither a promise nor a generator does not depend on Redis. */
function replyOrFail(reply: unknown, fail: Fail): unknown {
  if (reply instanceof Promise) return reply.catch(fail);
  const isParts = typeof reply === 'object' && reply !== null && Symbol.asyncIterator in reply;
  return isParts ? partsOrFail(reply as AsyncGenerator<unknown>, fail) : reply;
}

async function* partsOrFail(parts: AsyncGenerator<unknown>, fail: Fail): AsyncGenerator<unknown> {
  try {
    yield* parts;
  } catch (error) {
    fail(error);
  }
}

/** Returns the properties of an object, or the methods of its class and the classes above. */
function membersOf(part: object): [name: string, member: unknown][] {
  const above = Object.getPrototypeOf(part);
  if (above === Object.prototype) return Object.entries(part);
  const names = Object.getOwnPropertyNames(above).filter((name) => name !== 'constructor');
  return [...membersOf(above), ...names.map((name): [string, unknown] => [name, above[name]])];
}
