/** Values that are masked when they are printed, logged or serialised. */
import { inspect } from 'node:util';

const SHOWN = '[secret]';

export class Secret {
  readonly #value: string;
  readonly #shown: string;

  /** @param shown text in place of the value, such as a URL without its password */
  constructor(value: string, shown: string = SHOWN) {
    this.#value = value;
    this.#shown = shown;
    // A value that is shown unchanged is not a secret.
    if (shown !== value) remember(value);
  }

  /** Returns the value. Pass it to clients only, never to messages. */
  reveal(): string {
    return this.#value;
  }
  toString(): string {
    return this.#shown;
  }
  toJSON(): string {
    return this.#shown;
  }
  [inspect.custom](): string {
    return this.#shown;
  }
}

/** The most recent secrets of this process, for {@link maskSecrets}. */
const known = new Map<string, RegExp>();
const MOST_KNOWN = 1000;
/** Minimum length of a masked secret; masking shorter values would change unrelated words. */
const LEAST_LENGTH = 6;

function remember(secret: string): void {
  // Only the password of a URL is secret. URL.parse cannot parse a URL of several hosts, such as redis+sentinel://:password@a:1,b:2.
  const password = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/]*?:([^/]*)@)?/i.exec(secret);
  const value = password ? decodeUrlPart(password[1] ?? '') : secret;
  if (value.length < LEAST_LENGTH || known.has(value)) return;
  const forms = new Set([value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value)]);
  const pattern = [...forms].map((form) => form.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&')).join('|');
  known.set(value, new RegExp(pattern, 'g'));
  const [oldest] = known.keys();
  if (known.size > MOST_KNOWN && oldest !== undefined) known.delete(oldest);
}

/** Returns a part of a URL without percent-encoding; a part with a bare % is returned as it is. */
export function decodeUrlPart(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Masks the secrets of this process, and in any text passwords in URLs and bearer tokens. */
export function maskSecrets(text: string): string {
  let masked = text;
  for (const pattern of known.values()) masked = masked.replace(pattern, SHOWN);
  return maskUrl(masked);
}

/** Masks passwords in URLs and bearer tokens in any text. */
export function maskUrl(text: string): string {
  return text
    .replace(/([a-z][a-z0-9+.-]*:\/\/[^\s/:@"']*):[^\s/"']*@/gi, `$1:${SHOWN}@`)
    .replace(/\b(bearer\s+)[A-Za-z0-9._~+/=-]{6,}/gi, `$1${SHOWN}`);
}
