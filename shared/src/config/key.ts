/** The declaration of one configuration key: schema, default, and its row in the table of keys. */
import type { z } from 'zod';

export type Environment = Readonly<Record<string, string | undefined>>;

export type ConfigKey<T> = {
  schema: z.ZodType<T>;
  /** Used when no value is given; receives the keys declared before it. The table shows the text `shown` instead. */
  default: (env: Environment, soFar: Readonly<Record<string, unknown>>) => T;
  shown: string;
  doc: string;
  /** Variables of other programs that are read when the SWEFARM_ one is not set. */
  otherEnv?: readonly string[];
};

export const key = <T>(
  schema: z.ZodType<T>,
  fallback: ConfigKey<T>['default'],
  shown: string,
  doc: string,
  otherEnv: readonly string[] = [],
): ConfigKey<T> => ({ schema, default: fallback, shown, doc, otherEnv });

/** A key whose default is a plain value. */
export const plain = <T>(schema: z.ZodType<T>, value: T, doc: string, otherEnv: readonly string[] = []) =>
  key(schema, () => value, value === null ? '' : String(value), doc, otherEnv);
