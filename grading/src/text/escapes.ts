/** Removes terminal escape sequences: those that the harness removes, and all others that only a terminal interprets. */

// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with one
const SEQUENCE = /\x1b(?:[@-Z\\-_]|\[[0-?]*[ -/]*[@-~])/g;

/** `by`: what stands in their place. */
export const withoutEscapes = (text: string, by = ''): string => text.replace(SEQUENCE, by);

/** Links and window titles: `ESC ] … BEL` or `ESC ] … ESC \`. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with one
const COMMAND = /\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)/g;
/** A colour sequence that lost its escape character, as some readers see it. */
const COLOR = /\[\d{1,3}(?:;\d{1,3}){0,4}m/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what some readers delete
const CONTROL = /[\0-\x08\x0b-\x1f\x7f]/g;

/** The text as a person reads it, without anything that a reader of any harness removes; line ends and tabs stay. */
export const plainText = (text: string): string =>
  withoutEscapes(text.replace(COMMAND, '')).replace(COLOR, '').replace(CONTROL, '');
