/** Writes server-sent events. */

/** Some clients of Python end a line at these characters. JSON allows them escaped. */
const LINE_ENDS = /[\u0085\u2028\u2029]/g;

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

export const data = (value: unknown): string =>
  `data: ${JSON.stringify(value).replace(LINE_ENDS, escaped)}\n\n`;

/** An event whose name is the type of its data. */
export const namedEvent = <Value extends { type: string }>(value: Value): string =>
  `event: ${value.type}\n${data(value)}`;
