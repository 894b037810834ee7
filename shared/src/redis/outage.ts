/** Tells an outage of Redis from a fault of ours, and says it in words a person can act on. */
import { errorMessage, UnusableError } from '../errors.ts';

const OUTAGE =
  /max retries per request|Connection is closed|Stream isn't writeable|ECONN(REFUSED|RESET|ABORTED)|ETIMEDOUT|EPIPE|ENOTFOUND|EAI_AGAIN|ENOENT|EHOSTUNREACH|ENETUNREACH|LOADING |MASTERDOWN|READONLY|CLUSTERDOWN|TRYAGAIN|^MOVED |^ASK |All sentinels are unreachable|connect to sentinel/;
const AUTH = /NOAUTH|WRONGPASS|NOPERM|invalid password|invalid username-password/i;
const TLS = /certificate|SSL|TLS|self.signed|altnames|UNABLE_TO|DEPTH_ZERO|wrong version number/i;

/** The UnusableError that an error of the Redis client means, or null when Redis is not at fault. */
export function asUnusable(given: unknown, address: string): UnusableError | null {
  if (given instanceof UnusableError) return given;
  const error = firstOf(given);
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const reason = `${code} ${errorMessage(error)}`.trim();
  const say = (kind: string, text: string) => new UnusableError(kind, text, { cause: error });
  if (/OOM command not allowed|MISCONF/.test(reason)) {
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
  if (!OUTAGE.test(reason)) return null;
  return say(
    'redis_unreachable',
    `Redis does not answer at ${address}: ${errorMessage(error)}; is it running, and reachable from here?${protocolHint(reason, address)}`,
  );
}

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

/** The same functions (and plain values), whose outages of Redis are thrown as UnusableError. */
export function saysOutages<T extends object>(part: T, address: string): T {
  const wrapped = Object.entries(part as Record<string, unknown>).map(([name, member]) => {
    if (typeof member !== 'function') return [name, member];
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
