/** Requests to the server of the page. The token stays in this tab: it is sent as a header, and is never part of an address. */
import type {
  PageDetail,
  PageLive,
  PageOverview,
  PageRun,
  PageTokens,
  PageTrends,
} from '../../src/page/data.ts';

const TOKEN = 'swefarm.token';

/** The answer was 401: the server wants a token, or another one. */
export class Unauthorized extends Error {}

export function storeToken(token: string): void {
  sessionStorage.setItem(TOKEN, token);
}

export const hasToken = (): boolean => sessionStorage.getItem(TOKEN) !== null;

export function forgetToken(): void {
  sessionStorage.removeItem(TOKEN);
}

/** Takes the key that `swefarm show --web` prints after `#`, which no server gets, and removes it from the address. */
export function takeKeyFromAddress(): void {
  const key = /^#key=(\w+)$/.exec(location.hash)?.[1];
  if (key === undefined) return;
  storeToken(key);
  history.replaceState(null, '', `${location.pathname}#/`);
}

async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const token = sessionStorage.getItem(TOKEN);
  const headers: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(`/v1/page/${path}`, { headers, ...(signal ? { signal } : {}) });
  if (response.status === 401) throw new Unauthorized();
  const body: unknown = await response.json().catch(() => null);
  if (response.ok) return body as T;
  const message = (body as { error?: { message?: string } } | null)?.error?.message;
  throw new Error(message ?? `the server answered ${response.status}`);
}

/** Whether this tab's token, or none, opens the page: asked first, so that no request needs to be refused. */
export async function access(signal?: AbortSignal): Promise<boolean> {
  return (await get<{ granted: boolean }>('access', signal)).granted;
}

const id = encodeURIComponent;

export const api = {
  overview: (signal?: AbortSignal) => get<PageOverview>('overview', signal),
  run: (run: string, after: string, signal?: AbortSignal) =>
    get<PageRun>(`runs/${id(run)}?after=${after}`, signal),
  trends: (runs: readonly string[] | null, each: boolean, signal?: AbortSignal) =>
    get<PageTrends>(`trends?each=${each}${runs === null ? '' : `&runs=${runs.map(id).join(',')}`}`, signal),
  rollout: (rollout: string, signal?: AbortSignal) => get<PageDetail>(`rollouts/${id(rollout)}`, signal),
  tokens: async (rollout: string, turn: number, signal?: AbortSignal) =>
    (await get<{ tokens: PageTokens | null }>(`rollouts/${id(rollout)}/turns/${turn}/tokens`, signal)).tokens,
  log: async (rollout: string, signal?: AbortSignal) =>
    (await get<{ log: string | null }>(`rollouts/${id(rollout)}/log`, signal)).log,
  live: (rollout: string, after: string, signal?: AbortSignal) =>
    get<PageLive>(`rollouts/${id(rollout)}/live?after=${after}`, signal),
};
