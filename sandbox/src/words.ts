/** Quotes the text as one word of a shell's command line. The text must not contain NUL. */
export const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
