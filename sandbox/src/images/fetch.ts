/** Fetches images: few at a time, from mirrors first, and with backoff when a registry limits the rate. */
import {
  createSemaphore,
  errorMessage,
  exponentialBackoff,
  sleep,
  UsageError,
  type WorkerConfig,
} from '@swefarm/shared';
import { type Credentials, checkRegistryAuth, credentialsFor } from './credentials.ts';
import { fullName } from './names.ts';

export type Mirror = { from: string; to: string };

export type FetchSettings = {
  atOnce: number;
  mirrors: readonly Mirror[];
  registryAuth?: readonly string[];
};

type Pull<T> = (from: string, credentials: Credentials | null) => Promise<T>;
/** Fetches an image. `pull` receives the name to request, and credentials. Throws the last error of `pull`. */
export type Fetch = <T>(image: string, pull: Pull<T>) => Promise<T>;

/** Returns the settings of pulls from the worker's configuration. Throws UsageError for mirrors and credentials that cannot be read. */
export function fetchSettings(config: WorkerConfig): Required<FetchSettings> {
  checkRegistryAuth(config.registry_auth);
  return {
    atOnce: config.image_pulls,
    mirrors: readMirrors(config.image_mirrors),
    registryAuth: config.registry_auth,
  };
}

/** Parses `PREFIX=PREFIX`. Throws UsageError. */
export function readMirrors(given: readonly string[]): Mirror[] {
  return given.map((text) => {
    const [from, to, more] = text.split('=');
    if (!from || !to || more !== undefined) {
      throw new UsageError(
        `image_mirrors: "${text}" is not PREFIX=PREFIX, such as docker.io/=mirror.example/`,
      );
    }
    return { from, to };
  });
}

/** Returns the names to request: the names at matching mirrors, then the image's own name. */
export function sourcesOf(image: string, mirrors: readonly Mirror[]): string[] {
  const full = fullName(image);
  const rewritten = mirrors
    .filter(({ from }) => full.startsWith(from))
    .map(({ from, to }) => to + full.slice(from.length));
  return [...new Set([...rewritten, image])];
}

const LIMITED = /toomanyrequests|too many requests|\b429\b/i;
const MOST_WAITS = 6;
const LONGEST_WAIT_MS = 300_000;
const backoffMs = exponentialBackoff(5_000, LONGEST_WAIT_MS);

/**
 * Returns the wait in ms after a "too many requests" error: the registry's `Retry-After`, if the engine reports it, else exponential
 * backoff; at most five minutes. Returns null for other errors.
 */
export function waitAfter(error: unknown, waits: number): number | null {
  const text = errorMessage(error);
  if (!LIMITED.test(text) && (error as { statusCode?: number } | null)?.statusCode !== 429) return null;
  const seconds = /retry[- ]after:?\s*(\d+)/i.exec(text)?.[1];
  return Math.min(seconds ? Number(seconds) * 1000 : backoffMs(waits + 1), LONGEST_WAIT_MS);
}

/** @param wait waits a number of milliseconds; tests replace it */
export function createFetch(
  { atOnce, mirrors, registryAuth = [] }: FetchSettings = { atOnce: 2, mirrors: [] },
  wait: (ms: number) => Promise<unknown> = sleep,
): Fetch {
  const slots = createSemaphore(atOnce);
  const once = <T>(from: string, pull: Pull<T>): Promise<T> =>
    slots.run(async () => pull(from, credentialsFor(from, registryAuth)));
  const patiently = async <T>(from: string, pull: Pull<T>): Promise<T> => {
    for (let waits = 0; ; waits++) {
      try {
        return await once(from, pull);
      } catch (error) {
        const ms = waits < MOST_WAITS ? waitAfter(error, waits) : null;
        if (ms === null) throw error;
        // Waits without a slot, so that images of other registries are fetched meanwhile.
        await wait(ms * (1 + Math.random() / 4));
      }
    }
  };
  return async (image, pull) => {
    const sources = sourcesOf(image, mirrors);
    for (const mirror of sources.slice(0, -1)) {
      try {
        return await once(mirror, pull);
      } catch {
        // A mirror that lacks the image or does not answer is skipped.
      }
    }
    return await patiently(sources.at(-1) ?? image, pull);
  };
}
