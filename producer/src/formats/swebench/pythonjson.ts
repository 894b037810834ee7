/** JSON as Python's `json.dumps(value, indent=4)` writes it, so that files are the harness's to the byte. */

/** Everything outside of printable ASCII is escaped; line feeds of the layout are not inside strings. */
export const pythonJson = (value: unknown): string =>
  JSON.stringify(value, null, 4).replace(
    /[^\n -~]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
