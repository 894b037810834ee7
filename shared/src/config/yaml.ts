/** Parses YAML, from text or a file. The library is loaded at its first use, because most commands need no YAML. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { errorMessage, UsageError } from '../failures/errors.ts';

// The compiler (compile/pieces.mjs) removes exactly this line, so that esbuild includes the library in the bundle.
const require = createRequire(import.meta.url);

/** Parses YAML 1.2, which includes JSON. Throws the library's error with the line. */
export const parseYaml = (text: string): unknown => (require('yaml') as typeof import('yaml')).parse(text);

/** Parses YAML as {@link parseYaml}. `lineOf` returns the line (from 1) of the innermost existing node on a path. */
export function parseYamlLines(text: string) {
  const { LineCounter, parseDocument } = require('yaml') as typeof import('yaml');
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter });
  const [error] = document.errors;
  if (error) throw error;
  return {
    value: document.toJS() as unknown,
    lineOf(path: readonly PropertyKey[]): number {
      for (let length = path.length; length > 0; length--) {
        const node: unknown = document.getIn(path.slice(0, length), true);
        const { range } = (node ?? {}) as { range?: [number, number, number] };
        if (range) return lineCounter.linePos(range[0]).line;
      }
      return 1;
    },
  };
}

/**
 * Reads a YAML or JSON file without its key `$schema`, by which editors find its schema.
 *
 * @throws UsageError with a message that begins with `where`
 */
export function readYaml(path: string, where: string): unknown {
  try {
    const read = parseYaml(readFileSync(path, 'utf8'));
    if (typeof (read as { $schema?: unknown } | null)?.$schema !== 'string') return read;
    const { $schema: _, ...own } = read as Record<string, unknown>;
    return own;
  } catch (error) {
    const isAbsent = (error as NodeJS.ErrnoException).code === 'ENOENT';
    throw new UsageError(`${where}: ${isAbsent ? 'no such file' : errorMessage(error)}`, { cause: error });
  }
}
