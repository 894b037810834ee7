/** Makes text from models, tests and repositories safe to print on a terminal. */

/** Control characters of a terminal (escapes, bells, cursor moves) and those that change the text direction. */
const HARMFUL =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/**
 * Makes text of a model or a test safe to print: an escape sequence in it must not move the cursor, set the title or
 * write the reader's clipboard. Line feeds and tabs stay; other control characters become visible.
 */
export function terminalSafe(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(HARMFUL, (char) => {
    const code = char.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    return code === 0x7f ? '\u2421' : `<${code.toString(16).padStart(4, '0')}>`;
  });
}

/** The first line of an error message, safe to print and short enough for a few lines of a terminal. */
export const safeFirstLine = (message: string): string =>
  terminalSafe(message.split('\n')[0] ?? '').slice(0, 240);
