/** Writes JSON as Python's `json.dumps(value, indent=4)` does, so that files equal the files of the SWE-bench harness byte for byte. */
import { jsonText } from '@swefarm/shared';

/** Escapes all characters outside printable ASCII. Line feeds are not escaped: inside strings, `jsonText` has already escaped them. */
export const pythonJson = (value: unknown): string =>
  jsonText(value, 4).replace(/[^\n -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
