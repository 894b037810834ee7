/**
 * Requests file lists, checksums and content of a dataset through the HTTP API of Hugging Face (huggingface.co/docs/hub/api), which mirrors
 * implement too.
 */
import { type Secret, SwefarmError, sleep, UnusableError, UsageError } from '@swefarm/shared';
import { z } from 'zod';

export type HubAddress = {
  /** Base URL, such as https://huggingface.co. */
  url: string;
  token: Secret | null;
};

export type DatasetName = { name: string; revision: string };

export type HubFile = {
  path: string;
  size: number;
  /** SHA-256 for large files; git's hash for small files: SHA-1 of `blob SIZE\0` and the content. */
  checksum: { kind: 'sha256' | 'git'; value: string };
};

/** Parses `OWNER/NAME` or `NAME`, each with an optional `@REVISION` (default: main). Throws UsageError. */
export function parseDatasetName(text: string): DatasetName {
  const [, name, revision] = /^([\w.-]+(?:\/[\w.-]+)?)(?:@([\w./-]+))?$/.exec(text) ?? [];
  if (name === undefined || name.split('/').some((part) => /^\.+$/.test(part))) {
    throw new UsageError(`${text}: expected OWNER/NAME or OWNER/NAME@REVISION, such as SWE-Gym/SWE-Gym@main`);
  }
  return { name, revision: revision ?? 'main' };
}

const Revision = z.object({ sha: z.string().regex(/^[0-9a-f]{40}$/) });
const Entry = z.object({
  type: z.string(),
  path: z.string(),
  size: z.number().int().nonnegative(),
  oid: z.string(),
  lfs: z.object({ oid: z.string(), size: z.number().int().nonnegative() }).nullish(),
});

/** Returns the commit of the revision and its files. @throws UsageError if the hub refuses, UnusableError if it does not answer */
export async function readCommit(
  hub: HubAddress,
  { name, revision }: DatasetName,
  signal: AbortSignal,
): Promise<{ commit: string; files: HubFile[] }> {
  const base = `${hub.url}/api/datasets/${name}`;
  const { sha } = Revision.parse(await json(hub, `${base}/revision/${encodeURIComponent(revision)}`, signal));
  const files: HubFile[] = [];
  for (let next: string | null = `${base}/tree/${sha}?recursive=true`; next !== null; ) {
    const answer = await ask(hub, next, { signal });
    const entries = z.array(Entry).parse(await answer.json());
    files.push(...entries.filter(({ type }) => type === 'file').map(fileOf));
    next = nextPage(answer, next);
  }
  return { commit: sha, files };
}

function fileOf({ path, size, oid, lfs }: z.infer<typeof Entry>): HubFile {
  // A hostile hub must not write outside the folder.
  if (
    path.startsWith('/') ||
    /[\\\0\n]/.test(path) ||
    path.split('/').some((part) => /^\.{0,2}$/.test(part))
  ) {
    throw new UsageError(
      `the hub names a file ${JSON.stringify(path)}, which is outside of the folder; nothing is fetched`,
    );
  }
  return lfs
    ? { path, size: lfs.size, checksum: { kind: 'sha256', value: lfs.oid.replace(/^sha256:/, '') } }
    : { path, size, checksum: { kind: 'git', value: oid } };
}

function nextPage(answer: Response, address: string): string | null {
  const [, link] = /<([^>]+)>\s*;\s*rel="next"/.exec(answer.headers.get('link') ?? '') ?? [];
  return link === undefined ? null : new URL(link, address).href;
}

const json = async (hub: HubAddress, url: string, signal: AbortSignal): Promise<unknown> =>
  await (await ask(hub, url, { signal })).json();

type HubRequest = { signal: AbortSignal; headers?: Record<string, string> };

export const contentUrl = (hub: HubAddress, { name }: DatasetName, commit: string, path: string): string =>
  `${hub.url}/datasets/${name}/resolve/${commit}/${path.split('/').map(encodeURIComponent).join('/')}`;

const MOST_REDIRECTS = 5;
const MOST_TRIES = 6;
const PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 300_000;

/**
 * Sends a GET request and returns an answer with status 2xx or 416. Retries temporary failures after the time in Retry-After, or after
 * increasing pauses. Follows redirects itself, because only the origin of the hub may receive the token.
 */
export async function ask(
  hub: HubAddress,
  address: string,
  { signal, headers = {} }: HubRequest,
): Promise<Response> {
  for (let tries = 1; ; tries++) {
    let answer: Response | null = null;
    try {
      answer = await follow(hub, address, { signal, headers });
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof SwefarmError || tries >= MOST_TRIES || isHopeless(error))
        throw unreachable(hub, error);
    }
    if (answer && (answer.ok || answer.status === 416)) return answer;
    if (answer) {
      await answer.body?.cancel();
      if (!isPassing(answer.status) || tries >= MOST_TRIES) throw refused(hub, address, answer);
    }
    const pause = answer === null ? null : retryAfterMs(answer);
    await sleep(Math.min(pause ?? PAUSE_MS * 2 ** (tries - 1), LONGEST_PAUSE_MS), signal);
  }
}

async function follow(
  hub: HubAddress,
  address: string,
  { signal, headers = {} }: HubRequest,
): Promise<Response> {
  let url = new URL(address);
  for (let hops = 0; hops <= MOST_REDIRECTS; hops++) {
    const own = url.origin === new URL(hub.url).origin && hub.token !== null;
    const answer = await fetch(url, {
      redirect: 'manual',
      signal,
      headers: { ...headers, ...(own ? { authorization: `Bearer ${hub.token?.reveal()}` } : {}) },
    });
    const target = answer.headers.get('location');
    if (answer.status < 300 || answer.status >= 400 || target === null) return answer;
    await answer.body?.cancel();
    url = new URL(target, url);
    if (!/^https?:$/.test(url.protocol)) break;
  }
  throw new UnusableError('hub_redirects', `${address}: the hub redirects without end, or away from http`);
}

const isPassing = (status: number): boolean => status === 429 || status === 408 || status >= 500;

/** Returns the delay of the Retry-After header (seconds or a date) in ms; null without a valid header. */
function retryAfterMs(answer: Response): number | null {
  const given = answer.headers.get('retry-after');
  if (given === null) return null;
  const ms = /^\d+$/.test(given) ? Number(given) * 1000 : Date.parse(given) - Date.now();
  return Number.isNaN(ms) ? null : Math.max(0, ms);
}

/** Whether the host is unknown or unreachable. The request is then not retried, because this machine is probably offline. */
const isHopeless = (error: unknown): boolean =>
  /^(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH|EHOSTUNREACH)$/.test(
    String((error as { cause?: { code?: string } }).cause?.code),
  );

function unreachable(hub: HubAddress, error: unknown): unknown {
  if (error instanceof SwefarmError) return error;
  const cause = (error as { cause?: Error }).cause ?? (error as Error);
  return new UnusableError('hub_unreachable', `${hub.url} cannot be reached (${cause.message})`, {
    cause: error,
  });
}

function refused(hub: HubAddress, address: string, { status }: Response): SwefarmError {
  const where = address.slice(hub.url.length);
  if (status === 401 || status === 403) {
    const remedy =
      hub.token === null
        ? 'it may be private or gated: set hub_token (SWEFARM_HUB_TOKEN or HF_TOKEN), and accept its conditions on the page of the dataset'
        : 'the token is not accepted for it: check hub_token, and accept its conditions on the page of the dataset';
    return new UsageError(`${hub.url} refuses ${where} (${status}); ${remedy}`, { code: 'hub_refused' });
  }
  if (status === 404) {
    return new UsageError(
      `${hub.url} has no ${where}; check name and revision (private datasets are hidden without a token)`,
    );
  }
  return new UnusableError('hub_answer', `${hub.url} answers ${where} with ${status}; try again later`);
}
