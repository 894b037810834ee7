/** Parses YAML, and reads files of it. The library is loaded at its first use, because most commands read no file. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { errorMessage, UsageError } from '../failures/errors.ts';

// The compiler (compile/pieces.mjs) removes exactly this line, so that esbuild includes the library in the bundle.
const require = createRequire(import.meta.url);

/** Parses YAML 1.2, which includes JSON. Throws the library's error with the line. */
export const parseYaml = (text: string): unknown => (require('yaml') as typeof import('yaml')).parse(text);

/** Reads a YAML or JSON file. Throws UsageError, whose message begins with `where`; `absent`: the reason for a missing file. */
export function readYaml(path: string, where: string, absent = 'no such file'): unknown {
  try {
    return parseYaml(readFileSync(path, 'utf8'));
  } catch (error) {
    const isAbsent = (error as NodeJS.ErrnoException).code === 'ENOENT';
    throw new UsageError(`${where}: ${isAbsent ? absent : errorMessage(error)}`, { cause: error });
  }
}
