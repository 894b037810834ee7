/** Writes JSON as Python's `json.dumps(value, indent=4)` does, so that files equal the harness's byte for byte. */
import { jsonText } from '@swefarm/shared';

/** Escapes everything outside printable ASCII; line feeds of the layout are not inside strings. */
export const pythonJson = (value: unknown): string =>
  jsonText(value, 4).replace(/[^\n -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
