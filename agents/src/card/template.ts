/**
 * Texts of a card with placeholders: `{name}` is replaced, `{{` is a brace, and all other text stays unchanged, so that JSON and TOML need no
 * escapes. `}` is never special.
 */

/** Values that the worker gives to every agent. `{bundle}` is the folder of the bundle inside the sandbox. */
export const BUILT_IN = [
  'endpoint',
  'key',
  'model',
  'task',
  'task_file',
  'work',
  'home',
  'out',
  'bundle',
  'path',
  'context',
  'turns',
] as const;
export type BuiltIn = (typeof BUILT_IN)[number];

/** Name of the file with the task, in {home}. */
export const TASK_FILE = 'task.md';

const PLACEHOLDER = /\{\{|\{([a-z][a-z0-9_]*)\}/g;

/** Returns the names of the placeholders of a text, in their order. */
export const placeholdersOf = (template: string): string[] =>
  [...template.matchAll(PLACEHOLDER)].flatMap(([, name]) => name ?? []);

/** Replaces the placeholders. `lookUp` must know every name. */
export const fillText = (template: string, lookUp: (name: string) => string): string =>
  template.replace(PLACEHOLDER, (_, name?: string) => (name === undefined ? '{' : lookUp(name)));
