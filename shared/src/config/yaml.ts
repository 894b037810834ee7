/** Reads YAML, for every file of settings. Most commands read none, so the library is loaded at its first use. */
import { createRequire } from 'node:module';

// The bundle replaces this line: see slurm/bundle.mjs.
const require = createRequire(import.meta.url);

/** The value of a YAML 1.2 text, which includes JSON. Throws the library's error, with the line. */
export const parseYaml = (text: string): unknown => (require('yaml') as typeof import('yaml')).parse(text);
