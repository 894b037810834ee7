/** Distinguishes an outage of Redis from a bug of ours, and words it so that a person can act on it. */
import { errorMessage, SwefarmError, UnusableError } from '../failures/errors.ts';

const OUTAGE =
  /max retries per request|Connection is closed|Stream isn't writeable|Command aborted|ECONN(REFUSED|RESET|ABORTED)|ETIMEDOUT|EPIPE|ENOTFOUND|EAI_AGAIN|ENOENT|EHOSTUNREACH|ENETUNREACH|All sentinels are unreachable|connect to sentinel/;
/** Replies of a Redis that refuses for now: it starts, fails over, or is blocked. */
const REFUSAL =
  /\b(LOADING|BUSY|READONLY|MASTERDOWN|NOREPLICAS|UNBLOCKED|CLUSTERDOWN|TRYAGAIN|EXECABORT)\b|^(MOVED|ASK) |max number of clients reached/;
const FULL = /\bOOM command not allowed|\bMISCONF\b/;
/** Replies of a server that is not the leader any more, or not yet. */
const NO_LEADER = /\b(READONLY|MASTERDOWN|UNBLOCKED)\b/;
const AUTH = /NOAUTH|WRONGPASS|NOPERM|invalid password|invalid username-password/i;
const TLS = /certificate|SSL|TLS|self.signed|altnames|UNABLE_TO|DEPTH_ZERO|wrong version number/i;

/** The UnusableError that an error of the Redis client means, or null when Redis is not at fault. */
export function asUnusable(given: unknown, address: string): UnusableError | null {
  // An error of our own is not one of Redis, whatever file or host it names.
  if (given instanceof SwefarmError) return given instanceof UnusableError ? given : null;
  const error = firstOf(given);
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const reason = `${code} ${errorMessage(error)}`.trim();
  const say = (kind: string, text: string) => new UnusableError(kind, text, { cause: error });
  if (FULL.test(reason)) {
    return say(
      'redis_full',
      `Redis at ${address} takes no more writes: ${errorMessage(error)}; raise maxmemory or free its disk`,
    );
  }
  if (AUTH.test(reason)) {
    return say(
      'redis_auth',
      `Redis at ${address} refuses us: ${errorMessage(error)}; check user, password and ACL`,
    );
  }
  if (TLS.test(reason)) {
    return say(
      'redis_tls',
      `no TLS with Redis at ${address}: ${errorMessage(error)}; check rediss:// and redis_tls_ca`,
    );
  }
  if (REFUSAL.test(reason)) {
    return say(
      'redis_unreachable',
      `Redis at ${address} refuses for now: ${errorMessage(error)}; does it lead, with the replicas it waits for, and nothing that holds it up?`,
    );
  }
  if (!OUTAGE.test(reason)) return null;
  return say(
    'redis_unreachable',
    `Redis does not answer at ${address}: ${errorMessage(error)}; is it running, and reachable from here?${protocolHint(reason, address)}`,
  );
}

/** Whether the same command may succeed later: Redis was unreachable or refused it, and has done nothing. False after we closed the connection. */
export function refusedByRedis(error: unknown): boolean {
  const unusable = asUnusable(error, '');
  return unusable?.code.startsWith('redis_') === true && !/Connection is closed/.test(errorMessage(unusable));
}

/** Whether a client must reconnect, to the leader of then: the old leader still answers, but refuses. */
export const leadsNoMore = (error: Error): boolean => NO_LEADER.test(error.message);

/** The reason of a refused transaction is that of its first refused command. */
function firstOf(error: unknown): unknown {
  const previous = error instanceof Error && 'previousErrors' in error ? error.previousErrors : null;
  return Array.isArray(previous) && previous.length > 0 ? previous[0] : error;
}

/** A server that accepts the connection and closes it, or never answers, was most likely addressed with the wrong protocol. */
function protocolHint(reason: string, address: string): string {
  if (!/ECONNRESET|EPIPE|ETIMEDOUT|Connection is closed/.test(reason)) return '';
  if (address.startsWith('rediss:')) return ' (Use redis:// where it speaks no TLS.)';
  return address.startsWith('redis:') ? ' (Use rediss:// where it speaks TLS.)' : '';
}

type Call = (...args: never[]) => Promise<unknown>;
type Parts = (...args: never[]) => AsyncGenerator<unknown>;

const partsWithOutages = (parts: Parts, address: string): Parts =>
  async function* (...args) {
    try {
      yield* parts(...args);
    } catch (error) {
      throw asUnusable(error, address) ?? error;
    }
  };

/** The same functions (and plain values), which throw outages of Redis as UnusableError. */
export function throwingUnusable<T extends object>(part: T, address: string): T {
  const wrapped = Object.entries(part as Record<string, unknown>).map(([name, member]) => {
    if (typeof member !== 'function') return [name, member];
    if (Object.prototype.toString.call(member) === '[object AsyncGeneratorFunction]') {
      return [name, partsWithOutages(member as Parts, address)];
    }
    const call = member as Call;
    const wrapper: Call = async (...args) => {
      try {
        return await call(...args);
      } catch (error) {
        throw asUnusable(error, address) ?? error;
      }
    };
    return [name, wrapper];
  });
  return Object.fromEntries(wrapped) as T;
}
