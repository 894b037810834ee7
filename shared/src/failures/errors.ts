/** The root class of the farm's errors. */
export class SwefarmError extends Error {
  override readonly name: string = 'SwefarmError';
  /** Stable code in snake_case. Scripts and tests compare codes, not messages. */
  readonly code: string;
  /** Whether the same call may succeed later or on another node. */
  readonly retryable: boolean;

  constructor(code: string, message: string, options: { cause?: unknown; retryable?: boolean } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryable = options.retryable ?? false;
  }
}

/** Bad input: the command changes nothing and exits with code 2. The message names file, line, field and remedy. */
export class UsageError extends SwefarmError {
  override readonly name = 'UsageError';
  constructor(message: string, options: { cause?: unknown; code?: string } = {}) {
    super(options.code ?? 'usage', message, options);
  }
}

/** A dependency (Redis, engine, artifact store) is unusable: the command exits with code 12. */
export class UnusableError extends SwefarmError {
  override readonly name = 'UnusableError';
  constructor(code: string, message: string, options: { cause?: unknown } = {}) {
    super(code, message, { ...options, retryable: true });
  }
}

/** Returns the message of any thrown value, followed by those of up to four causes, separated by colons. */
export function errorMessage(error: unknown): string {
  const parts: string[] = [];
  for (let at: unknown = error, depth = 0; at !== undefined && at !== null && depth < 5; depth++) {
    const text = (at instanceof Error ? at.message || at.name : String(at)).trim();
    if (text && !parts.some((part) => part.includes(text))) parts.push(text);
    at = at instanceof Error ? at.cause : undefined;
  }
  return parts.join(': ');
}

/** Shortens a text to `most` characters by removing its middle. */
export function withoutMiddle(text: string, most: number): string {
  if (text.length <= most) return text;
  const head = Math.floor((most - 1) / 3);
  return `${text.slice(0, head)}…${text.slice(head + 1 - most)}`.toWellFormed();
}
