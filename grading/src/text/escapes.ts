// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with one
const SEQUENCE = /\x1b(?:[@-Z\\-_]|\[[0-?]*[ -/]*[@-~])/g;

/** Replaces with `by` the escape sequences that the harnesses remove. */
export const withoutEscapes = (text: string, by = ''): string => text.replace(SEQUENCE, by);

/** Matches links and window titles: `ESC ] … BEL` or `ESC ] … ESC \`. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with one
const COMMAND = /\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)/g;
/** Matches a colour sequence without the escape character. */
const COLOR = /\[\d{1,3}(?:;\d{1,3}){0,4}m/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: some readers delete these characters
const CONTROL = /[\0-\x08\x0b-\x1f\x7f]/g;

/** Returns the text without escape sequences and control characters. Newlines and tabs remain. */
export const plainText = (text: string): string =>
  withoutEscapes(text.replace(COMMAND, '')).replace(COLOR, '').replace(CONTROL, '');
