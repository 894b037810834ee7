/** Represents parquet values that JSON and JavaScript cannot represent exactly, and writes their JSON text. */
import { UsageError } from '@swefarm/shared';
import { mapLeaves } from '../fields/fields.ts';

const PER_SECOND = { MILLIS: 1_000n, MICROS: 1_000_000n, NANOS: 1_000_000_000n } as const;
const DAY_MS = 86_400_000;

/** Date or timestamp, as a count of `unit` since 1970. */
export class ExactTime {
  readonly value: bigint;
  readonly unit: keyof typeof PER_SECOND | 'DAYS';

  constructor(value: bigint, unit: keyof typeof PER_SECOND | 'DAYS') {
    this.value = value;
    this.unit = unit;
  }

  /** Returns the time in ISO 8601 with the precision of the unit. */
  toString(): string {
    if (this.unit === 'DAYS') return new Date(Number(this.value) * DAY_MS).toISOString().slice(0, 10);
    const per = PER_SECOND[this.unit];
    const rest = ((this.value % per) + per) % per;
    const seconds = new Date(Number((this.value - rest) / per) * 1000).toISOString().slice(0, 19);
    return `${seconds}.${String(rest).padStart(String(per).length - 1, '0')}Z`;
  }

  toJSON(): string {
    return this.toString();
  }
}

/** JSON text of a parquet column. */
export class ExactText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toJSON(): unknown {
    return JSON.parse(this.text, exactNumber as (key: string, value: unknown) => unknown);
  }
}

/** Reviver for JSON.parse that preserves all digits of a number. Node 24 passes the source text in the third parameter. */
const exactNumber = (_key: string, value: unknown, context?: { source?: string }): unknown =>
  typeof value === 'number' && context?.source !== undefined && String(value) !== context.source
    ? rawJson(context.source)
    : value;

/** Calls `JSON.rawJSON`, which TypeScript's types lack. */
const rawJson = (text: string): unknown =>
  (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(text);

/** Converts exact values to plain JSON values. Integers may lose digits. */
export const plainJson = (value: unknown): unknown =>
  mapLeaves(value, (leaf) => {
    if (typeof leaf === 'bigint') return Number(leaf);
    if (leaf instanceof ExactText) return JSON.parse(leaf.text);
    return leaf instanceof ExactTime ? leaf.toString() : undefined;
  });

/** Returns one line of JSON with all digits. Error messages begin with `where`. @throws UsageError for bytes, NaN and infinity */
export function exactJson(value: unknown, where: string): string {
  return JSON.stringify(value, (key, inner: unknown) => {
    if (typeof inner === 'bigint') return rawJson(String(inner));
    if (typeof inner === 'number' && !Number.isFinite(inner)) {
      throw new UsageError(`${where}: ${key}: JSON has no ${inner}; write parquet instead`);
    }
    if (inner instanceof Uint8Array) {
      throw new UsageError(
        `${where}: ${key}: contains bytes, which JSON cannot represent; write parquet instead`,
      );
    }
    return inner;
  });
}
