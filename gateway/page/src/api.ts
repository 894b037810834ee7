/** Sends requests to the server of the page. The token is stored in this tab and sent as a header, never in an address. */

const TOKEN = 'swefarm.token';

/** The server answered 401. */
export class Unauthorized extends Error {}

export function storeToken(token: string): void {
  sessionStorage.setItem(TOKEN, token);
}

export const hasToken = (): boolean => sessionStorage.getItem(TOKEN) !== null;

export function forgetToken(): void {
  sessionStorage.removeItem(TOKEN);
}

/** Stores the key that `swefarm show --web` prints after `#`, and removes it from the address. */
export function takeKeyFromAddress(): void {
  const key = /^#key=(\w+)$/.exec(location.hash)?.[1];
  if (key === undefined) return;
  storeToken(key);
  history.replaceState(null, '', `${location.pathname}#/`);
}

/** Returns the answer to a GET below `/v1/page/`. Throws Unauthorized, or an Error with the server's message. */
export async function get<T>(path: string): Promise<T> {
  const token = sessionStorage.getItem(TOKEN);
  const headers = token === null ? undefined : { authorization: `Bearer ${token}` };
  const response = await fetch(`/v1/page/${path}`, headers && { headers });
  if (response.status === 401) throw new Unauthorized();
  const body: unknown = await response.json().catch(() => null);
  if (response.ok) return body as T;
  const message = (body as { error?: { message?: string } } | null)?.error?.message;
  throw new Error(message ?? `the server answered ${response.status}`);
}

/** Returns whether the server accepts the token of this tab, or requests without a token. */
export const access = async (): Promise<boolean> => (await get<{ granted: boolean }>('access')).granted;

export const rolloutPath = (id: string): string => `rollouts/${encodeURIComponent(id)}`;
