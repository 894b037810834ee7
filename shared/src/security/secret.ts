/** Secrets are redacted by type: nothing that prints, logs or serialises a Secret shows its value. */
import { inspect } from 'node:util';

const SHOWN = '[secret]';

export class Secret {
  readonly #value: string;
  readonly #shown: string;

  /** `shown` replaces `[secret]` where a harmless form exists (a URL without its password). */
  constructor(value: string, shown: string = SHOWN) {
    this.#value = value;
    this.#shown = shown;
    // A value that is shown whole, such as a path or a URL without a password, is not a secret.
    if (shown !== value) remember(value);
  }

  /** The value itself: call it only to pass the value to a client, never for a message. */
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

/** Recent values of secrets in this process, to mask them in any text that contains them; bounded in number. */
const known = new Map<string, RegExp>();
const MOST_KNOWN = 1000;
/** A shorter value would mask unrelated words. */
const LEAST_LENGTH = 6;

function remember(secret: string): void {
  // Of a URL only the password is secret; the URL itself is shown without it.
  const value = /^[a-z]+:\/\//.test(secret) ? decodeURIComponent(URL.parse(secret)?.password ?? '') : secret;
  if (value.length < LEAST_LENGTH || known.has(value)) return;
  const forms = new Set([value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value)]);
  const pattern = [...forms].map((form) => form.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&')).join('|');
  known.set(value, new RegExp(pattern, 'g'));
  const [oldest] = known.keys();
  if (known.size > MOST_KNOWN && oldest !== undefined) known.delete(oldest);
}

/** Replaces every secret of this process, passwords in URLs and bearer tokens, anywhere in a text. */
export function maskSecrets(text: string): string {
  let masked = text;
  for (const pattern of known.values()) masked = masked.replace(pattern, SHOWN);
  return maskUrl(masked);
}

/** Replaces passwords in URLs and bearer tokens anywhere in a text. Never throws, even for text that is not a URL. */
export function maskUrl(text: string): string {
  return text
    .replace(/([a-z][a-z0-9+.-]*:\/\/[^\s/:@"']*):[^\s/"']*@/gi, `$1:${SHOWN}@`)
    .replace(/\b(bearer\s+)[A-Za-z0-9._~+/=-]{6,}/gi, `$1${SHOWN}`);
}
