/** Makes text from models, tests and repositories safe to print on a terminal. */

const HARMFUL =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Keeps line feeds and tabs, and makes other control characters and changes of text direction visible. */
export function terminalSafe(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(HARMFUL, (char) => {
    const code = char.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    return code === 0x7f ? '\u2421' : `<${code.toString(16).padStart(4, '0')}>`;
  });
}

/** Returns the first line of an error message, safe to print and with at most 240 characters. */
export const safeFirstLine = (message: string): string =>
  terminalSafe(message.split('\n')[0] ?? '').slice(0, 240);
