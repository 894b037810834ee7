/** Values of the options of a card: conversion of texts, defaults, and errors that name what exists. */
import { createHash } from 'node:crypto';
import { type AgentCard, nearest, UsageError } from '@swefarm/shared';

export type OptionValue = string | number | boolean;
export type OptionValues = Readonly<Record<string, OptionValue>>;
/** Option → content of the file that a run gives for it. */
export type OptionFiles = Readonly<Record<string, string>>;

/** Characters that would end a text of JSON, TOML or a shell, or begin a placeholder. */
const UNSAFE = /["'`\\{}$\p{Cc}]/u;

/** Returns whether a value may stand inside files and JSON of a card. */
export const isPlain = (value: string): boolean => !UNSAFE.test(value);

/**
 * Returns the given options with the types of their defaults. Texts such as `true` and `12` are converted, because a command line has only
 * texts.
 *
 * @throws UsageError for unknown options and wrong values
 */
export function typedOptions(card: AgentCard, given: OptionValues): Record<string, OptionValue> {
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => {
      const option = Object.hasOwn(card.options, name) ? card.options[name] : undefined;
      if (!option) throw new UsageError(unknownOption(card, name));
      const typed = convert(value, typeof option.default);
      if (typed === null) {
        const expected = { boolean: 'true or false', number: 'a number', string: 'a text without quotes' };
        const wanted = expected[typeof option.default as keyof typeof expected];
        throw new UsageError(
          `option ${name} of agent ${card.name}: expected ${wanted}, got ${JSON.stringify(value)}`,
        );
      }
      return [name, typed];
    }),
  );
}

/** Throws UsageError for an option that the card lacks, or that takes no file. */
export function requireFileOptions(card: AgentCard, files: OptionFiles): void {
  for (const name of Object.keys(files)) {
    const option = Object.hasOwn(card.options, name) ? card.options[name] : undefined;
    if (!option) throw new UsageError(unknownOption(card, name));
    if (option.file !== undefined) continue;
    const others = Object.keys(card.options).filter((other) => card.options[other]?.file !== undefined);
    throw new UsageError(
      `option ${name} of agent ${card.name} takes no file; ${others.length > 0 ? `options with a file: ${others.join(', ')}` : 'no option of this agent does'}`,
    );
  }
}

function unknownOption(card: AgentCard, name: string): string {
  const known = Object.keys(card.options);
  if (known.length === 0) return `agent ${card.name} has no options, but option ${name} was given`;
  const best = nearest(name, known);
  const hint = best === null ? `its options: ${known.join(', ')}` : `did you mean ${best}?`;
  return `agent ${card.name} has no option ${name}; ${hint}`;
}

function convert(value: OptionValue, type: string): OptionValue | null {
  if (type === 'string') return typeof value === 'boolean' || isPlain(String(value)) ? String(value) : null;
  if (typeof value === type) return value;
  if (typeof value !== 'string') return null;
  if (type === 'boolean') return value === 'true' ? true : value === 'false' ? false : null;
  return value.trim() !== '' && Number.isFinite(Number(value)) ? Number(value) : null;
}

/** Returns the value of every option. Throws UsageError. */
export const allOptions = (card: AgentCard, given: OptionValues): Record<string, OptionValue> => ({
  ...Object.fromEntries(Object.entries(card.options).map(([name, option]) => [name, option.default])),
  ...typedOptions(card, given),
});

/** Returns the sha256 of a card, the values of all its options and their files; the order of keys does not matter. Throws UsageError. */
export const cardDigest = (card: AgentCard, given: OptionValues = {}, files: OptionFiles = {}): string =>
  createHash('sha256')
    .update(JSON.stringify(sorted({ card, options: allOptions(card, given), files })))
    .digest('hex');

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  // Entries, because an object would put keys of digits first.
  return entries.map(([key, inner]) => [key, sorted(inner)]);
}
