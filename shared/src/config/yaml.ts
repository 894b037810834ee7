/** Parses YAML. The library is loaded at its first use, because most commands read no file. */
import { createRequire } from 'node:module';

// The compiler (compile/pieces.mjs) removes exactly this line, so that esbuild includes the library in the bundle.
const require = createRequire(import.meta.url);

/** Parses YAML 1.2, which includes JSON. Throws the library's error with the line. */
export const parseYaml = (text: string): unknown => (require('yaml') as typeof import('yaml')).parse(text);
