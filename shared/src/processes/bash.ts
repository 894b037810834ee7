/** Embeds texts in bash scripts and command lines. */

/** Quotes a text without NUL as one word. */
export const shellQuoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Returns one line per variable that sets and exports it. */
export const shellExports = (env: Readonly<Record<string, string>>): string =>
  Object.entries(env)
    .map(([name, value]) => `export ${name}=${shellQuoted(value)}\n`)
    .join('');
