/** Tells an outage of Redis from a fault of ours, and says it in words a person can act on. */
import { errorMessage, SwefarmError, UnusableError } from '../failures/errors.ts';

const OUTAGE =
  /max retries per request|Connection is closed|Stream isn't writeable|Command aborted|ECONN(REFUSED|RESET|ABORTED)|ETIMEDOUT|EPIPE|ENOTFOUND|EAI_AGAIN|ENOENT|EHOSTUNREACH|ENETUNREACH|All sentinels are unreachable|connect to sentinel/;
/** It answers that it will not for now: it starts, fails over, or something else holds it up. */
const REFUSAL =
  /\b(LOADING|BUSY|READONLY|MASTERDOWN|NOREPLICAS|UNBLOCKED|CLUSTERDOWN|TRYAGAIN|EXECABORT)\b|^(MOVED|ASK) |max number of clients reached/;
const FULL = /\bOOM command not allowed|\bMISCONF\b/;
/** Said by a server that leads no more, or not yet. */
const NO_LEADER = /\b(READONLY|MASTERDOWN|UNBLOCKED)\b/;
const AUTH = /NOAUTH|WRONGPASS|NOPERM|invalid password|invalid username-password/i;
const TLS = /certificate|SSL|TLS|self.signed|altnames|UNABLE_TO|DEPTH_ZERO|wrong version number/i;

/** The UnusableError that an error of the Redis client means, or null when Redis is not at fault. */
export function asUnusable(given: unknown, address: string): UnusableError | null {
  // What one of our own parts says is no word of Redis, whatever file or host it names.
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

/** Whether the same words to Redis may be answered later: it was away, or refused them, and has done nothing. Not once we hung up ourselves. */
export function refusedByRedis(error: unknown): boolean {
  const unusable = asUnusable(error, '');
  return unusable?.code.startsWith('redis_') === true && !/Connection is closed/.test(errorMessage(unusable));
}

/** Whether a client is to connect anew, to whoever leads by then: the old leader still answers, and refuses. */
export const leadsNoMore = (error: Error): boolean => NO_LEADER.test(error.message);

/** A transaction is refused for what one of its commands was refused for. */
function firstOf(error: unknown): unknown {
  const previous = error instanceof Error && 'previousErrors' in error ? error.previousErrors : null;
  return Array.isArray(previous) && previous.length > 0 ? previous[0] : error;
}

/** A server that takes the connection and closes it, or never says a word, was spoken to in the other protocol, more often than not. */
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

/** The same functions (and plain values), whose outages of Redis are thrown as UnusableError. */
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
